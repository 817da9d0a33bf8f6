"""Edges given in Python as pairs of labels: lists, arrays, data frames, and the coefficients of a QUBO.

As in edge-list files, the nodes are the labels that occur. Integers are sorted; other labels stay in the order in which
they first appear.
"""

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.formats.base import numbered, other_weight, unless_all_one, unless_counted
from diffuco.graphs.formats.column_names import edge_columns
from diffuco.graphs.graph import Graph

EXPECTED = "give pairs (u, v) or triples (u, v, weight) of integer or text labels"


class Pairs(NamedTuple):
    """Edges between nodes counted from 0, and the labels of the nodes."""

    ends: NDArray[np.int64]
    """[E, 2]"""
    weights: NDArray[np.float64] | None
    labels: Sequence[Hashable]

    def graph(self) -> Graph:
        """The graph with these edges; self-loops and repeated edges are dropped with a warning."""
        weights = unless_all_one(self.weights)
        graph = Graph.from_edges(self.ends, len(self.labels), edge_weights=weights, labels=self.labels)
        if (row := other_weight(graph, self.ends, weights)) is not None:
            u, v = (self.labels[node] for node in self.ends[row])
            warnings.warn(
                GraphWarning(f"edge {row} gives {u!r} and {v!r} another weight; the first one counts"), stacklevel=2
            )
        return graph

    def matrix(self) -> Any:
        """The sum of the weights of every pair, as a square sparse matrix."""
        assert self.weights is not None
        size = len(self.labels)
        return scipy.sparse.coo_array((self.weights, (self.ends[:, 0], self.ends[:, 1])), shape=(size, size))


def is_edge_list(source: object) -> bool:
    """Whether a list is one graph, given by its edges, and not a list of graphs.

    >>> is_edge_list([("a", "b", 2.5)]), is_edge_list([[(0, 1), (1, 2)], "graph.clq"]), is_edge_list([])
    (True, False, False)
    """
    return isinstance(source, list | tuple) and any(
        isinstance(item, list | tuple) and bool(item) and isinstance(item[0], str | Real) for item in source
    )


def read_pairs(rows: Sequence[Any]) -> Pairs:
    """The edges of a list of pairs or triples.

    >>> read_pairs([(7, 5), (5, 9)]).labels, read_pairs([("b", "a", 2)]).labels
    ([5, 7, 9], ['b', 'a'])
    """
    numbers = _as_integers(rows)
    if numbers is not None:
        if all(isinstance(row, list) for row in rows):
            check_is_no_matrix(numbers)
        return read_array(numbers)
    widths = {len(row) if isinstance(row, list | tuple) else 0 for row in rows}
    if not widths <= {2, 3}:
        bad = next(row for row in rows if not isinstance(row, list | tuple) or len(row) not in (2, 3))
        raise InputError(f"{_shown(bad)} is not an edge; {EXPECTED}, and several graphs as a list of such lists")
    if len(widths) > 1:
        raise InputError("some edges have a weight and others have none; give all of them a weight or none")
    ends = [(_label(row[0]), _label(row[1])) for row in rows]
    return _numbered(ends, [_weight(row[2]) for row in rows] if widths == {3} else None)


def read_array(edges: NDArray[Any]) -> Pairs:
    """The edges of an integer array with two columns, or three with the weights."""
    labels, nodes = numbered(edges[:, :2])
    weights = edges[:, 2].astype(np.float64) if edges.shape[1] == 3 else None
    return Pairs(nodes, weights, labels)


def check_is_no_matrix(table: NDArray[Any]) -> None:
    """Refuse a table of edges that looks like an adjacency matrix and would be another graph as one."""
    if looks_like_matrix(table) and not np.array_equal(table, [[0, 1], [1, 0]]):
        remedy = "give a matrix as np.array(table, dtype=float), edges as a list of tuples"
        raise InputError(f"the table may be edges or a matrix; {remedy}")


def looks_like_matrix(table: NDArray[Any]) -> bool:
    """Whether a table of numbers is symmetric with zeros on its diagonal."""
    is_table = table.ndim == 2 and table.dtype.kind in "iuf"
    return is_table and np.array_equal(table, table.T) and not table.diagonal().any()


def is_frame(source: object) -> bool:
    """Whether this is a data frame, of pandas or polars; neither has to be installed."""
    return all(hasattr(source, name) for name in ("columns", "dtypes", "to_dict", "__getitem__"))


def is_matrix_frame(frame: Any) -> bool:
    """Whether a frame is an adjacency matrix: the names of its rows are those of its columns.

    Rows and columns that pandas numbered itself say little, so up to 3 by 3 the entries must look like a matrix too.
    """
    index = getattr(frame, "index", None)  # polars has none
    if index is None or list(map(str, index)) != list(map(str, frame.columns)):
        return False
    is_numbered = type(index).__name__ == type(frame.columns).__name__ == "RangeIndex"
    return not is_numbered or len(index) > 3 or looks_like_matrix(frame.to_numpy())


def read_frame(frame: Any) -> Pairs:
    """The edges of a data frame: its columns source, target and weight, or else its first two or three columns."""
    names = list(frame.columns)
    chosen = edge_columns([str(name) for name in names])
    if chosen is None and len(names) not in (2, 3):
        raise InputError(f"the frame has {len(names)} columns; give two named source and target, and perhaps weight")
    columns = [frame[names[position]].to_list() for position in chosen or range(len(names))]
    rows = list(zip(*columns, strict=True))
    if chosen is None:
        check_is_no_matrix(np.array(rows))
    return read_pairs(rows)


def read_coefficients(coefficients: Mapping[Any, Any]) -> Pairs:
    """The entries of a QUBO given as `{(i, j): value}`, whose labels may be anything.

    >>> read_coefficients({("b", "b"): -1, ("a", "b"): 2}).matrix().toarray().tolist()
    [[-1.0, 0.0], [2.0, 0.0]]
    """
    for key in coefficients:
        if not isinstance(key, tuple) or len(key) != 2:
            raise InputError(f"{_shown(key)} is not a pair; give a QUBO as a dictionary {{(i, j): value}}")
    return _numbered(list(coefficients), [_weight(value) for value in coefficients.values()])


def _as_integers(rows: Sequence[Any]) -> NDArray[Any] | None:
    """The rows as an array if all of them hold two or three integers, which is the fast way."""
    try:
        found = np.asarray(rows)
    except (ValueError, OverflowError):
        return None
    is_table = found.ndim == 2 and found.shape[1] in (2, 3) and found.dtype.kind in "iu"
    return found if is_table else None


def _numbered(ends: Sequence[tuple[Hashable, Hashable]], weights: list[float] | None) -> Pairs:
    labels: Iterable[Hashable] = dict.fromkeys(label for pair in ends for label in pair)
    if all(isinstance(label, int) for label in labels):
        labels = sorted(labels)  # type: ignore[type-var]
    index = {label: node for node, label in enumerate(labels)}
    pairs = np.array([(index[u], index[v]) for u, v in ends], dtype=np.int64).reshape(-1, 2)
    return Pairs(pairs, None if weights is None else np.array(weights), unless_counted(list(index)))


def _label(value: Any) -> int | str:
    if isinstance(value, str):
        return str(value)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and (isinstance(value, Integral) or float(value).is_integer()):  # a gap makes a column floats
        return int(value)
    raise InputError(f"{_shown(value)} is not a node label; {EXPECTED}")


def _weight(value: Any) -> float:
    if isinstance(value, Mapping):  # the data of an edge, as networkx lists it
        value = value.get("weight", 1)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"the weight {_shown(value)} is not a number; {EXPECTED}") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
