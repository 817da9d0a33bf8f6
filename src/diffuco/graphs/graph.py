"""One validated graph: undirected, simple, with optional weights and the user's own node labels."""

import hashlib
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.foundation.wording import counted

MAX_NODES = 2**31 - 1
MAX_WEIGHT = 1e100
"""Objectives are sums of weights; those of larger ones could leave the range of float64."""


class Csr(NamedTuple):
    """Symmetric adjacency in compressed rows: the neighbours of node i are `indices[indptr[i]:indptr[i + 1]]`."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected simple graph. Build it with `from_edges`, which sorts, checks and cleans.

    >>> graph = Graph.from_edges([(0, 1), (2, 1)], num_nodes=4)
    >>> graph
    Graph(num_nodes=4, num_edges=2)
    >>> graph.degrees.tolist()
    [1, 2, 1, 0]
    """

    num_nodes: int
    edges: NDArray[np.int64]
    """[E, 2], each row u < v, rows in lexicographic order, no row twice."""
    edge_weights: NDArray[np.float64] | None = None
    """[E]; None if every edge weighs 1."""
    node_weights: NDArray[np.float64] | None = None
    """[num_nodes]; None if every node weighs 1 (in a QUBO, if the diagonal is 0)."""
    labels: Sequence[Hashable] = ()
    """The user's names for the nodes; `range(num_nodes)` by default."""
    name: str = ""

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", range(self.num_nodes))
        assert len(self.labels) == self.num_nodes
        assert self.edges.shape == (len(self.edges), 2)

    def __repr__(self) -> str:
        name = f"name={self.name!r}, " if self.name else ""
        return f"Graph({name}num_nodes={self.num_nodes}, num_edges={self.num_edges})"

    @classmethod
    def from_edges(
        cls,
        edges: ArrayLike,
        num_nodes: int | None = None,
        *,
        edge_weights: ArrayLike | None = None,
        node_weights: ArrayLike | None = None,
        labels: Sequence[Hashable] = (),
        name: str = "",
    ) -> "Graph":
        """Build a graph from pairs of node indices, dropping self-loops and repeated edges with a warning.

        `num_nodes` defaults to the largest index plus one. If an edge is given several times, its first weight is kept.
        """
        pairs = _as_pairs(edges)
        if num_nodes is None:
            num_nodes = max(int(pairs.max()) + 1 if len(pairs) else 0, len(labels))
        _check_range(pairs, num_nodes)
        if labels and len(labels) != num_nodes:
            raise InputError(
                f"{counted(len(labels), 'label')} for {counted(num_nodes, 'node')}; give one label per node"
            )
        weights = None if edge_weights is None else _as_weights(edge_weights, len(pairs), "edge")
        node_values = None if node_weights is None else _as_weights(node_weights, num_nodes, "node")

        lower, upper = np.minimum(*pairs.T), np.maximum(*pairs.T)
        is_edge = lower != upper
        keys = lower * num_nodes + upper
        if not is_edge.all():
            keys, weights = keys[is_edge], None if weights is None else weights[is_edge]
        distinct, weights = _distinct(keys, weights)
        dropped = ((len(pairs) - len(keys), "self-loop"), (len(keys) - len(distinct), "repeated edge"))
        if texts := [counted(number, noun) for number, noun in dropped if number]:
            warnings.warn(GraphWarning(f"dropped {' and '.join(texts)}"), stacklevel=2)
        return cls(
            num_nodes=num_nodes,
            edges=np.stack(_digits(distinct, num_nodes), axis=1),
            edge_weights=weights,
            node_weights=node_values,
            labels=labels,
            name=name,
        )

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.edges)

    @property
    def density(self) -> float:
        """Share of the possible edges that are present; 0 for fewer than two nodes."""
        possible = self.num_nodes * (self.num_nodes - 1) / 2
        return self.num_edges / possible if possible else 0.0

    def edge_weights_or(self, default: float) -> NDArray[np.float64]:
        """Edge weights, or `default` for every edge of a graph that has none. [E]."""
        return np.full(self.num_edges, default) if self.edge_weights is None else self.edge_weights

    def node_weights_or(self, default: float) -> NDArray[np.float64]:
        """Node weights, or `default` for every node of a graph that has none. [num_nodes]."""
        return np.full(self.num_nodes, default) if self.node_weights is None else self.node_weights

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of every node."""
        return np.bincount(self.edges.ravel(), minlength=self.num_nodes)

    @cached_property
    def csr(self) -> Csr:
        """Symmetric adjacency in compressed rows, with weight 1 where the graph has no edge weights."""
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.degrees)])
        u, v = self.edges.T
        if self.edge_weights is None:
            keys = np.sort(np.concatenate([v * self.num_nodes + u, u * self.num_nodes + v]))
            return Csr(indptr, _digits(keys, self.num_nodes)[1], np.ones(len(keys)))
        # Edges are sorted and lower neighbours come first here, so a stable sort by source leaves all targets sorted.
        order = _stable_order(np.concatenate([v, u]))
        weights = np.concatenate([self.edge_weights, self.edge_weights])
        return Csr(indptr, np.concatenate([u, v])[order], weights[order])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of nodes, edges and weights: equal for equal graphs, independent of their name and labels.

        >>> Graph.from_edges([(0, 1)]).digest == Graph.from_edges([(1, 0)], name="other").digest
        True
        """
        content = hashlib.sha256(f"{self.num_nodes} {self.num_edges}".encode())
        content.update(self.edges.astype("<i8").tobytes())
        for weights in (self.edge_weights, self.node_weights):
            content.update(b"-" if weights is None else weights.astype("<f8").tobytes())
        return content.hexdigest()


