"""`diffuco evaluate`: how well a model or another method does on a dataset or on your own graphs."""

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

import diffuco
from diffuco.cli import options
from diffuco.cli.console import (
    check_output,
    print_json,
    print_result,
    progress_bar,
    shows_progress,
    write_record,
)
from diffuco.cli.inputs import graph_source
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted, measured

if TYPE_CHECKING:
    from rich.table import Table

    from diffuco.evaluation.reference_store import Reference
    from diffuco.graphs.collection import Collection
    from diffuco.graphs.datasets import Dataset
    from diffuco.graphs.graph import Graph
    from diffuco.model.checkpoint import Checkpoint


REFERENCE_HELP = "Compare with optimal or best known objectives: shipped, found earlier or solved now."
SPLIT_HELP = "Which graphs: train, validation or test (not seen in training); with --graphs also all."
PROBLEM_HELP = "What to solve. --method needs it; with --model it must be the problem of the model."


class ReferenceName(StrEnum):
    """What the objectives are compared with."""

    NONE = "none"
    BEST_KNOWN = "best-known"


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
    dataset: options.Dataset = None,
    own_graphs: options.OwnGraphs = None,
    model: Annotated[str | None, typer.Option(help="Shipped model or path.")] = None,
    method: options.Method = None,
    time_limit: options.TimeLimit = None,
    split: Annotated[str, typer.Option(help=SPLIT_HELP)] = "test",
    count: options.Count = None,
    problem: Annotated[str | None, typer.Option(help=PROBLEM_HELP)] = None,
    samples: options.Samples = None,
    step_factor: options.StepFactor = None,
    decode: options.Decode = None,
    token_size: options.TokenSize = None,
    rounds: options.Rounds = None,
    refine: Annotated[
        str | None, typer.Option("--refine", metavar="SWEEPS", help=options.REFINE_HELP, show_default="none")
    ] = None,
    reference: Annotated[ReferenceName, typer.Option(help=REFERENCE_HELP)] = ReferenceName.NONE,
    output: options.OutputFile = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Measure a model or another method.

    Solves the graphs of a dataset, or your own, and summarises objective, feasibility and time, and the gap if there is
    a reference. The samples of a model are not refined unless --refine asks for it: this measures the paper's method.
    """
    if output:
        check_output(output)
    loaded = None if model is None else diffuco.load_model(model)
    target = _target(loaded, method, problem)
    settings: dict[str, Any] = {"time_limit_s": time_limit, "seed": seed, "device": device}
    if loaded is not None:
        if time_limit is not None:
            raise InputError("--time-limit is for --method; the samples of a model are measured without one")
        refined = options.num_sweeps("none" if refine is None else refine)
        given = {"samples": samples, "step_factor": step_factor, "decode": decode and decode.value}
        given |= {"token_size": token_size, "rounds": rounds}
        settings |= {"model": loaded, "refine": refined} | {k: v for k, v in given.items() if v is not None}
    elif any(option is not None for option in (samples, step_factor, decode, token_size, rounds, refine)):
        raise InputError(
            "--samples, --step-factor, --decode, --token-size, --rounds and --refine are for models, not --method"
        )
    else:
        settings["method"] = method
    diffuco.solve([], target, **settings)  # refuses bad options before any graph is generated
    source = graph_source(dataset, own_graphs)
    graphs = source.graphs(split, count, progress=shows_progress())
    if not graphs:
        raise InputError(f"no graphs in {source.name}/{split}; give --count 1 or more, or another --split")
    references = _references(reference, target, graphs)
    objectives = None if references is None else [known.objective for known in references]
    with progress_bar() as bar:
        task = bar.add_task("solving", total=len(graphs))
        measurement = diffuco.evaluate(
            graphs,
            target,
            references=objectives,
            parts=_parts(source, split, len(graphs)),
            on_solved=lambda count: bar.advance(task, count),
            **settings,
        )
    record: dict[str, Any] = {"dataset": source.name, "split": split} | measurement.to_dict()
    if references is not None:
        minutes = None if loaded is None else loaded.card.get("minutes")
        record["reference"] |= _about_references(references, record["seconds"], minutes)
    try:
        if output:
            write_record(output, record)
    finally:  # what cannot be written is still shown
        print_json(record) if as_json else print_result(table(record))


def _target(model: "Checkpoint | None", method: str | None, problem: str | None) -> str:
    """The problem to solve: the one named or the model's own."""
    if (model is None) == (method is None):
        raise InputError("nothing to evaluate, or two things; give either --model or --method")
    if model is None:
        if problem is None:
            raise InputError("--method needs --problem; only a model knows its own")
        return problem
    from diffuco.inference.solver import fitted
    from diffuco.pretrained import problem_of
    from diffuco.problems import get_problem

    known = problem_of(model) if problem is None else get_problem(problem)
    return fitted(model, known).problem


