"""What a dominating set has to decide of chains: three nodes in a row with two neighbours each are taken out.

Such nodes cost one node, whatever the rest of the set is. If the node before them is in it, it dominates the first, and
the last one dominates the two others and the node after them; if the node after them is, the first one does the same.
Otherwise the middle one dominates all three. So the nodes before and after them become neighbours, and the sets of what
is left are as good. Roads that are drawn with many points are mostly chains.

Legend: N nodes of the whole graph, T triples, S states.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph

Ints = NDArray[np.int64]
States = NDArray[np.bool_]

LEAST_SHARE = 0.02
"""Of the nodes: the least that must be taken out."""


class ShortChains(NamedTuple):
    """The graph with short chains, and the way back."""

    graph: Graph
    nodes: Ints
    """Its nodes in the whole graph."""
    triples: Ints
    """[T, 5], as `ops.numba_chains` finds them."""
    is_finished: bool = True

    @property
    def gain(self) -> float:
        """What the nodes that are taken out add to a set of the others."""
        return float(len(self.triples))

    def extend(self, states: States, num_nodes: int) -> States:
        """Sets of the whole graph from sets of what is left. [nodes left, S] -> [N, S]."""
        from diffuco.ops.numba_chains import put_back

        whole = np.zeros((num_nodes, states.shape[1]), dtype=np.bool_)
        whole[self.nodes] = states
        put_back(whole, self.triples)
        return whole

    def restrict(self, states: States) -> States:
        """What sets of the whole graph say about what is left. [N, S] -> [nodes left, S]."""
        return states[self.nodes]


def short_chains(graph: Graph) -> ShortChains | None:
    """The graph with short chains; None if little would be taken out, or nodes have weights.

    >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
    >>> short = short_chains(ring)
    >>> short.graph, short.gain
    (Graph(num_nodes=2, num_edges=1), 1.0)
    >>> short.extend(np.array([[True], [False]]), 5).ravel().tolist()
    [True, False, False, True, False]
    """
    from diffuco.ops.numba_chains import find_triples

    if graph.node_weights is not None:
        return None
    triples = find_triples(graph.csr.indptr, graph.csr.indices.astype(np.int64))
    if 3 * len(triples) <= LEAST_SHARE * graph.num_nodes:
        return None
    is_left = np.ones(graph.num_nodes, dtype=np.bool_)
    is_left[triples[:, 1:4]] = False
    links = triples[is_left[triples[:, 0]]][:, [0, 4]]
    edges = np.concatenate([graph.edges[is_left[graph.edges].all(axis=1)], links[links[:, 0] != links[:, 1]]])
    place = np.cumsum(is_left) - 1
    edges = np.unique(np.sort(place[edges], axis=1), axis=0)
    nodes = np.flatnonzero(is_left)
    return ShortChains(Graph(len(nodes), edges, name=graph.name), nodes, triples)
