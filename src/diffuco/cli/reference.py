"""`diffuco reference`: optimal or best known objectives of a dataset's test graphs."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli import options
from diffuco.cli.console import make_folder, print_json, print_result, shows_progress
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted, measured

if TYPE_CHECKING:
    from rich.table import Table

    from diffuco.evaluation.reference_store import Reference

TIME_LIMIT_HELP = "Seconds per graph; graphs that were not proven in less time are tried again."
STORE_HELP = "Folder of the file DATASET-PROBLEM.csv to which the results are added."


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco reference rb-small mis",
            "diffuco reference ba-large mds --count 100 --time-limit 600",
            "diffuco reference ba-small max-cut --count 100 --time-limit 2",
            "diffuco reference rb-200 mis --store src/diffuco/evaluation/reference_data",
        )
    )(reference)


def reference(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Dataset; `diffuco generate --list` shows them.")],
    problem: options.Problem,
    count: options.Count = None,
    time_limit: Annotated[float, typer.Option(help=TIME_LIMIT_HELP)] = 60.0,
    store: Annotated[Path | None, typer.Option(help=STORE_HELP, show_default="the cache folder only")] = None,
    as_json: options.Json = False,
) -> None:
    """Find the optima of a dataset's test graphs.

    Takes what ships with diffuco and what earlier runs have found, and solves the rest. Every result is saved at once,
    so the same command continues a run that was stopped. If the exact solver proves nothing in half of the time,
    heuristics take the other half; the result is then marked as not proven and has the best bound. Large cuts are
    annealed with several seeds. Results for mvc follow from those for mis and are kept as such.
    """
    from diffuco.evaluation.references import find_references
    from diffuco.graphs.datasets import get_dataset

    if time_limit <= 0:
        raise InputError(f"--time-limit is {time_limit:g}; give seconds per graph, more than 0")
    graphs = get_dataset(dataset).graphs("test", count, progress=shows_progress())
    if not graphs:
        raise InputError("no graphs to solve; give --count 1 or more")
    if store:
        make_folder(store)
    found = find_references(problem, graphs, time_limit_s=time_limit, store=store, progress=shows_progress())
    record = {"dataset": dataset.lower(), "problem": problem} | _summary(found)
    print_json(record) if as_json else print_result(_table(record))


def _summary(references: list["Reference"]) -> dict[str, Any]:
    from diffuco.evaluation.metrics import mean_with_error

    objective = mean_with_error([known.objective for known in references])
    bounds = [known.bound for known in references]
    record = {
        "graphs": len(references),
        "mean": objective.mean,
        "mean_standard_error": objective.standard_error,
        "mean_bound": mean_with_error(bounds).mean if all(map(math.isfinite, bounds)) else None,
        "proven": sum(known.proven for known in references),
        "seconds": sum(known.seconds for known in references),
        "solvers": sorted({f"{known.solver} {known.version}" for known in references}),
    }
    if repeated := [known for known in references if known.runs > 1]:
        record["agreeing"] = sum(known.agreeing / known.runs for known in repeated) / len(repeated)
    return record


def _table(record: dict[str, Any]) -> "Table":
    from rich.table import Table

    shown = Table(
        title=f"{record['problem']}: {counted(record['graphs'], 'test graph')} of {record['dataset']}",
        show_header=False,
    )
    shown.add_row("mean objective", measured(record["mean"], record["mean_standard_error"], ".3f"))
    bound = record["mean_bound"]
    shown.add_row("mean bound", "not known for all" if bound is None else f"{bound:.3f}")
    shown.add_row("proven optimal", f"{record['proven']} of {record['graphs']}")
    if "agreeing" in record:
        shown.add_row("runs that found the best", f"{100 * record['agreeing']:.0f} %")
    shown.add_row("seconds to solve", f"{record['seconds']:.1f}, {record['seconds'] / record['graphs']:.3f} per graph")
    shown.add_row("solver", ", ".join(record["solvers"]))
    return shown
