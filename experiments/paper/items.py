"""The tables and figures of the paper: what makes their rows, how they read and how they are drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from diffuco.foundation.errors import InputError
from experiments.paper import ablations, curves, figures, rendering
from experiments.paper.benchmarks import TABLE_1, TABLE_3, TABLE_6, table_tasks
from experiments.paper.gset import gset_tasks
from experiments.paper.n_query import query_tasks
from experiments.paper.records import Row, Task
from experiments.paper.workspace import Workspace


@dataclass(frozen=True)
class Item:
    """A table or figure."""

    name: str
    title: str
    about: str
    """Text above the table: what is measured, and how it differs from the paper."""
    tasks: Callable[[Workspace], list[Task]]
    markdown: Callable[[Sequence[Row]], str]
    plot: Callable[[Sequence[Row], Path], None] | None = None
    runs: Callable[[bool], list[ablations.AblationRun]] | None = None
    """Training runs of the item; the argument asks for the quick ones."""


def get_item(name: str) -> Item:
    """The item of this name."""
    if name not in ITEMS:
        raise InputError(f"no item '{name}'; choose one of {', '.join(ITEMS)}")
    return ITEMS[name]


SCORES = (
    "Means over test graphs of our own, over 8 samples a graph and over the models of several training seeds "
    "where there are several; 3 times the training's diffusion steps. The paper's gap is that between its means, "
    "ours is the mean over graphs to the stored reference. Errors are standard errors, over seeds or, with one "
    "model, over graphs. Seconds are those of one sample of a graph, sampling and decoding, without loading (App. "
    "C.7); of other methods, of an answer; of the reference, where it was found. A setting behind the number of models "
    "is one that differs from the recipe. (r): as reported in the paper, not run here."
)

ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        Item(
            name="table-1",
            title="Table 1: independent sets and dominating sets",
            about=SCORES,
            tasks=table_tasks(TABLE_1),
            markdown=rendering.benchmark_table,
        ),
        Item(
            name="table-3",
            title="Table 3: cliques and cuts",
            about=SCORES,
            tasks=table_tasks(TABLE_3),
            markdown=rendering.benchmark_table,
        ),
        Item(
            name="fig-2-left",
            title="Figure 2, left: vertex covers of RB-200 by p",
            about=(
                "The best of 8 samples over the optimum (AR*), with Conditional Expectation and 3 times the "
                "training's steps; 100 graphs for each p, 10 for methods that are not models."
            ),
            tasks=curves.ratio_tasks,
            markdown=rendering.ratio_table,
            plot=figures.plot_ratios,
        ),
        Item(
            name="fig-2-middle",
            title="Figure 2, middle: steps, noise and annealing on RB-100",
            about=(
                "The mean gap of independent sets with Conditional Expectation and the training's own number of "
                "steps, over 500 graphs x 8 samples, with the standard error over seeds. Without annealing the "
                "temperature is zero from the start. "
                "The paper prints a picture without numbers."
            ),
            tasks=ablations.step_tasks,
            markdown=rendering.ablation_table,
            plot=figures.plot_ablation,
            runs=ablations.step_runs,
        ),
        Item(
            name="fig-2-right",
            title="Figure 2, right: more steps in evaluation than in training",
            about=(
                "Independent sets of RB-small with Conditional Expectation. The paper prints a picture without numbers."
            ),
            tasks=curves.step_tasks,
            markdown=rendering.sweep_table("step_factor", "times the training's steps"),
            plot=figures.plot_steps,
        ),
        Item(
            name="n-query",
            title="Table 4: graphs until training has paid off",
            about=(
                "The smallest n with training + n x solving < n x the other solver, if both are as good. Solving "
                "is one sample with CE-ST8; training is that of the model measured. The hardware differs: the "
                "paper's Gurobi ran on CPUs, as our references did."
            ),
            tasks=query_tasks,
            markdown=rendering.query_table,
        ),
        Item(
            name="gset",
            title="Table 5: cuts of Gset graphs",
            about=(
                "Best of 20 parallel runs of a model that learned on random graphs of 200 to 500 nodes, CE-ST8, 3 "
                "times the training's steps; with a time limit each run draws again until it is over. 14 of the 35 "
                "graphs are unions of two planar graphs, whose hubs a model of Erdős-Rényi graphs, as in the paper, "
                "has never seen; that of mixed graphs has learned on such unions as well."
            ),
            tasks=gset_tasks,
            markdown=rendering.gset_table,
        ),
        Item(
            name="ood",
            title="Table 6: models of BA-small on larger graphs",
            about=SCORES + " Sets above BA-small: the first 100 graphs.",
            tasks=table_tasks(TABLE_6),
            markdown=rendering.benchmark_table,
        ),
        Item(
            name="fig-3-left",
            title="Figure 3, left: the token size of CE-ST",
            about=(
                "Independent sets of RB-small, 3 times the training's steps. The paper prints a picture without "
                "numbers."
            ),
            tasks=curves.token_tasks,
            markdown=rendering.sweep_table("token_size", "token size"),
            plot=figures.plot_tokens,
        ),
        Item(
            name="fig-3-right",
            title="Figure 3, right: samples under the forward process",
            about=(
                "The mean log-likelihood, without constants, that the forward process gives to the model's own "
                "paths while it learns on RB-100 at a constant temperature."
            ),
            tasks=ablations.likelihood_tasks,
            markdown=rendering.likelihood_table,
            plot=figures.plot_likelihood,
            runs=ablations.likelihood_runs,
        ),
    )
}
