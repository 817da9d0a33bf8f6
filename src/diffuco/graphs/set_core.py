"""What an independent set or a vertex cover has to decide of a graph: other nodes are taken out, losing nothing.

`ops.numba_set_core` has the rules. Of most real networks, of power laws, trees and geometric graphs they leave little
or nothing; of random graphs of which nearly all nodes have three neighbours or more, nearly everything; of graphs with
node weights more if these hardly differ. If what is left has two sides, as grids have, and no weights, the rest is a
matter of matching them (`ops.numba_matching`), and nothing is left.

Legend: N nodes of the whole graph, F folds, S states.
"""

import math
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.progress import report
from diffuco.graphs.graph import Graph
from diffuco.graphs.shrinking import MOST_EDGES, is_shrunk
from diffuco.graphs.two_sides import two_sides

if TYPE_CHECKING:
    from diffuco.ops.numba_set_core import Rest

Ints = NDArray[np.int64]
States = NDArray[np.bool_]

LEAST_YIELD = 0.03
"""Of the first looks: the least share that must take out a node for more."""


class SetCore(NamedTuple):
    """The graph that is left, and the way back."""

    graph: Graph
    nodes: Ints
    """Its nodes in the whole graph; where nodes were folded into one, that of them that stands for all."""
    chosen: States
    """Which of the others are in the set [N]."""
    folds: NDArray[np.int32]
    """[F, 3], as in `ops.numba_set_core.Rest`."""
    gain: float
    """What all others add to a set of the core, or to a cover."""
    is_finished: bool
    """Whether there was time to look at all nodes."""
    is_cover: bool = False

    def extend(self, states: States, num_nodes: int) -> States:
        """Sets of the whole graph from sets of the core, or covers from covers. [nodes of the core, S] -> [N, S]."""
        from diffuco.ops.numba_set_core import unfold

        whole = np.repeat(self.chosen[:, None], states.shape[1], axis=1)
        whole[self.nodes] = states ^ self.is_cover
        unfold(whole, self.folds)
        return whole ^ self.is_cover

    def restrict(self, states: States) -> States:
        """What sets or covers of the whole graph say about the core. [N, S] -> [nodes of the core, S]."""
        return states[self.nodes]


def set_core(graph: Graph, limit_s: float | None = None) -> SetCore | None:
    """The core for independent sets; None if few nodes would be taken out.

    >>> square_with_tail = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)])
    >>> core = set_core(square_with_tail)
    >>> core.graph, core.gain
    (Graph(num_nodes=0, num_edges=0), 3.0)
    >>> core.extend(np.zeros((0, 1), dtype=np.bool_), 5).ravel().tolist()
    [True, False, True, False, True]
    """
    from diffuco.ops import numba_set_core as loops

    end_s = perf_counter() + (math.inf if limit_s is None else limit_s)
    rest = _shrunk(graph, end_s)
    if rest is None:
        return None
    nodes = np.flatnonzero(rest.nodes[:, loops.STANDS_FOR] == np.arange(graph.num_nodes))
    place = np.empty(graph.num_nodes, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    u, v = place[loops.edges_left(rest)].T
    edges = np.stack(np.divmod(np.sort(u * len(nodes) + v), max(1, len(nodes))), axis=1)
    weights = None if graph.node_weights is None else rest.weights[nodes]
    left = Graph(len(nodes), edges, node_weights=weights, name=graph.name)
    folds, gain = rest.folds[: rest.counts[loops.NUM_FOLDS]], float(rest.gain[0])
    best = _best_of_two_sides(left, end_s) if weights is None else None
    if best is not None:
        rest.chosen[nodes[best]] = True
        left, nodes, gain = Graph(0, edges[:0], name=graph.name), nodes[:0], gain + float(best.sum())
    return SetCore(left, nodes, rest.chosen, folds, gain, perf_counter() < end_s)


def _shrunk(graph: Graph, end_s: float) -> "Rest | None":
    """What is left after all rules, or when the time is over; None if they find little."""
    from diffuco.ops import numba_set_core as loops

    if graph.num_edges > MOST_EDGES:
        return None
    plain = graph if graph.edge_weights is None else replace(graph, edge_weights=None)
    rest = loops.make_rest(plain.csr.indptr, plain.csr.indices, graph.node_weights)
    is_matched = graph.node_weights is None and two_sides(plain) is not None
    least_yield = None if is_matched else LEAST_YIELD
    look, taken = partial(loops.shrink, rest), lambda: float(graph.num_nodes - rest.counts[loops.NUM_LEFT])
    return rest if is_shrunk(graph, rest.waiting, look, taken, end_s, least_yield) else None


def _best_of_two_sides(graph: Graph, end_s: float) -> States | None:
    """A largest independent set of a graph whose nodes have two sides, if there is time. [nodes]."""
    sides = two_sides(graph)
    if sides is None:
        return None
    from diffuco.ops import numba_matching as loops

    matching = loops.make_matching(graph.csr.indptr, graph.csr.indices, sides)
    while not loops.is_largest(matching):
        if perf_counter() > end_s:
            return None
        report("matching two sides, pairs", int((matching.mates >= 0).sum()) // 2)
        loops.enlarge(matching)
    return loops.largest_set(matching)


def cover_core(graph: Graph, limit_s: float | None = None) -> SetCore | None:
    """The same for vertex covers: the nodes outside an independent set.

    >>> cover_core(Graph.from_edges([(0, 1), (0, 2)])).gain
    1.0
    """
    core = set_core(graph, limit_s)
    if core is None:
        return None
    whole, left = (float(some.node_weights_or(1.0).sum()) for some in (graph, core.graph))
    return core._replace(gain=whole - left - core.gain, is_cover=True)
