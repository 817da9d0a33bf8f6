"""The definition of a graph format, and the last steps of every reader."""

import re
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from operator import eq
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.foundation.wording import counted
from diffuco.graphs.formats.source import Source, quoted
from diffuco.graphs.graph import Graph

MAX_TABLE = 4
"""A table of all numbers between two labels may have this many entries per label; beyond, labels are sorted."""
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,99}")


@dataclass(frozen=True)
class Format:
    """One file format: how it is recognised, what it can hold, and its reader and writer."""

    name: str
    suffixes: tuple[str, ...]
    description: str
    read: Callable[[Source], list[Graph]]
    write: Callable[[Graph, BinaryIO], None] | None = None
    """None if the format can only be read."""
    holds: frozenset[str] = frozenset()
    """Which of `edge_weights`, `node_weights` and `labels` a file can hold; the writer warns about the others."""


class EdgeRows(NamedTuple):
    """The edges of a file, one row per edge line."""

    pairs: NDArray[np.int64]
    """[E, 2], node indices counted from 0."""
    weights: NDArray[np.float64] | None
    lines: NDArray[np.int64]
    """[E], the line of each edge; 0 if the file has no lines."""


class Header(NamedTuple):
    """The counts a file declares, and the line that declares them."""

    num_nodes: int
    num_edges: int
    line: int | None


def make_header(source: Source, counts: Sequence[float], line: int | None) -> Header:
    """The declared counts of nodes and edges; counts that cannot be true are refused."""
    for kind, count in zip(("nodes", "edges"), counts, strict=True):
        if not (count >= 0 and count == np.floor(count) and np.isfinite(count)):
            raise source.error(f"{count:g} {kind}; write the number of {kind}, a whole number that is 0 or more", line)
    source.check_num_nodes(int(counts[0]), line)
    return Header(int(counts[0]), int(counts[1]), line)


def checked_nodes(
    source: Source, ids: NDArray[np.float64], lines: NDArray[np.int64], num_nodes: int, *, first: int
) -> NDArray[np.int64]:
    """Convert node numbers counted from `first` to indices counted from 0; `ids` is [E] or [E, 2], one row per line."""
    rows = ids.reshape(len(lines), 1 if ids.ndim == 1 else 2)
    with np.errstate(invalid="ignore"):
        good = (rows >= first) & (rows < num_nodes + first) & (rows == np.floor(rows))
    bad = np.flatnonzero(~good.all(axis=1))
    if len(bad):
        worst = rows[bad[0]][~good[bad[0]]][0]
        raise source.error(
            f"{worst:.17g} is not a node; nodes are numbered {first} to {num_nodes + first - 1} here,"
            " correct the line or the number of nodes",
            int(lines[bad[0]]),
        )
    return ids.astype(np.int64) - first


def check_finite(source: Source, weights: NDArray[np.float64], lines: NDArray[np.int64]) -> None:
    """Refuse NaN and infinity with an error that names the line."""
    bad = np.flatnonzero(~np.isfinite(weights))
    if len(bad):
        raise source.error(f"weight {weights[bad[0]]}; write a finite number", int(lines[bad[0]]))


def check_not_negative(source: Source, weights: NDArray[np.float64], lines: NDArray[np.int64]) -> None:
    """Refuse negative node weights, which DIMACS and METIS do not have."""
    bad = np.flatnonzero(weights < 0)
    if len(bad):
        raise source.error(
            f"node weight {weights[bad[0]]:g}; node weights are 0 or more in this format", int(lines[bad[0]])
        )


