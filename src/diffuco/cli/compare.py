"""`diffuco compare`: several methods on the same graphs with the same time."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import diffuco
from diffuco.cli import options
from diffuco.cli.console import (
    check_output,
    print_json,
    print_note,
    print_result,
    progress_bar,
    shows_progress,
    write_record,
)
from diffuco.cli.inputs import graph_source
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted, measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from diffuco.evaluation.compare import Run
    from diffuco.graphs.graph import Graph
    from diffuco.methods import Method
    from diffuco.model.checkpoint import Checkpoint
    from diffuco.problems import Problem

METHODS_HELP = (
    "Comma-separated names from `diffuco methods`. diffuco is a model whose samples are annealed for the rest of the "
    "time, diffuco-ce is the samples alone."
)
COUNT_HELP = "Number of graphs, counted from the first."
BUDGET_HELP = "Seconds per graph, comma-separated."
NUM_OF_DATASET = 20
"""Number of graphs of a dataset unless --count is given."""
NUM_TYPICAL = 8
"""Number of graphs that decide which model is chosen."""


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco compare --dataset rb-small --problem mis --count 20 --plot gap.png",
            "diffuco compare --graphs FOLDER --problem mis --methods greedy,anneal,cp-sat",
            "diffuco compare --dataset ba-small --problem max-cut --methods diffuco,rlsa,sa --budget 0.1,1",
        )
    )(compare)


def compare(
    problem: Annotated[str, typer.Option(help=options.PROBLEM_HELP)],
    dataset: options.Dataset = None,
    own_graphs: options.OwnGraphs = None,
    methods: Annotated[str, typer.Option(help=METHODS_HELP)] = "diffuco,greedy,anneal,cp-sat",
    budget: Annotated[str, typer.Option(help=BUDGET_HELP)] = "0.01,0.1,1",
    count: Annotated[int | None, typer.Option(help=COUNT_HELP, show_default="20, or all of your own")] = None,
    model: Annotated[
        str | None, typer.Option(help="Shipped model or path.", show_default="the one that suits the graphs")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Also plot gap against time to this file.")] = None,
    output: options.OutputFile = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Compare methods at equal time.

    Every method solves the same graphs within each budget of seconds per graph: the test graphs of a dataset, or all of
    your own. A method that solves many graphs at once may spend the sum of their budgets. Gaps are to the references
    that `diffuco reference` knows or finds. If the solver for references is not installed, they are to the best that
    any method found.
    """
    from diffuco.evaluation.compare import budgets_of, summary
    from diffuco.foundation.devices import pick_device
    from diffuco.foundation.provenance import hardware, source_commit
    from diffuco.plotting import check_plot_path, plot_comparisons
    from diffuco.problems import get_problem

    budgets = _budgets(budget)
    if count == 0:
        raise InputError("no graphs to compare on; give --count 1 or more")
    if plot:
        check_plot_path(plot)
    if output:
        check_output(output)
    place, target = pick_device(device), get_problem(problem)
    source = graph_source(dataset, own_graphs)
    part, number = ("test", NUM_OF_DATASET) if own_graphs is None else ("all", None)
    typical = source.graphs(part, None if own_graphs else NUM_TYPICAL)[:NUM_TYPICAL]
    if not typical:
        raise InputError(f"{own_graphs}: no graph with an edge; give another folder or file")
    chosen, loaded = _methods(methods, target, model, typical)
    graphs = source.graphs(part, number if count is None else count, progress=shows_progress())
    with progress_bar() as bar:
        task = bar.add_task("comparing", total=sum(len(budgets_of(method, budgets)) for method in chosen))
        runs = []
        for run in diffuco.compare(graphs, target, chosen, budgets, seed=seed, device=device):
            runs.append(run)
            bar.update(task, advance=1, description=f"{run.method} {run.seconds:.3g} s per graph")
    reference, optima = _optima(target, graphs, runs)
    record = {
        "dataset": source.name,
        "problem": problem,
        "graphs": len(graphs),
        "reference": reference,
        "model": loaded and loaded.name,
        "weights": loaded and loaded.digest,
        "seed": seed,
        "hardware": hardware(place),
        "commit": source_commit(),
        "runs": [summary(run, optima) for run in runs],
    }
    try:
        if output:
            write_record(output, record)
        if plot:
            plot_comparisons([record], plot)
            print_note(f"wrote the picture to {plot}")
    finally:  # what cannot be written is still shown
        print_json(record) if as_json else print_result(_table(record))


def _budgets(text: str) -> list[float]:
    try:
        budgets = sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise InputError(f"--budget is '{text}'; give comma-separated seconds such as 0.01,0.1,1") from None
    if not all(0 < budget < float("inf") for budget in budgets):
        raise InputError(f"--budget is '{text}'; give seconds above 0")
    return budgets


def _methods(
    names: str, problem: "Problem", model: str | None, typical: "Sequence[Graph]"
) -> "tuple[list[Method], Checkpoint | None]":
    """The methods, and the model that some of them share; `typical` graphs decide which one."""
    from diffuco.methods import ModelMethod, get_method
    from diffuco.pretrained.choice import choose_model

    methods = [get_method(name) for name in dict.fromkeys(part.strip() for part in names.split(","))]
    if not any(isinstance(method, ModelMethod) for method in methods):
        return methods, None
    if model is None:
        choice = choose_model(problem, typical)
        print_note(f"model {choice.name}, {choice.reason}")
        model = choice.name
    loaded = diffuco.load_model(model)
    shared = [replace(method, model=loaded) if isinstance(method, ModelMethod) else method for method in methods]
    return shared, loaded


def _optima(problem: "Problem", graphs: "Sequence[Graph]", runs: "Sequence[Run]") -> tuple[str, Any]:
    """The references of the gaps, in words and as energies."""
    import numpy as np

    from diffuco.evaluation.compare import best_known
    from diffuco.evaluation.references import find_references

    try:
        references = find_references(problem, graphs, progress=shows_progress())
    except InputError:  # a solver is not installed
        return "best of all methods", best_known(runs)
    proven = sum(known.proven for known in references)
    return f"{proven} of {len(graphs)} proven", problem.sign * np.array([known.objective for known in references])


def _table(record: dict[str, Any]) -> "Table":
    from rich.table import Table

    title = f"{record['problem']} on {counted(record['graphs'], 'graph')} of {record['dataset']}, {record['hardware']}"
    table = Table("method", "budget, s", "s per graph", "mean", "gap", "at reference", title=title)
    table.caption = f"reference: {record['reference']}"
    for run in record["runs"]:
        table.add_row(
            run["method"],
            "" if run["budget_s"] is None else f"{run['budget_s']:g}",
            f"{run['seconds']:.3g}",
            f"{run['mean']:.3f}",
            measured(run["gap"], run["gap_standard_error"]),
            f"{run['solved_to_reference']:.0%}",
        )
    return table
