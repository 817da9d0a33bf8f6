"""Arguments and options that several commands share, and the choices they offer."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from diffuco.foundation.errors import InputError
from diffuco.foundation.values import check_seed


class DecodeName(StrEnum):
    """How samples become solutions: a copy of `Decode` that does not import torch."""

    NONE = "none"
    CE = "ce"
    CE_ST = "ce-st"


class BatchEngine(StrEnum):
    """Where many files are solved."""

    LOCAL = "local"
    RAY = "ray"


PROBLEM_HELP = "What to solve: mis, mvc, max-clique, max-cut, mds or qubo."
Problem = Annotated[str, typer.Argument(metavar="PROBLEM", help=PROBLEM_HELP)]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the graph files.", show_default="from the suffix")
]
Samples = Annotated[int | None, typer.Option(help="Solutions drawn per graph; the best is kept.", show_default="8")]
STEP_FACTOR_HELP = "How often each diffusion step is taken; more is better and slower."
StepFactor = Annotated[int | None, typer.Option(help=STEP_FACTOR_HELP, show_default="3")]
DECODE_HELP = "Conditional expectation: none, node by node (ce), or several nodes at a time (ce-st)."
Decode = Annotated[DecodeName | None, typer.Option(help=DECODE_HELP, show_default="ce")]
TOKEN_HELP = "Nodes that ce-st decides together; each one more doubles the time."
TokenSize = Annotated[int | None, typer.Option(help=TOKEN_HELP, show_default="8")]
ROUNDS_HELP = "How often samples are noised back, denoised again and kept where they are better. The paper has none."
Rounds = Annotated[int | None, typer.Option(help=ROUNDS_HELP, show_default="0")]
REFINE_HELP = (
    "Annealing sweeps from every sample: a number, auto (as many as suit the graph) or none (the paper's method)."
)
Refine = Annotated[str | None, typer.Option("--refine", metavar="SWEEPS", help=REFINE_HELP, show_default="auto")]
Dataset = Annotated[str | None, typer.Option(help="Dataset; `diffuco generate --list` shows them.")]
OwnGraphs = Annotated[
    Path | None, typer.Option("--graphs", help="Folder or file of your own graphs, instead of --dataset.")
]
Split = Annotated[str, typer.Option(help="Part of the dataset: train, validation or test.")]
Count = Annotated[
    int | None, typer.Option(help="Number of graphs, counted from the first.", show_default="all of the split")
]
Method = Annotated[
    str | None,
    typer.Option("--method", help="Solve with this method instead of a model; `diffuco methods` lists them."),
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds per graph.", show_default="the method's own")
]
Seed = Annotated[
    int,
    typer.Option(callback=check_seed, help="Seed of all random numbers; the same seed gives the same result."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
OutputFile = Annotated[Path | None, typer.Option("--output", help="Also write the JSON record to this file.")]


def num_sweeps(refine: str | None) -> int | None:
    """The value of `--refine` as `solve` takes it; None means as many sweeps as suit the graph.

    >>> num_sweeps("none"), num_sweeps("auto"), num_sweeps("300")
    (0, None, 300)
    """
    if refine in ("none", "auto", None):
        return 0 if refine == "none" else None
    if not refine.isdecimal():
        raise InputError(f"--refine is '{refine}'; give a number of sweeps, auto or none")
    return int(refine)


def examples(*lines: str) -> str:
    """Text below the help of a command, one example per line; \\b keeps the line breaks."""
    return "\b\n" + "\n".join(["Examples:", *(f"  $ {line}" for line in lines)])
