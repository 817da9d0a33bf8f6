"""Comma-separated edge lists (`.csv`): rows `u,v[,weight]` with quoting, under an optional row of column names."""

import csv
import io
import string
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from diffuco.graphs.formats.base import Format
from diffuco.graphs.formats.edge_list import decoded_lines, graph_of_numbers, graph_of_records
from diffuco.graphs.formats.numbers import LineKinds, NotNumericError, read_numbers
from diffuco.graphs.formats.output import number_texts, text_labels
from diffuco.graphs.formats.source import Source, quoted
from diffuco.graphs.graph import Graph

HEADERS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"), ("node_1", "node_2"))
"""A first row that begins with one of these pairs of names, in upper or lower case, is a header."""


def read(source: Source) -> list[Graph]:
    """The one graph of a CSV file."""
    try:
        table = read_numbers(source, LineKinds(commas=True, headers=string.ascii_letters.encode()))
    except NotNumericError:
        return [graph_of_records(source, _records(source))]
    titles = [text.decode("utf-8", "replace").split(",") for _, text in table.headers]
    has_numbers_only = not titles or (len(titles) == 1 and table.headers[0][0] == 1 and _is_header(titles[0]))
    graph = graph_of_numbers(source, table) if has_numbers_only else None
    return [graph_of_records(source, _records(source)) if graph is None else graph]


def _is_header(columns: list[str]) -> bool:
    return len(columns) in (2, 3) and tuple(name.strip(' "').lower() for name in columns[:2]) in HEADERS


def _records(source: Source) -> Iterator[tuple[int, list[str]]]:
    numbers: list[int] = []
    rows = csv.reader(_lines(source, numbers), skipinitialspace=True, strict=True)
    is_first = True
    while True:
        try:
            columns = next(rows, None)
        except csv.Error as error:
            raise source.error(f"not a CSV row ({error}); correct its quotes", numbers[-1]) from error
        if columns is None:
            return
        if not (is_first and _is_header(columns)):
            if len(columns) == 1 and any(mark in columns[0] for mark in ";\t"):
                raise source.error(f"one column {quoted(columns[0])}; separate columns with commas", numbers[-1])
            yield numbers[-1], columns
        is_first = False


def _lines(source: Source, numbers: list[int]) -> Iterator[str]:
    """The lines for the CSV reader; the number of each line in the file is appended to `numbers`."""
    for block in source.blocks():
        for line, content in decoded_lines(source, block):
            numbers.append(line)
            yield content + "\n"


def write(graph: Graph, out: BinaryIO) -> None:
    """Write the edges by label under a row of column names, so that no row of labels is mistaken for one."""
    labels = text_labels(graph, _fits_a_cell, "write .npz")
    weights = [] if graph.edge_weights is None else number_texts(graph.edge_weights)
    text = io.TextIOWrapper(out, encoding="utf-8", newline="")
    rows = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    rows.writerow(["source", "target", "weight"] if weights else ["source", "target"])
    for position, (u, v) in enumerate(graph.edges.tolist()):
        rows.writerow([labels[u], labels[v], weights[position]] if weights else [labels[u], labels[v]])
    rows.writerows([labels[node]] for node in np.flatnonzero(graph.degrees == 0).tolist())
    text.detach()


def _fits_a_cell(label: str) -> bool:
    """Whether the label can be read back: no line break or semicolon, no blank at its ends, no comment sign first."""
    return label == label.strip() and label.isprintable() and label[:1] not in ("", "#", "%") and ";" not in label


FORMAT = Format(
    "csv",
    (".csv",),
    "rows 'u,v[,weight]' with quoted labels where needed, under an optional row source,target,weight",
    read,
    write,
    frozenset({"edge_weights", "labels"}),
)
