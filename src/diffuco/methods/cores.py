"""Cuts of what is left of a graph (`graphs.cut_core`), and the cuts of the whole graph that follow from them."""

from dataclasses import replace
from weakref import WeakKeyDictionary

from diffuco.graphs.cut_core import MOST, Core, cut_core
from diffuco.graphs.graph import Graph
from diffuco.graphs.two_sides import two_sides
from diffuco.methods.enumeration import MAX_NODES
from diffuco.problems import MaximumCut, Problem
from diffuco.solution.result import Solution

LEAST_SHARE = 0.1
"""Of the nodes: the least that must have few neighbours. To take out less gains nothing."""
LEAST_S, EDGES_PER_S = 0.05, 100_000
"""The least time limit with which nodes are taken out, and the edges that each second beyond it is for."""
_known: WeakKeyDictionary[Graph, Core | None] = WeakKeyDictionary()
"""Cores of graphs in use: that of a large graph is asked for twice."""


def core_of(problem: Problem, graph: Graph, limit_s: float | None) -> Core | None:
    """The core of a graph, if the problem is a cut, there is time and it leaves out many nodes.

    All cuts of a few nodes are compared anyway, and a graph with two sides has a cut that needs no search.
    """
    if type(problem) is not MaximumCut or graph.num_nodes <= MAX_NODES:
        return None
    if graph not in _known:
        has_time = limit_s is None or limit_s >= LEAST_S + graph.num_edges / EDGES_PER_S
        if not has_time or (graph.degrees <= MOST).mean() < LEAST_SHARE:
            return None
        _known[graph] = cut_core(graph) if two_sides(graph) is None else None
    return _known[graph]


def lifted(core: Core, graph: Graph, found: Solution) -> Solution:
    """The cut of a graph that follows from one of its core."""
    states = core.extend(found.states, graph.num_nodes)
    chosen = core.extend(found.chosen[:, None], graph.num_nodes)[:, 0]
    objectives = [found.problem.check(graph, state).objective for state in states.T]
    follows = "the sides of nodes with few neighbours follow from those of their neighbours"  # one note for many graphs
    whole = replace(
        found,
        graph=graph,
        chosen=chosen,
        states=states,
        energies=[energy - core.gain for energy in found.energies],
        objectives=objectives,
        reason="; ".join(filter(None, (found.reason, follows))),
        bound=None if found.bound is None else found.bound + core.gain,
        settled=None,
    )
    return replace(whole, bound=whole.objective) if found.optimal else whole
