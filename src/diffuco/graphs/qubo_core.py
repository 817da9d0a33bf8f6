"""What a QUBO has to decide of a graph: variables with few terms are taken out, without losing anything.

A QUBO is a cut of a graph with one more node, the *anchor*: a variable is 1 if it is on the other side. Then x_i x_j is
half of what the edges between i, j and the anchor say: it is 1 if both edges to the anchor are cut and the third is
not. `cut_core` takes nodes out of that graph, but not the anchor, and what is left is a QUBO again.

Legend: N variables, S states.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.cut_core import CutCore, cut_core, digits_of, rounded
from diffuco.graphs.graph import Graph

Floats = NDArray[np.float64]
States = NDArray[np.bool_]


class QuboCore(NamedTuple):
    """The QUBO that is left, and the way back."""

    graph: Graph
    nodes: NDArray[np.int64]
    """Its variables in the whole QUBO."""
    cut: CutCore
    gain: float
    """What the best values of all others add to a value of the core."""
    is_finished: bool = True

    def extend(self, states: States, num_nodes: int) -> States:
        """Variables of the whole QUBO from those of the core. [variables of the core, S] -> [N, S]."""
        anchor = np.zeros((1, states.shape[1]), dtype=np.bool_)
        return self.cut.extend(np.concatenate([states, anchor]), num_nodes + 1)[:-1]

    def restrict(self, states: States) -> States:
        """What variables of the whole QUBO say about the core. [N, S] -> [variables of the core, S]."""
        return states[self.nodes]


def as_cut(graph: Graph) -> Graph:
    """The graph whose cuts have the values of a QUBO, times -1. The anchor is its last node.

    >>> as_cut(Graph.from_edges([(0, 1)], edge_weights=[4.0], node_weights=[-3.0, -2.0])).edge_weights.tolist()
    [2.0, 1.0]
    """
    weights = graph.edge_weights_or(1.0) / 2
    to_anchor = -graph.node_weights_or(0.0) - sums(graph.num_nodes, graph.edges, weights)
    nodes = np.flatnonzero(to_anchor)
    edges = np.concatenate([graph.edges, np.stack([nodes, np.full(len(nodes), graph.num_nodes)], axis=1)])
    all_weights = np.concatenate([weights, to_anchor[nodes]])
    return Graph.from_edges(edges, graph.num_nodes + 1, edge_weights=all_weights, name=graph.name)


def qubo_core(graph: Graph) -> QuboCore:
    """The core of a QUBO; a minimum of it `extend`s to one of the graph.

    >>> path = Graph.from_edges([(0, 1), (1, 2)], edge_weights=[5.0, 5.0], node_weights=[-3.0, -4.0, -2.0])
    >>> core = qubo_core(path)
    >>> core.graph, core.gain
    (Graph(num_nodes=0, num_edges=0), -5.0)
    >>> core.extend(np.zeros((0, 1), dtype=np.bool_), 3).ravel().tolist()
    [True, False, True]
    """
    cut = as_cut(graph)
    core = cut_core(cut, kept=graph.num_nodes)
    size = len(core.nodes) - 1
    weights = core.graph.edge_weights_or(1.0)
    is_linear = core.graph.edges[:, 1] == size
    edges, between = core.graph.edges[~is_linear], weights[~is_linear]
    linear = -sums(size, edges, between)
    linear[core.graph.edges[is_linear, 0]] -= weights[is_linear]
    linear = rounded(linear, digits_of(cut.edge_weights_or(1.0)))
    left = Graph(size, edges, edge_weights=2 * between, node_weights=linear, name=graph.name)
    return QuboCore(left, core.nodes[:-1], core, -core.gain)


def sums(num_nodes: int, edges: NDArray[np.int64], weights: Floats) -> Floats:
    """The weights of all edges of each node. [E, 2], [E] -> [N]."""
    of_both = np.concatenate([weights, weights])
    return np.bincount(edges.T.ravel(), weights=of_both, minlength=num_nodes).astype(np.float64)