def unless_all_one(weights: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """The weights, or None if all are 1, so that a file that writes out such weights reads as unweighted."""
    return None if weights is None or bool(np.all(weights == 1)) else weights


def attribute_weights(values: Sequence[Any], owner: str) -> NDArray[np.float64] | None:
    """Weights given as attributes, or None if none is given; missing weights are 1, as in networkx."""
    if all(value is None for value in values):
        return None
    try:
        return unless_all_one(np.array([1.0 if value is None else float(value) for value in values]))
    except (TypeError, ValueError) as error:
        raise InputError(f"the weight of {owner} is not a number ({error}); give numbers") from error


def as_integers(labels: list[str]) -> list[int] | None:
    """The labels as integers; None if one is not a whole number as Python writes it, such as `07`, or two are equal."""
    if not all(map(_WHOLE_NUMBER.fullmatch, labels)):
        return None
    numbers = [int(label) for label in labels]
    return numbers if len(set(numbers)) == len(numbers) else None


def numbered(names: NDArray[Any]) -> tuple[Sequence[int], NDArray[np.int64]]:
    """The labels of the nodes if these whole numbers name them, in order, and the node of each name.

    >>> labels, nodes = numbered(np.array([[7, 5], [5, 9]]))
    >>> labels, nodes.tolist()
    ([5, 7, 9], [[1, 0], [0, 2]])
    """
    lowest, highest = (int(names.min()), int(names.max())) if names.size else (0, -1)
    if highest - lowest >= MAX_TABLE * names.size + 1 or highest > np.iinfo(np.int64).max:
        distinct, nodes = np.unique(names, return_inverse=True)
        return distinct.tolist(), nodes.reshape(names.shape)
    nodes = names.astype(np.int64, copy=False)
    nodes = nodes - lowest if lowest else nodes
    is_label = np.zeros(highest - lowest + 1, dtype=np.bool_)
    is_label[nodes] = True
    labels = np.flatnonzero(is_label)
    if len(labels) == len(is_label):
        return range(len(labels)) if lowest == 0 else (labels + lowest).tolist(), nodes
    return (labels + lowest).tolist(), (np.cumsum(is_label) - 1)[nodes]


def unless_counted(labels: Sequence[Hashable]) -> Sequence[Hashable]:
    """The labels; those that are 0, 1, 2, ... are what nodes are called anyway."""
    numbers = range(len(labels))
    return numbers if all(map(eq, labels, numbers)) else labels


def build_graph(
    source: Source,
    rows: EdgeRows,
    num_nodes: int,
    *,
    node_weights: NDArray[np.float64] | None = None,
    labels: Sequence[Hashable] = (),
    name: str | None = None,
) -> Graph:
    """The graph of these edges; self-loops and repeated edges are dropped with a warning that names the file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GraphWarning)
        graph = Graph.from_edges(
            rows.pairs,
            num_nodes,
            edge_weights=rows.weights,
            node_weights=node_weights,
            labels=labels,
            name=source.name if name is None else name,
        )
    for warning in caught:
        warn(source, str(warning.message))
    if (row := other_weight(graph, rows.pairs, rows.weights)) is not None:
        line = f"line {rows.lines[row]} gives" if rows.lines[row] else "the file also gives"
        u, v = (graph.labels[node] for node in rows.pairs[row])
        warn(source, f"{line} the edge of {quoted(str(u))} and {quoted(str(v))} another weight; the first one counts")
    # Only now: a weight may have gone with its self-loop.
    return replace(graph, edge_weights=unless_all_one(graph.edge_weights))


def other_weight(graph: Graph, pairs: NDArray[np.int64], weights: NDArray[np.float64] | None) -> int | None:
    """The first row that gives an edge of this graph another weight than a row before it; None if no row does."""
    if weights is None or len(pairs) == graph.num_edges:
        return None
    keys = np.minimum(*pairs.T) * graph.num_nodes + np.maximum(*pairs.T)
    order = np.argsort(keys, kind="stable")
    again = order[1:][(np.diff(keys[order]) == 0) & (weights[order][1:] != weights[order][:-1])]
    again = again[pairs[again, 0] != pairs[again, 1]]
    return int(again.min()) if len(again) else None


def warn(source: Source, message: str) -> None:
    """Issue a `GraphWarning` that names the file."""
    warnings.warn(GraphWarning(f"{source.shown}: {message}"), stacklevel=3)


def check_num_edges(source: Source, header: Header, num_lines: int, num_distinct: int) -> None:
    """Check the declared number of edges; some files count all edge lines, others only the distinct edges."""
    if header.num_edges not in (num_lines, num_distinct):
        distinct = "" if num_distinct == num_lines else f" ({num_distinct} distinct)"
        raise source.error(
            f"{counted(header.num_edges, 'edge')} declared, {num_lines}{distinct} found;"
            " correct the number, or restore the missing end of the file",
            header.line,
        )
