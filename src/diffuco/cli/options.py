"""Arguments and options that several commands share, and the choices they offer."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from diffuco.foundation.errors import InputError


class ProblemName(StrEnum):
    """The problems by the name users type; a copy of `problems.all_problems` that does not import torch."""

    MIS = "mis"
    MVC = "mvc"
    MAX_CLIQUE = "max-clique"
    MAX_CUT = "max-cut"
    MDS = "mds"
    QUBO = "qubo"


class DecodeName(StrEnum):
    """How samples become solutions; a copy of `solver.Decode` that does not import torch."""

    NONE = "none"
    CE = "ce"
    CE_ST = "ce-st"


class BatchEngine(StrEnum):
    """Where the graphs of a long solve are solved."""

    LOCAL = "local"
    RAY = "ray"


Problem = Annotated[ProblemName, typer.Argument(metavar="PROBLEM", help="What to solve.")]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the graph files.", show_default="told by the suffix")
]
Samples = Annotated[int, typer.Option(help="Solutions drawn per graph; the best is kept.")]
StepFactor = Annotated[int, typer.Option(help="Times each diffusion step is taken; more is better and slower.")]
Decode = Annotated[
    DecodeName, typer.Option(help="Conditional expectation: not at all, node by node, or in tokens of nodes.")
]
TokenSize = Annotated[int, typer.Option(help="Nodes decided together by ce-st; time doubles with each.")]
REFINE_HELP = (
    "Sweeps of annealing from every sample: a number, auto (as many as suit the graph) or none (the paper's method)."
)
Refine = Annotated[str, typer.Option("--refine", metavar="SWEEPS", help=REFINE_HELP)]
Split = Annotated[str, typer.Option(help="Part of the dataset: train, validation or test.")]
Count = Annotated[
    int | None, typer.Option(help="Number of graphs, from the first on.", show_default="all of the split")
]
Method = Annotated[
    str | None,
    typer.Option("--method", help="Solve with this method instead of a model; `diffuco methods` lists them."),
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds per graph for --method.", show_default="the method's own")
]
Seed = Annotated[int, typer.Option(help="Of every random number; the same seed gives the same result.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
OutputFile = Annotated[Path | None, typer.Option("--output", help="Also write the JSON record to this file.")]


MODEL_OPTIONS = ("model", "samples", "step_factor", "decode", "token_size", "refine")


def refuse_mixture(context: typer.Context, method: str | None, time_limit: float | None) -> None:
    """Options of models and of methods exclude each other."""
    if method is None:
        if time_limit is not None:
            raise InputError(
                "--time-limit is for --method; a model takes the time that --samples and --step-factor ask"
            )
        return
    for name in _given_model_options(context):
        raise InputError(f"--{name.replace('_', '-')} is for models and excludes --method; give one of the two")


def method_or_model(context: typer.Context, method: str | None, time_limit: float | None) -> str | None:
    """The method to solve with, `auto` unless told otherwise; None for a model, which any of its options asks for."""
    if method is None and not _given_model_options(context):
        return "auto"
    refuse_mixture(context, method, time_limit)
    return method


def _given_model_options(context: typer.Context) -> list[str]:
    sources = {name: context.get_parameter_source(name) for name in MODEL_OPTIONS}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def num_sweeps(refine: str) -> int | None:
    """What `--refine` means to the solver.

    >>> num_sweeps("none"), num_sweeps("auto"), num_sweeps("300")
    (0, None, 300)
    """
    if refine in ("none", "auto"):
        return 0 if refine == "none" else None
    if not refine.isdecimal():
        raise InputError(f"--refine is '{refine}'; give a number of sweeps, auto or none")
    return int(refine)


def examples(*lines: str) -> str:
    """Text below a command's help, one example per line; \\b keeps the lines as they are."""
    return "\b\n" + "\n".join(["Examples:", *(f"  $ {line}" for line in lines)])
