"""Writing files completely or not at all, and writing tables of numbers in bulk."""

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.files import replacing
from diffuco.graphs.graph import Graph

_ROWS_PER_PIECE = 100_000

COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda plain: gzip.GzipFile(filename="", fileobj=plain, mode="wb", compresslevel=6, mtime=0),
    ".bz2": lambda plain: bz2.BZ2File(plain, "wb"),
    ".xz": lambda plain: lzma.LZMAFile(plain, "wb"),  # noqa: SIM115 (the caller opens it in a `with`)
}
"""For each suffix, a function that wraps a stream in one that compresses what is written to it."""


@contextmanager
def open_for_writing(path: str | Path) -> Iterator[BinaryIO]:
    """A stream that becomes the file `path` when the block ends without error; `-` is standard output."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if "\0" in str(path):
        raise InputError(f"{str(path)!r}: a path cannot contain a zero byte; choose another path")
    try:
        with _open_file(Path(path)) as stream:
            yield stream
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); choose another path") from error


@contextmanager
def _open_file(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not path.is_file() and not path.is_dir():  # a device or pipe cannot be replaced
        with path.open("wb") as stream:
            yield stream
        return
    with replacing(path) as plain:
        suffix = path.suffix.lower()
        if suffix not in COMPRESSORS:
            yield plain
            return
        with COMPRESSORS[suffix](plain) as stream:
            yield stream


def write_line(out: BinaryIO, text: str) -> None:
    """Write one line of text."""
    out.write(f"{text}\n".encode())


def write_rows(out: BinaryIO, table: Sequence[NDArray[Any]], *, prefix: str = "") -> None:
    """Write `table`, a list of columns, row by row; whole numbers are written without a decimal point."""
    whole = [bool(np.all((column == np.floor(column)) & (np.abs(column) < 2**53))) for column in table]
    template = prefix + " ".join("%d" if is_whole else "%r" for is_whole in whole) + "\n"
    for start in range(0, len(table[0]), _ROWS_PER_PIECE):
        piece = [column[start : start + _ROWS_PER_PIECE].tolist() for column in table]
        cells = [cell for row in zip(*piece, strict=True) for cell in row]
        out.write((template * len(piece[0]) % tuple(cells)).encode())


def number_texts(column: NDArray[Any]) -> list[str]:
    """Numbers as text, whole ones without a decimal point; reading them gives the same numbers."""
    return [str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value) for value in column.tolist()]


def edge_columns(graph: Graph, *, first: int) -> list[NDArray[Any]]:
    """The columns `u v [weight]` with nodes counted from `first`."""
    ends = [graph.edges[:, 0] + first, graph.edges[:, 1] + first]
    return ends if graph.edge_weights is None else [*ends, graph.edge_weights]


def text_labels(graph: Graph, is_allowed: Callable[[str], bool], remedy: str) -> list[str]:
    """The labels as text; labels that could not be read back from the file are refused."""
    labels = [str(label) for label in graph.labels]
    for label in labels:
        if not is_allowed(label):
            raise InputError(f"the node label {label!r} cannot be written in this format; {remedy}")
    if len(set(labels)) < len(labels):
        raise InputError("two node labels are the same when written as text; rename one")
    return labels


def require_weights_not_negative(node_weights: NDArray[np.float64]) -> None:
    """Refuse to write negative node weights, which the reader of the format would refuse."""
    if len(node_weights) and node_weights.min() < 0:
        raise InputError(f"node weight {node_weights.min():g}; this format allows none below 0, write .graphml or .npz")
