"""Edge lists (`.txt`, `.edges`): a line `u v [weight]` per edge, `u` alone for a node, labels of any kind.

Columns are separated by blanks, commas or semicolons; lines that begin with `#` or `%` are comments. A line may end
with the data of its edge as networkx writes it: `u v {'weight': 2.0}`.
"""

import ast
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from diffuco.graphs.formats.base import Format
from diffuco.graphs.formats.column_names import edge_columns
from diffuco.graphs.formats.edge_table import Record, decoded_lines, graph_of_records, read_table, warn_without_edges
from diffuco.graphs.formats.numbers import LineKinds
from diffuco.graphs.formats.output import number_texts, text_labels, write_line
from diffuco.graphs.formats.source import Source, quoted
from diffuco.graphs.graph import Graph

_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
_EDGE_DATA = re.compile(r"\s(?=\{)")
MAX_EDGE_DATA = 10_000
"""Characters of a dictionary behind an edge."""


def read(source: Source) -> list[Graph]:
    """The one graph of an edge list."""
    kinds = LineKinds(separators=b",;", has_labels=True)
    return [read_table(source, lambda: _records(source), kinds, has_names=False)]


def read_neighbours(source: Source) -> list[Graph]:
    """The one graph of an adjacency list."""
    graph = graph_of_records(source, _neighbour_records(source))
    warn_without_edges(source, graph, _neighbour_records(source), " ")
    return [graph]


def _records(source: Source) -> Iterator[Record]:
    for block in source.blocks():
        for line, content in decoded_lines(source, block):
            text = content.strip()
            place = _EDGE_DATA.search(text) if text[-1] == "}" else None
            if place and len(text) - place.end() <= MAX_EDGE_DATA:
                yield line, [*_columns(text[: place.start()]), _weight_in(source, text[place.end() :], line)]
            else:
                yield line, _columns(text)


def _columns(text: str) -> list[str]:
    return _SEPARATOR.split(text) if "," in text or ";" in text else text.split()


def _weight_in(source: Source, text: str, line: int) -> str:
    """The weight in the data of an edge; 1 if there is none, as in networkx."""
    if text == "{}":
        return "1"
    try:
        data = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise source.error(f"{quoted(text)} is not the data of an edge; write {{'weight': 2.0}} or a number", line)
    return str(data.get("weight", 1))


def _neighbour_records(source: Source) -> Iterator[Record]:
    for block in source.blocks():
        for line, content in decoded_lines(source, block):
            node, *neighbours = content.split()
            yield line, [node]
            for neighbour in neighbours:
                yield line, [node, neighbour]


def write(graph: Graph, out: BinaryIO) -> None:
    """Write the edges by label, after a comment that keeps the first edge from looking like a header."""
    labels = text_labels(graph, _fits_a_column, "write .csv, .graphml or .npz")
    write_line(out, f"# {graph.num_nodes} nodes, {graph.num_edges} edges")
    weights = [] if graph.edge_weights is None else number_texts(graph.edge_weights)
    edges = graph.edges.tolist()
    if edges and edge_columns([labels[node] for node in edges[0]]):
        write_line(out, "source target weight" if weights else "source target")
    for position, (u, v) in enumerate(edges):
        write_line(out, f"{labels[u]} {labels[v]} {weights[position] if weights else ''}".rstrip())
    for node in np.flatnonzero(graph.degrees == 0).tolist():
        write_line(out, labels[node])


def _fits_a_column(label: str) -> bool:
    is_one_column = label.split() == [label] and not any(mark in label for mark in ",;\0")
    return is_one_column and label[0] not in "#%" and label[-1] != "}"


FORMAT = Format(
    "edge-list",
    (".edges", ".edgelist", ".el", ".txt"),
    "lines 'u v [weight]' separated by blanks, commas or semicolons, any labels, '#' and '%' comments; also what"
    " networkx.write_edgelist writes",
    read,
    write,
    frozenset({"edge_weights", "labels"}),
)
ADJACENCY = Format(
    "adjlist",
    (".adjlist",),
    "adjacency lists: 'node neighbour neighbour ...' lines, any labels, '#' and '%' comments",
    read_neighbours,
    holds=frozenset({"labels"}),
)
