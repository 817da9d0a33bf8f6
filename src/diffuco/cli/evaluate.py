"""`diffuco evaluate`: how well a model or another method does on the graphs of a dataset or on one's own."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli import options
from diffuco.cli.console import make_folder, print_json, print_result, progress_bar, shows_progress
from diffuco.cli.inputs import load_collection
from diffuco.foundation.errors import InputError
from diffuco.foundation.files import finite

if TYPE_CHECKING:
    from diffuco.evaluation.reference_store import Reference
    from diffuco.graphs.collection import Collection
    from diffuco.graphs.datasets import Dataset
    from diffuco.graphs.graph import Graph
    from diffuco.inference.solver import Solver


REFERENCE_HELP = (
    "Compare with optimal or best known objectives: shipped, found earlier or solved now. cp-sat is an older name."
)


SPLIT_HELP = "Part of the graphs: train, validation or test, which training has not seen; of --graphs also all."


PROBLEM_HELP = "What to solve, needed with --method; a model of another problem is refused."


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
            "diffuco evaluate --model runs/mis-FOLDER/best.safetensors --graphs FOLDER --reference best-known",
            "diffuco evaluate --method greedy --problem mis --dataset rb-small --count 100 --reference best-known",
        )
    )(evaluate)


def evaluate(
    context: typer.Context,
    dataset: Annotated[str | None, typer.Option(help="Dataset; `diffuco generate --list` shows them.")] = None,
    own_graphs: Annotated[
        Path | None, typer.Option("--graphs", help="Folder or file of your own graphs instead.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Shipped model or path.")] = None,
    method: options.Method = None,
    time_limit: options.TimeLimit = None,
    split: Annotated[str, typer.Option(help=SPLIT_HELP)] = "test",
    count: options.Count = None,
    problem: Annotated[options.ProblemName | None, typer.Option(help=PROBLEM_HELP)] = None,
    samples: options.Samples = 8,
    step_factor: options.StepFactor = 3,
    decode: options.Decode = options.DecodeName.CE,
    token_size: options.TokenSize = 8,
    refine: options.Refine = "none",
    reference: Annotated[ReferenceName, typer.Option(help=REFERENCE_HELP)] = ReferenceName.NONE,
    output: options.OutputFile = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Measure a model or another method.

    Solves the graphs of a dataset, or your own, and summarises objective, feasibility, time and, with a reference, the
    gap to it. The samples of a model are not refined unless --refine asks for it, so that it is the paper's method that
    is measured.
    """
    from diffuco.evaluation import evaluate as evaluation
    from diffuco.inference.solver import check_options

    options.refuse_mixture(context, method, time_limit)
    sweeps = options.num_sweeps(refine)
    check_options(samples, step_factor, decode, token_size, sweeps)
    if output:
        make_folder(output.absolute().parent)
    if method is not None:
        solver, target = None, _checked_problem(method, problem, time_limit)
    else:
        solver = _load(model, problem, device)
        target = solver.problem.name
    source = _source(dataset, own_graphs)
    graphs = source.graphs(split, count, progress=shows_progress())
    if not graphs:
        raise InputError(f"no graphs of {source.name}/{split} here; give --count 1 or more or another --split")
    references = _references(reference, target, graphs)
    objectives = None if references is None else [known.objective for known in references]
    known: dict[str, Any] = {
        "references": objectives,
        "tightness": _tightness(source, split, len(graphs)),
        "seed": seed,
    }
    record: dict[str, Any] = {"dataset": source.name, "split": split}
    if solver is None:
        assert method is not None
        record |= _evaluate_method(method, target, graphs, device=device, time_limit_s=time_limit, **known)
    else:
        settings: dict[str, Any] = {"samples": samples, "step_factor": step_factor, "token_size": token_size}
        settings |= {"refine": sweeps}
        record |= evaluation.evaluate(
            solver, graphs, decode=decode.value, progress=shows_progress(), **settings, **known
        )
    if references is not None:
        minutes = solver.checkpoint.card.get("minutes") if solver else None
        record["reference"] |= _about_references(references, record["seconds"], minutes)
    if output:
        _write(output, record)
    print_json(record) if as_json else print_result(evaluation.table(record))


def _source(dataset: str | None, own_graphs: Path | None) -> "Dataset | Collection":
    if (dataset is None) == (own_graphs is None):
        raise InputError("give the graphs to evaluate on: either --dataset or --graphs")
    if own_graphs is not None:
        return load_collection(own_graphs)
    from diffuco.graphs.datasets import get_dataset

    assert dataset is not None
    return get_dataset(dataset)


def _checked_problem(method: str, problem: options.ProblemName | None, time_limit: float | None) -> str:
    from diffuco.methods import check_method, get_method

    if problem is None:
        raise InputError("--method needs --problem, which a model would bring along")
    check_method(get_method(method), problem, time_limit)
    return problem.value


def _load(model: str | None, problem: options.ProblemName | None, device: str) -> "Solver":
    from diffuco.pretrained import load_model
    from diffuco.inference.solver import Solver

    if model is None:
        raise InputError("nothing to evaluate; give --model or --method")
    checkpoint = load_model(model)
    return Solver(problem or checkpoint.problem, checkpoint, device=device)


def _evaluate_method(method: str, problem: str, graphs: list["Graph"], **settings: Any) -> dict[str, Any]:
    from diffuco.evaluation.evaluate_method import evaluate_method

    with progress_bar() as bar:
        task = bar.add_task("solving", total=len(graphs))
        return evaluate_method(
            method, problem, graphs, on_solved=lambda done: bar.update(task, completed=done), **settings
        )


def _references(reference: ReferenceName, problem: str, graphs: list["Graph"]) -> list["Reference"] | None:
    if reference is ReferenceName.NONE:
        return None
    from diffuco.evaluation.references import find_references

    return find_references(problem, graphs, progress=shows_progress())


def _tightness(dataset: "Dataset | Collection", split: str, count: int) -> list[float] | None:
    """The parameter p of every graph where the set was made to compare by it."""
    from diffuco.graphs.datasets import Dataset

    if split != "test" or not isinstance(dataset, Dataset) or not dataset.test_tightness:
        return None
    return [dataset.parameters(split, index)["tightness"] for index in range(count)]


def _about_references(
    references: list["Reference"], seconds: dict[str, float], training_minutes: float | None
) -> dict[str, Any]:
    """Where the references come from, and after how many graphs a model that was trained is faster than them."""
    from diffuco.evaluation.metrics import n_query

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
