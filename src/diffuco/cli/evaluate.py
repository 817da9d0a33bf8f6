"""`diffuco evaluate`: how well a model does on the graphs of a dataset."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli import options
from diffuco.cli.console import finite, make_folder, print_json, print_result, shows_progress
from diffuco.errors import InputError

if TYPE_CHECKING:
    from diffuco.baselines.reference_store import Reference
    from diffuco.graphs.datasets import Dataset
    from diffuco.graphs.graph import Graph


REFERENCE_HELP = (
    "Compare with optimal or best known objectives: shipped, found earlier or solved now. cp-sat is an older name."
)


class ReferenceName(StrEnum):
    """What objectives are compared with."""

    NONE = "none"
    BEST_KNOWN = "best-known"
    CP_SAT = "cp-sat"  # what it was called when there was no other solver


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco evaluate --model mis-rb-small --dataset rb-small --count 100 --reference best-known",
            "diffuco evaluate --model runs/mis/best.safetensors --dataset rb-tiny --decode ce-st --output scores.json",
        )
    )(evaluate)


def evaluate(
    model: Annotated[str, typer.Option(help="Shipped model or path.")],
    dataset: Annotated[str, typer.Option(help="Dataset; `diffuco generate --list` shows them.")],
    split: options.Split = "test",
    count: options.Count = None,
    problem: Annotated[options.ProblemName | None, typer.Option(help="Refuse a model of another.")] = None,
    samples: options.Samples = 8,
    step_factor: options.StepFactor = 3,
    decode: options.Decode = options.DecodeName.CE,
    token_size: options.TokenSize = 8,
    reference: Annotated[ReferenceName, typer.Option(help=REFERENCE_HELP)] = ReferenceName.NONE,
    output: options.OutputFile = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Measure a model on a dataset.

    Solves the graphs and summarises objective, feasibility, time and, with a reference, the gap to it.
    """
    from diffuco import evaluation
    from diffuco.graphs.datasets import get_dataset
    from diffuco.pretrained import load_model
    from diffuco.solver import Solver, check_options

    check_options(samples, step_factor, decode, token_size)
    if output:
        make_folder(output.absolute().parent)
    checkpoint = load_model(model)
    solver = Solver(problem or checkpoint.problem, checkpoint, device=device)
    named = get_dataset(dataset)
    graphs = named.graphs(split, count, progress=shows_progress())
    if not graphs:
        raise InputError("no graphs to evaluate on; give --count 1 or more")
    settings = {"samples": samples, "step_factor": step_factor, "token_size": token_size, "seed": seed}
    references = _references(reference, checkpoint.problem, graphs)
    objectives = None if references is None else [known.objective for known in references]
    record = {"dataset": dataset, "split": split} | evaluation.evaluate(
        solver,
        graphs,
        decode=decode.value,
        references=objectives,
        tightness=_tightness(named, split, len(graphs)),
        progress=shows_progress(),
        **settings,
    )
    if references is not None:
        record["reference"] |= _about_references(references, record["seconds"], checkpoint.card.get("minutes"))
    if output:
        _write(output, record)
    print_json(record) if as_json else print_result(evaluation.table(record))


def _references(reference: ReferenceName, problem: str, graphs: list["Graph"]) -> list["Reference"] | None:
    if reference is ReferenceName.NONE:
        return None
    from diffuco.baselines.references import find_references

    return find_references(problem, graphs, progress=shows_progress())


def _tightness(dataset: "Dataset", split: str, count: int) -> list[float] | None:
    """The parameter p of every graph where the set was made to compare by it."""
    if split != "test" or not dataset.test_tightness:
        return None
    return [dataset.parameters(split, index)["tightness"] for index in range(count)]


def _about_references(
    references: list["Reference"], seconds: dict[str, float], training_minutes: float | None
) -> dict[str, Any]:
    """Where the references come from, and after how many graphs a model that was trained is faster than them."""
    from diffuco.metrics import n_query

    solving_s, solver_s = (
        total / len(references) for total in (sum(seconds.values()), sum(known.seconds for known in references))
    )
    about: dict[str, Any] = {
        "solver": ", ".join(sorted({known.solver for known in references})),
        "proven": sum(known.proven for known in references),
        "seconds_per_graph": solver_s,
    }
    if training_minutes is not None:
        about["n_query"] = n_query(60 * training_minutes, solving_s, solver_s)
    return about


def _write(path: Path, record: dict[str, Any]) -> None:
    import json

    from diffuco.graphs.formats.output import open_for_writing

    with open_for_writing(path) as out:
        out.write((json.dumps(finite(record), allow_nan=False, indent=1) + "\n").encode())