def _references(reference: ReferenceName, problem: str, graphs: list["Graph"]) -> list["Reference"] | None:
    if reference is ReferenceName.NONE:
        return None
    from diffuco.evaluation.references import find_references

    return find_references(problem, graphs, progress=shows_progress())


def _parts(dataset: "Dataset | Collection", split: str, count: int) -> list[str] | None:
    """The part that every graph belongs to if the test set was made to compare parts of it."""
    from diffuco.graphs.datasets import Dataset

    if not isinstance(dataset, Dataset):
        return None
    return [part for index in range(count) if (part := dataset.part(split, index)) is not None] or None


def _about_references(
    references: list["Reference"], seconds: dict[str, float], training_minutes: float | None
) -> dict[str, Any]:
    """Where the references come from, and after how many graphs the training of a model has paid off."""
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


def table(record: dict[str, Any]) -> "Table":
    """The record as a table for people."""
    from rich.table import Table

    solver, scored = (record["model"], "samples") if "model" in record else (record["method"], "answers")
    title = f"{record['problem']}: {solver}, {counted(record['graphs'], 'graph')}, {record['hardware']}"
    shown = Table(title=title, show_header=False)
    rows = {}
    if "model" in record:
        rows["samples x steps, decoding"] = f"{record['samples']} x {record['steps']}, {record['decode']}"
        if record["sweeps"]:
            rows["sweeps of refinement"] = f"{record['sweeps']}"
    elif record["time_limit_s"] is not None:
        rows["time limit, seconds per graph"] = f"{record['time_limit_s']:g}"
    rows[f"mean of the {scored}"] = measured(record["mean"], record["mean_standard_error"], ".3f")
    if "model" in record:
        rows[f"mean of the best of {record['samples']}"] = f"{record['best']:.3f}"
    rows |= {
        "feasible answers": f"{record['feasible']} of {record['graphs']}",
        "seconds to sample / decode": f"{record['seconds']['sample']:.2f} / {record['seconds']['decode']:.2f}",
        **({"seconds to refine": f"{record['seconds']['refine']:.2f}"} if record.get("sweeps") else {}),
    }
    if record["problem"] == "max-cut":
        rows["mean cut over mean edges"] = f"{record['mean'] / record['mean_edges']:.4f}"
    reference = record.get("reference")
    if reference:
        rows["mean of the references"] = f"{reference['mean']:.3f}"
        if "proven" in reference:
            rows["references proven optimal"] = f"{reference['proven']} of {record['graphs']}"
        rows[f"gap, mean of the {scored}"] = measured(reference["gap"], reference["gap_standard_error"])
        if "model" in record:
            rows["gap, best of the samples"] = measured(reference["gap_of_best"])
        rows["gap between the two means"] = measured(reference["gap_of_means"])
        for part in reference.get("parts", ()):
            gap, ratio = measured(part["gap"], part["gap_standard_error"]), measured(part["best_ratio"], form=".4f")
            rows[part["part"]] = f"{gap}, best over reference {ratio}"
        if "n_query" in reference:
            pays_off = f"{reference['n_query']:g}" if math.isfinite(reference["n_query"]) else "never"
            rows["graphs until training pays off, if the answers are as good"] = pays_off
    for name, value in rows.items():
        if value != "-":  # a reference of 0 has no relative gap
            shown.add_row(name, value)
    return shown
