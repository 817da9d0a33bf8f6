"""`diffuco evaluate`: how well a model does on the graphs of a dataset."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from diffuco.cli import options
from diffuco.cli.console import make_folder, print_json, print_result
from diffuco.errors import InputError


class ReferenceName(StrEnum):
    """What objectives are compared with."""

    NONE = "none"
    CP_SAT = "cp-sat"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco evaluate --model mis-rb-small --dataset rb-small --count 100 --reference cp-sat",
            "diffuco evaluate --model runs/mis/best.safetensors --dataset rb-tiny --decode ce-st --output scores.json",
        )
    )(evaluate)


def evaluate(
    model: Annotated[str, typer.Option(help="Shipped model or path.")],
    dataset: Annotated[str, typer.Option(help="Dataset; `diffuco generate --list` shows them.")],
    split: options.Split = "test",
    count: options.Count = None,
    problem: Annotated[
        options.ProblemName | None, typer.Option(help="Must be the model's.", show_default="the model's")
    ] = None,
    samples: options.Samples = 8,
    step_factor: options.StepFactor = 3,
    decode: options.Decode = options.DecodeName.CE,
    token_size: options.TokenSize = 8,
    reference: Annotated[
        ReferenceName, typer.Option(help="Compare with the optima of an exact solver, kept on disk once found.")
    ] = ReferenceName.NONE,
    output: options.OutputFile = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Measure a model on a dataset.

    Solves the graphs and summarises objective, feasibility, time and, with a reference, the gap to it.
    """
    from diffuco import evaluation
    from diffuco.baselines.references import reference_objectives
    from diffuco.graphs.datasets import get_dataset
    from diffuco.pretrained import load_model
    from diffuco.solver import Solver

    if output:
        make_folder(output.parent)
    checkpoint = load_model(model)
    solver = Solver(problem or checkpoint.problem, checkpoint, device=device)
    graphs = get_dataset(dataset).graphs(split, count, progress=True)
    if not graphs:
        raise InputError("no graphs to evaluate on; give --count 1 or more")
    references = None
    if reference is ReferenceName.CP_SAT:
        references = reference_objectives(checkpoint.problem, graphs, progress=True)
    record = evaluation.evaluate(
        solver,
        graphs,
        samples=samples,
        step_factor=step_factor,
        decode=decode.value,
        token_size=token_size,
        seed=seed,
        references=references,
        progress=True,
    )
    record = {"dataset": dataset, "split": split, "count": len(graphs), "reference": reference.value} | record
    if output:
        _write(output, record)
    if as_json:
        print_json(record)
    else:
        print_result(evaluation.table(record))


def _write(path: Path, record: dict[str, object]) -> None:
    import json

    from diffuco.graphs.formats.output import open_for_writing

    with open_for_writing(path) as out:
        out.write((json.dumps(record, indent=1) + "\n").encode())
