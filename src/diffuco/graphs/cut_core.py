"""What a cut has to decide of a graph: nodes with at most three neighbours are taken out, without losing anything.

The best side of such a node follows from the sides of its neighbours. What its edges then add to the cut is the same if
all neighbours change sides, so it takes at most four values, and weights of edges between the three neighbours say
exactly which. Others may then have at most three neighbours left, too. Of real networks this leaves a third of the
nodes or less, of trees and of chains of triangles nothing.

Legend: N nodes of the whole graph, M nodes of a layer, S states.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph

MOST = 3
"""Neighbours of a node that is taken out."""
LEAST_LOW = 1e-3
"""Of the nodes that are left: the least that have so few neighbours for another layer."""
DIGITS, LEAST = 12, 1e-200
"""Weights are rounded to so many digits of the largest, so that decimals stay decimals, as exact solvers want them; if
that is smaller than `LEAST`, they are not."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
States = NDArray[np.bool_]


class Layer(NamedTuple):
    """Nodes of which no two are neighbours, taken out together."""

    nodes: Ints
    """[M]."""
    neighbors: Ints
    """[M, 3]; where there are fewer, the node itself."""
    weights: Floats
    """[M, 3] of the edges to them; 0 where there are fewer."""


class CutCore(NamedTuple):
    """The graph that is left, and the way back."""

    graph: Graph
    nodes: Ints
    """Its nodes in the whole graph."""
    layers: list[Layer]
    gain: float
    """What the best sides of all others add to a cut of the core."""
    is_finished: bool = True

    def extend(self, states: States, num_nodes: int) -> States:
        """Cuts of the whole graph from cuts of the core. [nodes of the core, S] -> [N, S]."""
        whole = np.zeros((num_nodes, states.shape[1]), dtype=np.bool_)
        whole[self.nodes] = states
        for nodes, neighbors, weights in reversed(self.layers):
            whole[nodes] = (weights[:, :, None] * (1 - 2 * whole[neighbors].astype(np.int8))).sum(1) > 0
        return whole

    def restrict(self, states: States) -> States:
        """What cuts of the whole graph say about the core. [N, S] -> [nodes of the core, S]."""
        return states[self.nodes]


def cut_core(graph: Graph, *, kept: int | None = None) -> CutCore:
    """The core of a graph for cuts; a maximum cut of it `extend`s to one of the graph. One node may be `kept`.

    >>> triangle_with_tail = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> core = cut_core(triangle_with_tail)
    >>> core.graph, core.gain
    (Graph(num_nodes=0, num_edges=0), 3.0)
    >>> core.extend(np.zeros((0, 1), dtype=np.bool_), 4).ravel().tolist()
    [False, False, True, False]
    """
    size, draws = graph.num_nodes, np.random.default_rng(0)
    is_left, may_go = np.ones((2, size), dtype=np.bool_)
    if kept is not None:
        may_go[kept] = False
    u, v = graph.edges.T
    weights = graph.edge_weights_or(1.0)
    digits = digits_of(weights)
    layers, gain = [], 0.0
    while True:
        is_low = is_left & may_go & (np.bincount(u, minlength=size) + np.bincount(v, minlength=size) <= MOST)
        if is_low.sum() <= LEAST_LOW * is_left.sum():
            break
        # Of neighbours that are both low, the one with the lower draw goes first.
        priority = draws.random(size)
        rivals = is_low[u] & is_low[v]
        is_low[np.where(priority[u] > priority[v], u, v)[rivals]] = False
        layer, is_kept = _taken_out(is_low, u, v, weights)
        u, v, weights, more = _without(layer, u[is_kept], v[is_kept], weights[is_kept], size)
        weights = rounded(weights, digits)
        u, v, weights = u[weights != 0], v[weights != 0], weights[weights != 0]
        layers.append(layer)
        is_left[layer.nodes] = False
        gain += more
    nodes = np.flatnonzero(is_left)
    place = np.cumsum(is_left) - 1
    left = Graph(len(nodes), np.stack([place[u], place[v]], axis=1), edge_weights=weights, name=graph.name)
    return CutCore(left, nodes, layers, gain)


def digits_of(weights: Floats) -> int | None:
    """How many digits after the point weights have at most; None: as many as they like."""
    largest = float(np.abs(weights).max(initial=0.0))
    return DIGITS - math.ceil(math.log10(largest)) if largest > LEAST else None


def rounded(weights: Floats, digits: int | None) -> Floats:
    """Weights with so many digits after the point."""
    return weights if digits is None else np.round(weights, digits)


def _taken_out(is_out: States, u: Ints, v: Ints, weights: Floats) -> tuple[Layer, States]:
    """These nodes as a layer, and which edges are none of theirs."""
    of_u = is_out[u]
    is_edge = of_u | is_out[v]
    ends = np.stack([np.where(of_u, u, v), np.where(of_u, v, u)])[:, is_edge]
    order = ends[0].argsort(kind="stable")
    own, other = ends[:, order]
    nodes = np.flatnonzero(is_out)
    row = np.searchsorted(nodes, own)
    column = np.arange(len(own)) - np.searchsorted(own, own)
    layer = Layer(nodes, np.repeat(nodes[:, None], MOST, axis=1), np.zeros((len(nodes), MOST)))
    layer.neighbors[row, column], layer.weights[row, column] = other, weights[is_edge][order]
    return layer, ~is_edge


def _without(layer: Layer, u: Ints, v: Ints, weights: Floats, size: int) -> tuple[Ints, Ints, Floats, float]:
    """Edges with those that replace the edges of a layer, sorted; and what the layer adds to a cut of them."""
    total = layer.weights.sum(axis=1)
    together = np.abs(total)
    # One neighbour on the other side than the two others.
    apart = np.abs(total[:, None] - 2 * layer.weights)
    keys, new = [u * size + v], [weights]
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        a, b = layer.neighbors[:, i], layer.neighbors[:, j]
        between = (apart[:, i] + apart[:, j] - apart[:, k] - together) / 4
        # Without a neighbour, only rounding could make a difference.
        is_edge = (layer.weights[:, i] != 0) & (layer.weights[:, j] != 0) & (between != 0)
        keys.append((np.minimum(a, b) * size + np.maximum(a, b))[is_edge])
        new.append(between[is_edge])
    distinct, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    merged = np.bincount(inverse, weights=np.concatenate(new)).astype(np.float64)
    return distinct // size, distinct % size, merged, float((total + together).sum() / 2)
