"""Edge lists (`.txt`, `.edges`): a line `u v [weight]` per edge, `u` alone for a node, labels of any kind.

Columns are separated by blanks or commas; lines that begin with `#` or `%` are comments. If all labels are whole
numbers, they are kept as integers and the nodes are sorted by them. Otherwise labels are strings, and the nodes are in
order of first appearance.
"""

import math
import re
from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.wording import counted
from diffuco.graphs.formats.base import EdgeRows, Format, as_integers, build_graph, check_finite
from diffuco.graphs.formats.numbers import NUMBER, LineKinds, NotNumericError, NumericLines, read_numbers
from diffuco.graphs.formats.output import number_texts, text_labels, write_line
from diffuco.graphs.formats.source import Block, Source, quoted
from diffuco.graphs.graph import Graph

EXPECTED = "u v or u v weight, or a node alone"
_LARGEST_EXACT = 2**53
"""Beyond this number, the bulk reader would confuse neighbouring labels, because it works with doubles."""


def read(source: Source) -> list[Graph]:
    """The one graph of an edge list."""
    try:
        graph = graph_of_numbers(source, read_numbers(source, LineKinds(commas=True)))
    except NotNumericError:
        graph = None
    return [graph_of_records(source, _records(source)) if graph is None else graph]


def graph_of_numbers(source: Source, table: NumericLines) -> Graph | None:
    """The graph of an edge list that is all numbers; None if its labels are not all small whole numbers."""
    is_edge = table.counts > 1
    starts = np.cumsum(table.counts) - table.counts
    width = int(table.counts[is_edge][0]) if is_edge.any() else 2
    bad = np.flatnonzero((table.counts > 3) | (is_edge & (table.counts != width)))
    if len(bad):
        raise column_error(source, int(table.counts[bad[0]]), width, int(table.lines[bad[0]]))
    ends = np.stack([starts[is_edge], starts[is_edge] + 1], axis=1)
    names = table.values[np.concatenate([ends.ravel(), starts[~is_edge]])]
    with np.errstate(invalid="ignore"):
        if not np.all((np.abs(names) < _LARGEST_EXACT) & (names == np.floor(names))):
            return None
    labels, nodes = np.unique(names.astype(np.int64), return_inverse=True)
    weights = table.values[starts[is_edge] + 2] if width == 3 else None
    lines = table.lines[is_edge]
    if weights is not None:
        check_finite(source, weights, lines)
    rows = EdgeRows(nodes[: ends.size].reshape(-1, 2), weights, lines)
    return _labelled_graph(source, rows, labels.tolist())


def graph_of_records(source: Source, records: Iterable[tuple[int, list[str]]]) -> Graph:
    """The graph of an edge list; each record is the number of a line and its columns."""
    index: dict[str, int] = {}
    ends, weights, lines = array("q"), array("d"), array("q")  # lists would take four times the memory
    width = 0
    for line, columns in records:
        if "" in columns:
            raise source.error("a column is empty; fill it", line)
        nodes = [index.setdefault(label, len(index)) for label in columns[:2]]
        if len(columns) == 1:
            continue
        width = width or len(columns)
        if len(columns) != width or width > 3:
            raise column_error(source, len(columns), width, line)
        ends.extend(nodes)
        lines.append(line)
        if width == 3:
            weights.append(_weight(source, columns[2], line))
    labels, order = _ordered_labels(list(index))
    rows = EdgeRows(
        order[np.array(ends).reshape(-1, 2)],
        np.array(weights) if width == 3 else None,
        np.array(lines),
    )
    return _labelled_graph(source, rows, labels)


def column_error(source: Source, count: int, width: int, line: int) -> Exception:
    """The error for a line with too many columns, or with a different number of columns than the lines before."""
    if count > 3:
        return source.error(f"{count} columns; expected {EXPECTED}", line)
    return source.error(
        f"{counted(count, 'column')}, but the edges before have {width}; give all edges a weight or none", line
    )


def decoded_lines(source: Source, block: Block) -> Iterator[tuple[int, str]]:
    """Number and text of each line of a block that is neither empty nor a comment."""
    try:
        text = block.text.decode()
    except UnicodeDecodeError as error:
        line = block.first_line + block.text.count(b"\n", 0, error.start)
        raise source.error("bytes that are not UTF-8; convert the file to UTF-8", line) from error
    for line, content in enumerate(text.split("\n"), start=block.first_line):
        stripped = content.strip()
        if stripped and stripped[0] not in "#%":
            yield line, content


def _records(source: Source) -> Iterator[tuple[int, list[str]]]:
    for block in source.blocks():
        for line, content in decoded_lines(source, block):
            if "," in content:
                yield line, re.split(r"\s*,\s*|\s+", content.strip())
            else:
                yield line, content.split()


def _weight(source: Source, text: str, line: int) -> float:
    if not NUMBER.fullmatch(text.strip().encode()):
        raise source.error(f"weight {quoted(text)} is not a number; write {EXPECTED}", line)
    weight = float(text)
    if not math.isfinite(weight):
        raise source.error(f"weight {weight}; write a finite number", line)
    return weight


def _ordered_labels(labels: list[str]) -> tuple[Sequence[Hashable], NDArray[np.int64]]:
    """The labels in node order, and the node of each given label."""
    numbers = as_integers(labels)
    if numbers is None:
        return labels, np.arange(len(labels))
    node = {number: position for position, number in enumerate(sorted(numbers))}
    return sorted(numbers), np.array([node[number] for number in numbers], dtype=np.int64)


def _labelled_graph(source: Source, rows: EdgeRows, labels: Sequence[Hashable]) -> Graph:
    if len(labels) > source.max_nodes:
        raise source.error(f"{len(labels)} nodes; at most {source.max_nodes} can be read, give a smaller graph")
    plain = range(len(labels))
    return build_graph(source, rows, len(labels), labels=plain if labels == list(plain) else labels)


def write(graph: Graph, out: BinaryIO) -> None:
    """Write the edges by label, after a comment that keeps the first edge from looking like a Gset header."""
    labels = text_labels(graph, _fits_a_column, "write .csv, .graphml or .npz")
    write_line(out, f"# {graph.num_nodes} nodes, {graph.num_edges} edges")
    weights = [] if graph.edge_weights is None else number_texts(graph.edge_weights)
    for position, (u, v) in enumerate(graph.edges.tolist()):
        write_line(out, f"{labels[u]} {labels[v]} {weights[position] if weights else ''}".rstrip())
    for node in np.flatnonzero(graph.degrees == 0).tolist():
        write_line(out, labels[node])


def _fits_a_column(label: str) -> bool:
    return label.split() == [label] and "," not in label and label[0] not in "#%" and "\0" not in label


FORMAT = Format(
    "edge-list",
    (".edges", ".edgelist", ".el", ".txt"),
    "lines 'u v [weight]' separated by blanks or commas, any labels, '#' and '%' comments",
    read,
    write,
    frozenset({"edge_weights", "labels"}),
)
