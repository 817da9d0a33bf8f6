"""Tables of edges with quoting, under an optional row of column names: `.csv` and `.tsv`.

The first row decides whether commas, semicolons or tabs separate the columns. The names may choose the columns: a
table of five columns is read if two of them are called source and target. Lines that begin with `#` or `%` are comments
only above the first other line, because labels may begin so.
"""

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from typing import BinaryIO

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.graphs.formats.base import Format, warn
from diffuco.graphs.formats.edge_table import Record, decoded_lines, read_table
from diffuco.graphs.formats.numbers import LineKinds
from diffuco.graphs.formats.output import number_texts, text_labels
from diffuco.graphs.formats.source import Source, quoted
from diffuco.graphs.graph import Graph


def read(source: Source, preferred: str) -> list[Graph]:
    """The one graph of a table."""
    skipped = _comments_above(source)
    mark = _separator(source, preferred, skipped)
    comments = takewhile(lambda found: found[0] <= skipped, _lines(source, 0))
    if shown := next((f"line {line}, {quoted(text)}," for line, text in comments if mark in text), ""):
        warn(source, f"{shown} is read as a comment; put source{mark}target above it if it is an edge")
    kinds = LineKinds(comments=b"", separators=mark.encode(), has_labels=True, skipped_line=skipped)
    return [read_table(source, lambda: _records(source, mark, skipped), kinds, has_names=True)]


def _comments_above(source: Source) -> int:
    """How many lines come before the first row; none if all rows look like comments."""
    rows = (line for block in source.blocks() for line, _ in decoded_lines(source, block))
    return next(rows, 1) - 1


def _separator(source: Source, preferred: str, skipped: int) -> str:
    line, first = next(_lines(source, skipped), (1, ""))
    unquoted = re.sub(r'"[^"]*"', "", first)
    present = [mark for mark in dict.fromkeys((preferred, ",", ";", "\t")) if mark in unquoted]
    if present[:2] != [",", ";"]:
        return present[0] if present else preferred
    fitting = [mark for mark in ";," if _fits(source, mark, skipped)]
    if not fitting:
        raise source.error("neither commas nor semicolons fit all rows; put quotes around labels that have them", line)
    if len(fitting) == 2:
        warn(source, "columns end at ';', though ',' would fit as well; put quotes around labels that have one")
    return fitting[0]


def _fits(source: Source, mark: str, skipped: int) -> bool:
    """Whether all rows have the same number of columns, two or more; a row without commas and semicolons is a node."""
    try:
        widths = {len(row) for _, row in _records(source, mark, skipped) if len(row) > 1 or re.search("[,;]", row[0])}
    except InputError:
        return False
    return len(widths) == 1 and widths != {1}


def _records(source: Source, separator: str, skipped: int) -> Iterator[Record]:
    numbers: list[int] = []

    def lines() -> Iterator[str]:
        for line, text in _lines(source, skipped):
            numbers.append(line)
            yield text + "\n"

    rows = csv.reader(lines(), delimiter=separator, skipinitialspace=True, strict=True)
    while True:
        try:
            columns = next(rows, None)
        except csv.Error as error:
            raise source.error(f"not a CSV row ({error}); correct its quotes", numbers[-1]) from error
        if columns is None:
            return
        yield numbers[-1], columns


def _lines(source: Source, skipped: int) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that are not empty, without so many lines at the start."""
    for block in source.blocks():
        for line, text in decoded_lines(source, block, comments=""):
            if line > skipped:
                yield line, text


def write(graph: Graph, out: BinaryIO, separator: str) -> None:
    """Write the edges by label under a row of column names, so that no row of labels is mistaken for one."""
    labels = text_labels(graph, _fits_a_cell, "write .npz")
    weights = [] if graph.edge_weights is None else number_texts(graph.edge_weights)
    text = io.TextIOWrapper(out, encoding="utf-8", newline="")
    rows = csv.writer(text, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    rows.writerow(["source", "target", "weight"] if weights else ["source", "target"])
    for position, (u, v) in enumerate(graph.edges.tolist()):
        rows.writerow([labels[u], labels[v], weights[position]] if weights else [labels[u], labels[v]])
    rows.writerows([labels[node]] for node in np.flatnonzero(graph.degrees == 0).tolist())
    text.detach()


def _fits_a_cell(label: str) -> bool:
    """Whether the label can be read back: no line break, no blank at its ends."""
    return label != "" and label == label.strip() and label.isprintable()


CSV = Format(
    "csv",
    (".csv",),
    "rows 'u,v[,weight]' with quoted labels where needed, under an optional row of names such as source,target,weight;"
    " also with semicolons, and with the row numbers of pandas",
    partial(read, preferred=","),
    partial(write, separator=","),
    frozenset({"edge_weights", "labels"}),
)
TSV = Format(
    "tsv",
    (".tsv",),
    "the same, separated by tabs",
    partial(read, preferred="\t"),
    partial(write, separator="\t"),
    frozenset({"edge_weights", "labels"}),
)
