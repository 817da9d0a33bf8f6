"""Graphs whose nodes have two sides such that every edge crosses, as in trees, grids and bipartite networks.

With weights, edges of positive weight have to cross and those of negative weight must not; a weight of 0 asks nothing.
"""

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph

LOOKED_AT = 50_000
"""Neighbours, or a few more, among which most graphs without two sides show it."""


def two_sides(graph: Graph) -> NDArray[np.bool_] | None:
    """A side for each node, or None if there are no such sides. [num_nodes].

    >>> two_sides(Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])).tolist()
    [False, True, False, True]
    >>> two_sides(Graph.from_edges([(0, 1), (1, 2), (2, 0)])) is None
    True
    """
    if shows_conflict(graph):
        return None
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # Two copies of each node, one for each side: what has to be on a side together is connected.
    size, (u, v) = graph.num_nodes, graph.edges.T
    weights = np.ones(len(u)) if graph.edge_weights is None else graph.edge_weights
    u, v, crosses = u[weights != 0], v[weights != 0], weights[weights != 0] > 0
    ends = np.concatenate([u, u + size]), np.concatenate([v + size * crosses, v + size * ~crosses])
    copies = coo_array((np.ones(len(ends[0]), dtype=np.bool_), ends), shape=(2 * size, 2 * size))
    component = connected_components(copies, directed=False)[1].reshape(2, size)
    return None if (component[0] == component[1]).any() else component[0] > component[1]


def shows_conflict(graph: Graph) -> bool:
    """Whether an edge near the node with the most neighbours cannot have what it asks; a quick look, not a proof."""
    if not graph.num_edges:
        return False
    indptr, indices, weights = graph.csr
    side = np.full(graph.num_nodes, -1, dtype=np.int8)
    newest, looked_at = np.array([graph.degrees.argmax()]), 0
    side[newest] = 0
    while len(newest) and looked_at < LOOKED_AT:
        counts = graph.degrees[newest]
        skipped = np.repeat(indptr[newest] - np.cumsum(counts) + counts, counts)
        edges = skipped + np.arange(counts.sum())
        asks = weights[edges] != 0
        edges, own = edges[asks], np.repeat(side[newest], counts)[asks]
        near, wanted = indices[edges], own ^ (weights[edges] > 0)
        if (side[near] == 1 - wanted).any():
            return True
        is_new = side[near] < 0
        side[near[is_new]] = wanted[is_new]
        if (side[near] != wanted).any():  # two new edges to one node
            return True
        newest, looked_at = np.unique(near[is_new]), looked_at + len(edges)
    return False