def _as_pairs(edges: ArrayLike) -> NDArray[np.int64]:
    given: NDArray[Any] = np.asarray(edges)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2:
        raise InputError(f"edges have shape {given.shape}; expected one row of two node indices per edge, [E, 2]")
    if not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"edges have type {given.dtype}; expected integer node indices")
    return given.astype(np.int64, copy=False)


def _check_range(pairs: NDArray[np.int64], num_nodes: int) -> None:
    if not 0 <= num_nodes <= MAX_NODES:
        raise InputError(f"num_nodes is {num_nodes}; expected 0 to {MAX_NODES}")
    if len(pairs) and not (pairs.min() >= 0 and pairs.max() < num_nodes):
        bad = np.flatnonzero((pairs < 0).any(axis=1) | (pairs >= num_nodes).any(axis=1))
        edge = tuple(pairs[bad[0]].tolist())
        raise InputError(f"edge {edge} names a node outside 0..{num_nodes - 1}; correct it or raise num_nodes")


def _distinct(
    keys: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """The distinct keys in order, each with the first of its weights."""
    if np.all(keys[1:] > keys[:-1]):
        return keys, weights
    if weights is None:
        keys = np.sort(keys)  # ten times as fast as finding the order
    else:
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], weights[order]
    is_first = np.concatenate([[True], keys[1:] != keys[:-1]])
    return keys[is_first], None if weights is None else weights[is_first]


def _digits(keys: NDArray[np.int64], base: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """u and v of keys u * base + v; numpy's divmod takes several times as long."""
    first = keys // max(1, base)
    return first, keys - first * base


def _stable_order(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order that sorts nodes and leaves equal ones as they are."""
    # Sorting numbers is faster than finding their order, so the position becomes the last digit of the number.
    return _digits(np.sort(nodes * len(nodes) + np.arange(len(nodes))), len(nodes))[1]


def _as_weights(weights: ArrayLike, length: int, kind: str) -> NDArray[np.float64]:
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (length,):
        raise InputError(f"{kind} weights have shape {values.shape}; expected one per {kind}, ({length},)")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(f"{kind} weight number {bad[0]} is {values[bad[0]]}; weights must be finite")
    largest = int(np.abs(values).argmax()) if length else 0
    if length and abs(values[largest]) > MAX_WEIGHT:
        told = f"{kind} weight number {largest} is {values[largest]:g}"
        raise InputError(f"{told}; scale the weights to at most {MAX_WEIGHT:g}")
    return values
