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


SCORES = """Means over our own test graphs, over 8 samples per graph and, if there are several models, over training \
seeds. Evaluation takes 3 times the training's diffusion steps.

- Gap: ours is the mean over graphs to the stored reference; the paper's is between the means it prints.
- Errors are standard errors: over seeds, or over graphs if there is only one model.
- Seconds: sampling and decoding of one sample, without loading (App. C.7). For other methods they are the time of an \
answer, for the reference the time on the machine that found it.
- A setting after the number of models differs from the recipe.
- (r): as reported in the paper, not run here."""

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
                "The best of 8 samples divided by the optimum (AR*), with Conditional Expectation and 3 times the "
                "training's steps. Models are measured on 100 graphs for each p, other methods on 10."
            ),
            tasks=curves.ratio_tasks,
            markdown=rendering.ratio_table,
            plot=figures.plot_ratios,
        ),
        Item(
            name="fig-2-middle",
            title="Figure 2, middle: steps, noise and annealing on RB-100",
            about=(
                "The mean gap of independent sets over 500 graphs x 8 samples, with the standard error over seeds. "
                "Evaluation uses Conditional Expectation and as many steps as training. Without annealing, the "
                "temperature is zero from the start. The paper prints a picture without numbers."
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
                "Independent sets of RB-small with Conditional Expectation. The paper repeats each step, and prints a "
                "picture without numbers. Rounds, which are ours, noise samples back, denoise them once more and keep "
                "the better ones; steps are those of all rounds."
            ),
            tasks=curves.step_tasks,
            markdown=rendering.sweep_table("step_factor", "times the training's steps"),
            plot=figures.plot_steps,
        ),
        Item(
            name="n-query",
            title="Table 4: graphs until training has paid off",
            about=(
                "The smallest n with training + n x solving < n x the other solver, provided both are equally good. "
                "Solving is one sample with CE-ST8. Training is that of the model that was measured. The hardware "
                "differs: the paper's Gurobi and our references ran on CPUs."
            ),
            tasks=query_tasks,
            markdown=rendering.query_table,
        ),
        Item(
            name="gset",
            title="Table 5: cuts of Gset graphs",
            about=(
                "Best of 20 parallel runs of a model trained on random graphs of 200 to 500 nodes, with CE-ST8 and 3 "
                "times the training's steps. With a time limit, each run draws again until the time is over. 14 of "
                "the 35 graphs are unions of two planar graphs and have hubs. A model of Erdős-Rényi graphs, as in "
                "the paper, has never seen hubs; the model of mixed graphs was trained on such unions as well."
            ),
            tasks=gset_tasks,
            markdown=rendering.gset_table,
        ),
        Item(
            name="ood",
            title="Table 6: models of BA-small on larger graphs",
            about=SCORES + "\n- Sets above BA-small: the first 100 graphs.",
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
                "The mean log-likelihood, without constants, of the model's own paths under the forward process "
                "while it learns on RB-100 at a constant temperature."
            ),
            tasks=ablations.likelihood_tasks,
            markdown=rendering.likelihood_table,
            plot=figures.plot_likelihood,
            runs=ablations.likelihood_runs,
        ),
    )
}
