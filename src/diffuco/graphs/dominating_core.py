"""What a dominating set has to decide of a graph: choices and demands that settle themselves are taken out.

`ops.numba_dominating_core` has the rules. Of trees and of power laws with loose ends they leave nothing, of geometric
graphs of mean degree 5, 8 and 14 one edge of seventeen, half of them and four of five, of random graphs of which nearly
all nodes have three neighbours or more, nearly everything. Long chains come first: `graphs.short_chains`.

What is left is a part of the graph, in which every node asks to be dominated again and may be chosen again. For
candidates whose demand another one implies that costs nothing, and an annealer finds its way as in the whole graph. If
it chooses a node that is no candidate, `extend` chooses another one instead. A candidate that is next to a chosen node
keeps that as its neighbour. Each such chosen node has a *leaf*, a new node next to it alone, so that nothing is lost by
choosing it; and it stands once in each piece of what is left, so that pieces stay apart.

Legend: N nodes of the whole graph, S states.
"""

import math
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.components import component_numbers
from diffuco.graphs.graph import Graph
from diffuco.graphs.short_chains import ShortChains, short_chains
from diffuco.graphs.shrinking import MOST_EDGES, is_shrunk

Ints = NDArray[np.int64]
States = NDArray[np.bool_]

LEAST_YIELD = 0.02
"""Of the first looks: the least share that must settle a choice and a demand for more."""


class DominatingCore(NamedTuple):
    """The graph that is left, and the way back."""

    graph: Graph
    nodes: Ints
    """Its nodes in the whole graph, without the leaves, which come last."""
    chosen: States
    """Which nodes are in the set whatever is chosen of the core [N]."""
    instead: NDArray[np.int32]
    """The node that is chosen instead of each, usually itself; -1 for none [N]."""
    gain: float
    """What the chosen ones add to a set of the core, without those that are in the core, too."""
    is_finished: bool
    """Whether there was time to look at all nodes."""

    def extend(self, states: States, num_nodes: int) -> States:
        """Sets of the whole graph from sets of the core. [nodes of the core, S] -> [N, S]."""
        whole = np.zeros((num_nodes, states.shape[1]), dtype=np.bool_)
        place, column = np.nonzero(states[: len(self.nodes)])
        whole[self.nodes[place], column] = True
        return self.settled(whole)

    def restrict(self, states: States) -> States:
        """What sets of the whole graph say about the core. [N, S] -> [nodes of the core, S]."""
        kept = self.settled(states)[self.nodes]
        return np.pad(kept, [(0, self.graph.num_nodes - len(kept)), (0, 0)])

    def settled(self, states: States) -> States:
        """The same sets with the nodes that are chosen whatever else is, and with those that others stand in for.

        [N, S] -> [N, S].
        """
        place, column = np.nonzero(states)
        whole = np.zeros((len(states) + 1, states.shape[1]), dtype=np.bool_)  # the last row is for -1
        whole[self.instead[place], column] = True
        return whole[:-1] | self.chosen[:, None]


class Steps(NamedTuple):
    """The core of a core, and so on, and the way back."""

    cores: list[ShortChains | DominatingCore]

    @property
    def graph(self) -> Graph:
        """The graph that is left in the end."""
        return self.cores[-1].graph

    @property
    def gain(self) -> float:
        """What all others add to a set of it."""
        return sum(core.gain for core in self.cores)

    @property
    def is_finished(self) -> bool:
        """Whether there was time to look at all nodes."""
        return all(core.is_finished for core in self.cores)

    def extend(self, states: States, num_nodes: int) -> States:
        """Sets of the whole graph from sets of the core. [nodes of the core, S] -> [N, S]."""
        sizes = [num_nodes, *(core.graph.num_nodes for core in self.cores)]
        for core, size in zip(reversed(self.cores), reversed(sizes[:-1]), strict=True):
            states = core.extend(states, size)
        return states

    def restrict(self, states: States) -> States:
        """What sets of the whole graph say about the core. [N, S] -> [nodes of the core, S]."""
        for core in self.cores:
            states = core.restrict(states)
        return states


