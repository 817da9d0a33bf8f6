"""Files of references: what is known about the optima of a dataset's test graphs, one CSV file per problem.

`FOLDER` holds those that ship with the package. A row is a graph, given by its place in the test set and the beginning
of its digest. So a reference is found whatever the graph is called, and is never used for another graph.
"""

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from diffuco.foundation.errors import InputError
from diffuco.foundation.files import replacing

FOLDER = Path(__file__).parent / "reference_data"
KEY_LENGTH = 16
"""Hexadecimal digits of a digest that are kept: among a million graphs, two share them once in 30 million tries."""
COLUMNS = (
    *("graph", "digest", "objective", "bound", "proven", "solver", "version", "time_limit_s", "seconds"),
    *("runs", "agreeing"),
)


class Reference(NamedTuple):
    """What is known about the optimum of one graph."""

    objective: float
    bound: float
    """No solution is better than this."""
    proven: bool
    """Whether the objective is optimal."""
    solver: str
    version: str
    time_limit_s: float
    seconds: float
    """Time of the solver, on the machine where it ran."""
    runs: int = 1
    """Independent runs of a heuristic, each with its own seed."""
    agreeing: int = 1
    """How many of them found this objective, which is the evidence if it is not proven."""


class Row(NamedTuple):
    """One line of a file."""

    place: int
    """Position of the graph in the test set, from 0."""
    key: str
    reference: Reference


def key_of(digest: str) -> str:
    """The part of a graph's digest that files keep."""
    return digest[:KEY_LENGTH]


def packaged_references(problem: str) -> dict[str, Reference]:
    """All references for a problem that ship with the package, by key."""
    files = sorted(FOLDER.glob(f"*-{problem}.csv"))
    return {row.key: row.reference for path in files for row in read_rows(path)}


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, none if it does not exist; a damaged file raises `InputError`, which names the line."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            if tuple(next(lines, ())) != COLUMNS:
                raise InputError(f"{path}: not a file of references; the first line must be {','.join(COLUMNS)}")
            return [_row(path, lines.line_num, cells) for cells in lines]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a file of references ({error})") from error


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file in the order of the test set, completely or not at all."""
    try:
        with replacing(path) as out:
            out.write((",".join(COLUMNS) + "\n").encode())
            out.writelines((",".join(_cells(row)) + "\n").encode() for row in sorted(rows))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another folder") from error


def _row(path: Path, line: int, cells: list[str]) -> Row:
    try:
        values: Mapping[str, str] = dict(zip(COLUMNS, cells, strict=True))
        reference = Reference(
            objective=float(values["objective"]),
            bound=float(values["bound"]),
            proven={"yes": True, "no": False}[values["proven"]],
            solver=values["solver"],
            version=values["version"],
            time_limit_s=float(values["time_limit_s"]),
            seconds=float(values["seconds"]),
            runs=int(values["runs"]),
            agreeing=int(values["agreeing"]),
        )
        row = Row(int(values["graph"]), values["digest"], reference)
    except (ValueError, KeyError):
        raise InputError(f"{path}, line {line}: damaged; delete the line or restore the file") from None
    numbers_fit = math.isfinite(reference.objective) and (
        reference.bound == reference.objective or not reference.proven
    )
    if len(row.key) != KEY_LENGTH or not numbers_fit:
        raise InputError(f"{path}, line {line}: damaged; delete the line or restore the file")
    return row


def _cells(row: Row) -> list[str]:
    known = row.reference
    numbers = [f"{number:.12g}" for number in (known.objective, known.bound)]
    times = [f"{known.time_limit_s:g}", f"{known.seconds:.3g}"]
    proven, counts = "yes" if known.proven else "no", [str(known.runs), str(known.agreeing)]
    return [str(row.place), row.key, *numbers, proven, known.solver, known.version, *times, *counts]
