"""Tables of edges with quoting, under an optional row of column names: `.csv` and `.tsv`.

The first line decides whether commas, semicolons or tabs separate the columns. The names may choose the columns: a
table of five columns is read if two of them are called source and target.
"""

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

import numpy as np

from diffuco.graphs.formats.base import Format
from diffuco.graphs.formats.edge_table import Record, decoded_lines, read_table
from diffuco.graphs.formats.output import number_texts, text_labels
from diffuco.graphs.formats.source import Source
from diffuco.graphs.graph import Graph


def read(source: Source, preferred: str) -> list[Graph]:
    """The one graph of a table."""
    mark = _separator(source, preferred)
    return [read_table(source, lambda: _records(source, mark), separators=mark.encode(), has_names=True)]


def _separator(source: Source, preferred: str) -> str:
    first = next((text for block in source.blocks() for _, text in decoded_lines(source, block)), "")
    unquoted = re.sub(r'"[^"]*"', "", first)
    return next((mark for mark in (preferred, ",", ";", "\t") if mark in unquoted), preferred)


def _records(source: Source, separator: str) -> Iterator[Record]:
    numbers: list[int] = []
    rows = csv.reader(_lines(source, numbers), delimiter=separator, skipinitialspace=True, strict=True)
    while True:
        try:
            columns = next(rows, None)
        except csv.Error as error:
            raise source.error(f"not a CSV row ({error}); correct its quotes", numbers[-1]) from error
        if columns is None:
            return
        yield numbers[-1], columns


def _lines(source: Source, numbers: list[int]) -> Iterator[str]:
    """The lines for the CSV reader; the number of each line in the file is appended to `numbers`."""
    for block in source.blocks():
        for line, content in decoded_lines(source, block):
            numbers.append(line)
            yield content + "\n"


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
    """Whether the label can be read back: no line break, no blank at its ends, no comment sign first."""
    return label == label.strip() and label.isprintable() and label[:1] not in ("", "#", "%")


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
