"""Edge tables: rows `u v [weight]` of text with labels of any kind, under a row of column names or none.

If all labels are whole numbers in their usual spelling, they are kept as integers and the nodes are sorted by them.
Otherwise, as with `07`, `+7` or `7.0`, labels are strings, and the nodes are in order of first appearance.
"""

import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.wording import counted
from diffuco.graphs.formats.base import (
    EdgeRows,
    as_integers,
    build_graph,
    check_finite,
    numbered,
    unless_counted,
    warn,
)
from diffuco.graphs.formats.column_names import are_own_names, edge_columns, stem
from diffuco.graphs.formats.numbers import NUMBER, LineKinds, NotNumericError, NumericLines, read_numbers
from diffuco.graphs.formats.source import Block, Source, quoted
from diffuco.graphs.graph import Graph

EXPECTED = "u v or u v weight, or a node alone"
_LARGEST_EXACT = 2**53
"""Beyond this number, the bulk reader would confuse neighbouring labels, because it works with doubles."""

Record = tuple[int, list[str]]
"""The number of a line and its columns."""


class Names(NamedTuple):
    """A row of column names."""

    line: int
    names: list[str]
    chosen: list[int]
    """Where the ends and the weight are."""


def read_table(source: Source, records: Callable[[], Iterator[Record]], kinds: LineKinds, *, has_names: bool) -> Graph:
    """The graph of a table; `has_names` says that column names belong to the format, so that they are no surprise."""
    names = _find_names(source, records, kinds)
    if names is not None and not (has_names and are_own_names(names.names)):
        shown = quoted(",".join(names.names))
        warn(source, f"line {names.line}, {shown}, is read as column names; move it down if it is an edge")
    graph = _graph_of_numbers(source, kinds, names)
    if graph is None:
        graph = graph_of_records(source, _below(source, names, records()))
    warn_without_edges(source, graph, _below(source, names, records()), kinds.separators.decode()[0])
    return graph


def warn_without_edges(source: Source, graph: Graph, records: Iterator[Record], separator: str) -> None:
    """Name the first line of a table without edges: it may have another separator, as in `Ann|Bob`."""
    line, columns = (0, []) if graph.num_edges else next(records, (0, []))
    if len(columns) == 1:
        found = f"no edges: line {line}, {quoted(columns[0])}, is read as a node alone"
        warn(source, f"{found}; put {separator!r} between the ends of an edge")


def graph_of_records(source: Source, records: Iterable[Record]) -> Graph:
    """The graph of rows of text."""
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
            raise _column_error(source, len(columns), width, line)
        ends.extend(nodes)
        lines.append(line)
        if width == 3:
            weights.append(_weight(source, columns[2], line))
    labels, order = _ordered_labels(source, list(index))
    rows = EdgeRows(
        order[np.array(ends).reshape(-1, 2)],
        np.array(weights) if width == 3 else None,
        np.array(lines),
    )
    return _labelled_graph(source, rows, unless_counted(labels))


def decoded_lines(source: Source, block: Block, *, comments: str = "#%") -> Iterator[tuple[int, str]]:
    """Number and text of each line of a block that is neither empty nor a comment."""
    try:
        text = block.text.decode()
    except UnicodeDecodeError as error:
        line = block.first_line + block.text.count(b"\n", 0, error.start)
        raise source.error("bytes that are not UTF-8; convert the file to UTF-8", line) from error
    for line, content in enumerate(text.split("\n"), start=block.first_line):
        stripped = content.strip()
        if stripped and stripped[0] not in comments:
            yield line, content


def _find_names(source: Source, records: Callable[[], Iterator[Record]], kinds: LineKinds) -> Names | None:
    """The column names if the first row has them.

    It has them if the names are typical of columns and do not recur as labels; if it alone has no number for a weight;
    or if it is the very first line and every other row is numbers.
    """
    rows = records()
    first, second = next(rows, None), next(rows, None)
    if first is None or len(first[1]) < 2 or _is_number(first[1][0]):
        return None
    line, names = first
    chosen = edge_columns(names)
    found = Names(line, names, list(range(len(names))) if chosen is None else chosen)
    if (names[0] == "" and chosen is not None) or are_own_names(names):
        return found
    if second is None or len(second[1]) != len(names):
        return None
    if len(names) > 2 and not _is_number(_with_point(names[2])) and _is_number(second[1][2]):
        return found
    if chosen is not None and not _recur(names, islice(records(), 1, None)):
        return found
    is_alone = line == 1 and not any(map(_is_number, names)) and all(map(_is_number, second[1]))
    return found if is_alone and _is_numeric(source, replace(kinds, skipped_line=1, has_labels=False)) else None


def _recur(names: list[str], records: Iterable[Record]) -> bool:
    """Whether labels are called like the first two names, but for their number: `node1,node2` may be an edge."""
    stems = {stem(name) for name in names[:2]}
    return any(stem(label) in stems for _, columns in records for label in columns[:2])


