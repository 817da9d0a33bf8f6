"""Arguments and options that several commands share, and the choices they offer."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from diffuco.foundation.errors import InputError


class DecodeName(StrEnum):
    """How samples become solutions; a copy of `solver.Decode` that does not import torch."""

    NONE = "none"
    CE = "ce"
    CE_ST = "ce-st"


class BatchEngine(StrEnum):
    """Where the graphs of a long solve are solved."""

    LOCAL = "local"
    RAY = "ray"


PROBLEM_HELP = "What to solve: mis, mvc, max-clique, max-cut, mds or qubo."
Problem = Annotated[str, typer.Argument(metavar="PROBLEM", help=PROBLEM_HELP)]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the graph files.", show_default="told by the suffix")
]
Samples = Annotated[int | None, typer.Option(help="Solutions drawn per graph; the best is kept.", show_default="8")]
STEP_FACTOR_HELP = "Times each diffusion step is taken; more is better and slower."
StepFactor = Annotated[int | None, typer.Option(help=STEP_FACTOR_HELP, show_default="3")]
DECODE_HELP = "Conditional expectation: not at all, node by node, or in tokens of nodes."
Decode = Annotated[DecodeName | None, typer.Option(help=DECODE_HELP, show_default="ce")]
TOKEN_HELP = "Nodes decided together by ce-st; time doubles with each."
TokenSize = Annotated[int | None, typer.Option(help=TOKEN_HELP, show_default="8")]
REFINE_HELP = (
    "Sweeps of annealing from every sample: a number, auto (as many as suit the graph) or none (the paper's method)."
)
Refine = Annotated[str | None, typer.Option("--refine", metavar="SWEEPS", help=REFINE_HELP, show_default="auto")]
Split = Annotated[str, typer.Option(help="Part of the dataset: train, validation or test.")]
Count = Annotated[
    int | None, typer.Option(help="Number of graphs, from the first on.", show_default="all of the split")
]
Method = Annotated[
    str | None,
    typer.Option("--method", help="Solve with this method instead of a model; `diffuco methods` lists them."),
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds per graph.", show_default="the method's own")
]
Seed = Annotated[int, typer.Option(help="Of every random number; the same seed gives the same result.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
OutputFile = Annotated[Path | None, typer.Option("--output", help="Also write the JSON record to this file.")]


def num_sweeps(refine: str | None) -> int | None:
    """What `--refine` means to `solve`: None is as many as suit the graph.

    >>> num_sweeps("none"), num_sweeps("auto"), num_sweeps("300")
    (0, None, 300)
    """
    if refine in ("none", "auto", None):
        return 0 if refine == "none" else None
    if not refine.isdecimal():
        raise InputError(f"--refine is '{refine}'; give a number of sweeps, auto or none")
    return int(refine)


def examples(*lines: str) -> str:
    """Text below a command's help, one example per line; \\b keeps the lines as they are."""
    return "\b\n" + "\n".join(["Examples:", *(f"  $ {line}" for line in lines)])