def dominating_core(graph: Graph, limit_s: float | None = None) -> Steps | None:
    """The core for dominating sets; None if little would be taken out.

    Chains are shortened first, and again if what is left has others.
    """
    end_s = perf_counter() + (math.inf if limit_s is None else limit_s)
    cores: list[ShortChains | DominatingCore] = []
    while True:
        left = cores[-1].graph if cores else graph
        short = short_chains(left)
        if short:
            cores.append(short)
        elif cores:
            break
        settled = settled_core(short.graph if short else left, end_s - perf_counter())
        if settled is None:
            break
        cores.append(settled)
    return Steps(cores) if cores else None


def settled_core(graph: Graph, limit_s: float = math.inf) -> DominatingCore | None:
    """What is left once choices and demands are taken out that settle themselves; None if these are few.

    >>> square_with_tail = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)])
    >>> core = settled_core(square_with_tail)
    >>> core.graph, core.gain
    (Graph(num_nodes=0, num_edges=0), 2.0)
    >>> core.extend(np.zeros((0, 1), dtype=np.bool_), 5).ravel().tolist()
    [False, True, False, True, False]
    """
    from diffuco.ops import numba_dominating_core as loops

    if graph.num_edges > MOST_EDGES:
        return None
    end_s = perf_counter() + limit_s
    rest = loops.make_rest(graph.csr.indptr, graph.csr.indices, graph.node_weights_or(1.0))
    look, taken = partial(loops.shrink, rest), lambda: graph.num_nodes - float(rest.counts[loops.NUM_LEFT]) / 2
    # Long paths are taken out from their ends, which the first looks may not find.
    least_yield = LEAST_YIELD if graph.num_edges >= graph.num_nodes else None
    if not is_shrunk(graph, rest.waiting, look, taken, end_s, least_yield):
        return None
    loops.follow(rest.instead)
    left, nodes, copies = _what_is_left(graph, rest.nodes[:, : loops.AROUND].astype(np.bool_), rest.chosen)
    weights = graph.node_weights_or(1.0)
    gain = float(weights[rest.chosen].sum() - weights[copies].sum())
    return DominatingCore(left, nodes, rest.chosen, rest.instead, gain, perf_counter() < end_s)


def _what_is_left(graph: Graph, kinds: States, chosen: States) -> tuple[Graph, Ints, Ints]:
    """The graph of a core, its nodes without leaves, and those of them at the end that are chosen. `kinds` [N, 2]."""
    is_candidate, is_open = kinds.T
    u, v = graph.edges.T
    from_end, to_end = np.concatenate([u, v]), np.concatenate([v, u])
    is_free, choice = _next_to(chosen, from_end, to_end)
    asks = is_open | (is_candidate & ~is_free)
    is_kept = (is_candidate[u] & asks[v]) | (is_candidate[v] & asks[u])
    left = np.flatnonzero(is_candidate | is_open)
    place = np.cumsum(is_candidate | is_open) - 1
    kept = place[graph.edges[is_kept]]
    free = np.flatnonzero(is_candidate & is_free)
    # A chosen node once for each piece that it has candidates in.
    component = component_numbers(len(left), kept)
    keys, copy = np.unique(component[place[free]] * graph.num_nodes + choice[free], return_inverse=True)
    copies = keys % graph.num_nodes
    nodes, first_leaf = np.concatenate([left, copies]), len(left) + len(copies)
    numbers = np.arange(len(copies))
    edges = np.concatenate(
        [
            kept,
            np.stack([place[free], len(left) + copy], axis=1),
            np.stack([len(left) + numbers, first_leaf + numbers], axis=1),
        ]
    )
    weights = None if graph.node_weights is None else graph.node_weights[np.concatenate([nodes, copies])]
    core = Graph.from_edges(edges, first_leaf + len(copies), node_weights=weights, name=graph.name)
    return core, nodes, copies


def _next_to(chosen: States, from_end: Ints, to_end: Ints) -> tuple[States, Ints]:
    """Which nodes have a chosen neighbour, and which one: that of most nodes. [N], [N]."""
    of_chosen = chosen[to_end]
    near, choices = from_end[of_chosen], to_end[of_chosen]
    popular = np.bincount(choices, minlength=len(chosen))
    order = np.argsort(popular[choices], kind="stable")
    choice = np.full(len(chosen), -1)
    choice[near[order]] = choices[order]  # the last one counts
    return choice >= 0, choice
