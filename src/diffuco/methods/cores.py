"""What is left of a graph once nodes are taken out that need no search, and answers that follow from those for it.

Cuts: `graphs.cut_core`; QUBOs: `graphs.qubo_core`; independent sets and vertex covers: `graphs.set_core`; dominating
sets: `graphs.dominating_core`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.cut_core import MOST, cut_core
from diffuco.graphs.dominating_core import dominating_core
from diffuco.graphs.graph import Graph
from diffuco.graphs.qubo_core import qubo_core
from diffuco.graphs.set_core import cover_core, set_core
from diffuco.graphs.two_sides import two_sides
from diffuco.methods.enumeration import MAX_NODES
from diffuco.methods.proofs import is_small
from diffuco.problems import MaximumCut, MaximumIndependentSet, MinimumDominatingSet, MinimumVertexCover, Problem, Qubo
from diffuco.solution.result import Solution

LEAST_SHARE = 0.1
"""Of the nodes: the least that must have few neighbours for a cut, or be taken out of a QUBO. Less gains nothing."""
LEAST_S = 0.05
SET_SHARE = 0.75
"""Of a time limit: after so much of it, what is left is searched, except for cuts and QUBOs."""
SETS: dict[type[Problem], Callable[[Graph, float | None], "Core | None"]] = {
    MaximumIndependentSet: set_core,
    MinimumVertexCover: cover_core,
    MinimumDominatingSet: dominating_core,
}
EDGES_PER_S = dict.fromkeys((MaximumCut, Qubo), 100_000) | dict.fromkeys(SETS, 500_000)
"""Problems for which nodes are taken out: the edges that each second of a time limit is for, beyond `LEAST_S`."""
SAMPLED_EDGES_PER_S = EDGES_PER_S | {MinimumDominatingSet: 250_000}
"""The same on a GPU, which finds more in a second, for large graphs that models sample."""
FOLLOWS = "nodes that need no search were taken out first"
"""One note for many graphs."""


class Core(Protocol):
    """What is left of a graph, and the way back."""

    @property
    def graph(self) -> Graph:
        """The graph that is left."""

    @property
    def gain(self) -> float:
        """What all other nodes add to the objective."""

    @property
    def is_finished(self) -> bool:
        """Whether more time would not have left less."""

    def extend(self, states: NDArray[np.bool_], num_nodes: int) -> NDArray[np.bool_]:
        """Answers for the whole graph from answers for the core. [nodes of the core, S] -> [N, S]."""

    def restrict(self, states: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """What answers for the whole graph say about the core. [N, S] -> [nodes of the core, S]."""


_known: WeakKeyDictionary[Graph, dict[type[Problem], tuple[Core | None, float]]] = WeakKeyDictionary()
"""Cores of graphs in use, and up to which time limit more time leaves no less. That of a large graph is asked for more
than once."""


def core_of(problem: Problem, graph: Graph, limit_s: float | None, *, is_sampled: bool = False) -> Core | None:
    """The core of a graph, if it leaves out many nodes and there is time to look for it.

    `is_sampled` says that samples of a model and random states compete on the graph, on a GPU.
    """
    kind = type(problem)
    if kind not in EDGES_PER_S or graph.num_nodes <= MAX_NODES:  # a few nodes are enumerated anyway
        return None
    known = _known.setdefault(graph, {})
    core, most_s = known.get(kind, (None, -math.inf))
    if most_s >= (math.inf if limit_s is None else limit_s):
        return core
    edges_per_s = (SAMPLED_EDGES_PER_S if is_sampled else EDGES_PER_S)[kind]
    if limit_s is not None and limit_s < LEAST_S + graph.num_edges / edges_per_s:
        return None
    core = _set_core(problem, graph, limit_s) if kind in SETS else _quadratic_core(problem, graph)
    known[kind] = core, math.inf if limit_s is None or core is None or core.is_finished else limit_s
    if core:
        _known[core.graph] = {kind: (None, math.inf)}
    return core


def load_for(problem: Problem, graphs: Sequence[Graph]) -> None:
    """Load the compiled loops if they are needed, which does not count as time."""
    if any(_takes_sets(problem, graph) for graph in graphs):
        _load(type(problem))


@cache
def _load(kind: type[Problem]) -> None:
    """Use everything once, on the smallest graph."""
    edge, sides = Graph.from_edges([(0, 1)]), np.array([True, False])
    if core := SETS[kind](edge, None):
        core.extend(np.zeros((0, 1), dtype=np.bool_), 2)
    if kind is not MinimumDominatingSet:
        from diffuco.ops.numba_matching import enlarge, make_matching

        enlarge(make_matching(edge.csr.indptr, edge.csr.indices, sides))


def _takes_sets(problem: Problem, graph: Graph) -> bool:
    """Whether nodes of a graph may be taken out for a set. Small graphs are proven without."""
    return type(problem) in SETS and not is_small(problem, graph)


def _quadratic_core(problem: Problem, graph: Graph) -> Core | None:
    """For cuts and QUBOs. A graph with two sides has a cut that needs no search."""
    if isinstance(problem, MaximumCut):
        has_low = (graph.degrees <= MOST).mean() >= LEAST_SHARE
        return cut_core(graph) if has_low and two_sides(graph) is None else None
    core = qubo_core(graph)
    return core if core.graph.num_nodes <= (1 - LEAST_SHARE) * graph.num_nodes else None


def _set_core(problem: Problem, graph: Graph, limit_s: float | None) -> Core | None:
    """For sets."""
    if not _takes_sets(problem, graph):
        return None
    return SETS[type(problem)](graph, None if limit_s is None else SET_SHARE * limit_s)


def lifted(core: Core | None, graph: Graph, found: Solution) -> Solution:
    """The answer for a graph that follows from one for its core, if it has one."""
    if core is None:
        return found
    states = core.extend(found.states, graph.num_nodes)
    chosen = core.extend(found.chosen[:, None], graph.num_nodes)[:, 0]
    objectives = [found.problem.check(graph, state).objective for state in states.T]
    gains = np.array(objectives) - np.array(found.objectives)
    whole = replace(
        found,
        graph=graph,
        chosen=chosen,
        states=states,
        energies=(np.array(found.energies) + found.problem.sign * gains).tolist(),
        objectives=objectives,
        reason="; ".join(filter(None, (found.reason, FOLLOWS))),
        bound=None if found.bound is None else found.bound + core.gain,
        settled=None,
    )
    return replace(whole, bound=whole.objective) if found.optimal else whole