def _is_numeric(source: Source, kinds: LineKinds) -> bool:
    try:
        read_numbers(source, kinds)
    except NotNumericError:
        return False
    return True


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text.strip().encode()) is not None


def _with_point(text: str) -> str:
    """A number with a decimal comma as one with a decimal point."""
    return text.replace(",", ".", 1)


def _below(source: Source, names: Names | None, records: Iterator[Record]) -> Iterator[Record]:
    """The chosen columns of the rows below the names, or all columns of all rows."""
    if names is None:
        yield from records
        return
    for line, columns in islice(records, 1, None):
        if any(columns[len(names.names) :]):
            found = f"{counted(len(columns), 'column')} under {counted(len(names.names), 'name')}"
            raise source.error(f"{found}; name all columns, or remove a separator inside a column", line)
        yield line, [columns[position] for position in names.chosen if position < len(columns)]


def _graph_of_numbers(source: Source, kinds: LineKinds, names: Names | None) -> Graph | None:
    """The graph of a table that is all numbers, read in bulk; None if it is none, or has more columns than names."""
    if names is not None:
        if names.chosen != list(range(len(names.names))):
            return None
        kinds = replace(kinds, skipped_line=names.line)
    try:
        found = _edges_of_numbers(source, read_numbers(source, kinds))
    except NotNumericError:
        return None
    if found is None or (names is not None and len(names.names) == 2 and found[0].weights is not None):
        return None
    return _labelled_graph(source, *found)


def _edges_of_numbers(source: Source, table: NumericLines) -> tuple[EdgeRows, Sequence[int]] | None:
    """Edges and labels of a table that is all numbers; None if its labels, which are whole, are not all small."""
    is_edge = table.counts > 1
    width = int(table.counts[is_edge.argmax()]) if is_edge.any() else 2
    bad = np.flatnonzero((table.counts > 3) | (is_edge & (table.counts != width)))
    if len(bad):
        raise _column_error(source, int(table.counts[bad[0]]), width, int(table.lines[bad[0]]))
    edges, alone = table, table.values[:0]
    if not is_edge.all():
        edges, alone = table.select(is_edge), table.select(~is_edge).values
    cells = edges.values.reshape(-1, width)
    names = cells[:, :2].ravel()
    names = np.concatenate([names, alone]) if len(alone) else names
    if len(names) and not -_LARGEST_EXACT < names.min() <= names.max() < _LARGEST_EXACT:
        return None
    labels, nodes = numbered(names.astype(np.int64))
    weights = cells[:, 2].copy() if width == 3 else None
    if weights is not None:
        check_finite(source, weights, edges.lines)
    return EdgeRows(nodes[: 2 * len(cells)].reshape(-1, 2), weights, edges.lines), labels


def _column_error(source: Source, count: int, width: int, line: int) -> Exception:
    """The error for a line with too many columns, or with a different number of columns than the lines before."""
    if count > 3:
        return source.error(f"{count} columns; expected {EXPECTED}, or names source and target above them", line)
    return source.error(
        f"{counted(count, 'column')}, but the edges before have {width}; give all edges a weight or none", line
    )


def _weight(source: Source, text: str, line: int) -> float:
    if not _is_number(text):
        remedy = "a decimal point" if _is_number(_with_point(text)) else EXPECTED
        raise source.error(f"weight {quoted(text)} is not a number; write {remedy}", line)
    weight = float(text.strip())
    if not math.isfinite(weight):
        raise source.error(f"weight {weight}; write a finite number", line)
    return weight


def _ordered_labels(source: Source, labels: list[str]) -> tuple[Sequence[Hashable], NDArray[np.int64]]:
    """The labels in node order, and the node of each given label."""
    numbers = as_integers(labels)
    if numbers is None:
        _warn_of_spellings(source, labels)
        return labels, np.arange(len(labels))
    node = {number: position for position, number in enumerate(sorted(numbers))}
    return sorted(numbers), np.array([node[number] for number in numbers], dtype=np.int64)


def _warn_of_spellings(source: Source, labels: list[str]) -> None:
    """Name two labels of a table of numbers that are the same number, such as `1.0` and `1`."""
    spelling: dict[float, str] = {}
    for label in labels if all(map(_is_number, labels)) else []:
        other = spelling.setdefault(float(label.strip()), label)
        if other != label:
            found = f"the labels {quoted(other)} and {quoted(label)} are two nodes"
            warn(source, f"{found}; write them alike if they are one")
            return


def _labelled_graph(source: Source, rows: EdgeRows, labels: Sequence[Hashable]) -> Graph:
    source.check_num_nodes(len(labels))
    return build_graph(source, rows, len(labels), labels=labels)
