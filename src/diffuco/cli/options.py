"""Arguments and options that several commands share, and the choices they offer."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from diffuco.errors import InputError


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
Split = Annotated[str, typer.Option(help="Part of the graphs: train, validation or test; of your own also all.")]
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


MODEL_OPTIONS = ("model", "samples", "step_factor", "decode", "token_size")


def refuse_mixture(context: typer.Context, method: str | None, time_limit: float | None) -> None:
    """Options of models and of methods exclude each other."""
    if method is None:
        if time_limit is not None:
            raise InputError(
                "--time-limit is for --method; a model takes the time that --samples and --step-factor ask"
            )
        return
    for name in MODEL_OPTIONS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(f"--{name.replace('_', '-')} is for models and excludes --method; give one of the two")


def examples(*lines: str) -> str:
    """Text below a command's help, one example per line; \\b keeps the lines as they are."""
    return "\b\n" + "\n".join(["Examples:", *(f"  $ {line}" for line in lines)])
