"""What `auto` asks of exact solvers: which solver, on which graphs, for how long."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.graphs.components import component_numbers
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline
from diffuco.methods.clique import CliqueSearch
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.enumeration import MAX_NODES, Enumeration
from diffuco.methods.exact import ExactMethod
from diffuco.methods.highs import Highs
from diffuco.methods.whole_cut import whole_cut
from diffuco.problems import MaximumClique, MinimumDominatingSet, Problem
from diffuco.solution.result import Solution

EXACT: tuple[ExactMethod, ...] = (CliqueSearch(), CpSat(), Highs())
"""What proves an optimum of more than a few nodes: the first that solves the problem and is installed."""
EXACT_S = 1.0
"""Seconds that a proof may take; a time limit that is shorter is shared equally with the search."""
EXACT_EDGES = 50_000
CP_SAT_NODES = 4000
"""The most nodes of a sparse graph for CP-SAT. HiGHS is ahead on larger ones."""
SPARSE_EXACT_S = 5.0
"""The most seconds for a sparse graph that is not small, which takes as long to anneal, or half of a time limit."""
SPARSE_NODES_PER_S = 2000
"""Nodes that each of those seconds is for."""
ROADS_DEGREE = 2.6
"""Mean degree of what is left of roads, at most. A large piece of that is tried if it has no more nodes per second."""
SPARSE_DEGREE = 32
"""Mean degree up to which a graph is sparse."""
LOOSE_DEGREE = 5
LOOSE_SHARE = 0.1
"""Of the nodes of a large graph with this mean degree or more: the least that must have at most two neighbours."""
DENSE_EDGES = 100_000
"""The most edges of other graphs whose dominating sets are tried. CP-SAT proves those of social networks at once."""
LARGE_NODES = 10_000
"""Smallest graphs that are large: presolve must be able to begin, and a GPU searches them one by one."""
OPEN_NODES = 2000
CLOSED, CLOSED_DEGREE = 0.5, 10
"""From so many nodes on, a graph must have loose ends or triangles to be proven: this share of nodes, or more, of which
two neighbours are neighbours, and no higher mean degree."""
CLOSED_NODES_PER_S = 1300
"""Nodes of a large graph with triangles for each second that the proof of an independent set takes."""
BRIEF, LEAST_BRIEF_S = 0.1, 0.2
"""Others get this share of the time for a proof, if that is so many seconds, because the bound is worth knowing."""
LEAST_LEFT = 0.25
"""Share of a time limit that the search gets, also after a solver that took longer than it was given."""
PATIENCE = 2
"""After this many graphs in a row that were not proven, only graphs with fewer edges than any of them are tried."""


def prove(
    problem: Problem,
    graphs: Sequence[Graph],
    positions: Sequence[int],
    seed: int,
    limit_s: float | None,
    wholes: Sequence[Graph],
) -> Iterator[tuple[int, Solution | None, float]]:
    """Positions of graphs, what exact solvers find and after how many seconds, until several were not proven.

    `wholes` are the graphs of which these are left (`cores`). Cuts that leave out no edge need no solver, so they are
    looked for in all graphs that are not small.
    """
    failed: list[int] = []  # their edges
    for position in positions:
        graph = graphs[position]
        whole = None if is_small(problem, graph) else whole_cut(problem, graph, seed)
        if whole:
            yield position, whole, whole.seconds["sample"]
        if whole or (len(failed) >= PATIENCE and graph.num_edges >= min(failed)):
            continue
        proof_s = proof_limit(problem, graph, limit_s, wholes[position])
        if not proof_s:
            continue
        clock = Deadline.after(proof_s)
        solution = try_proof(problem, graph, seed, proof_s)
        if not (solution and solution.optimal):
            failed.append(graph.num_edges)
        elif len(failed) < PATIENCE:
            failed.clear()
        yield position, solution, clock.elapsed_s


def proof_limit(problem: Problem, graph: Graph, limit_s: float | None, whole: Graph | None = None) -> float:
    """Seconds that a proof may take of those that a graph has; 0: none is tried.

    The graph may be what is left of a `whole`.
    """
    whole = whole or graph
    if is_small(problem, graph):
        return EXACT_S if limit_s is None else min(EXACT_S, limit_s / 2)
    most_s = min(SPARSE_EXACT_S, EXACT_S + graph.num_nodes / SPARSE_NODES_PER_S)
    has_search = counts_cliques(problem, graph)  # a local search of its own, which is ahead of annealing
    if limit_s is not None and has_search:
        most_s = limit_s * (1 - LEAST_LEFT)
    elif limit_s is not None:
        most_s = limit_s / 2 if limit_s >= EXACT_S else 0.0
    if not is_worth_a_try(problem, graph, whole, most_s):
        return 0.0
    if has_search or any(is_promising(some) for some in telling(problem, graph, whole)):
        return most_s
    return BRIEF * most_s if BRIEF * most_s >= LEAST_BRIEF_S else 0.0


def try_proof(problem: Problem, graph: Graph, seed: int, limit_s: float) -> Solution | None:
    """What an exact solver finds in this time; None where there is none that takes the graph."""
    for solver in provers(problem, graph):
        with suppress(InputError):  # weights that it cannot take
            return solver.solve_one(problem, graph, seed, Deadline.after(limit_s))
    return None


def provers(problem: Problem, graph: Graph) -> Iterator[ExactMethod]:
    """The exact solvers for a graph that are installed, best first."""
    if graph.num_nodes <= MAX_NODES and Enumeration().solves(problem):
        yield Enumeration()
    is_weighted = graph.node_weights is not None and problem.uses_node_weights
    is_large = is_sparse(graph) and graph.num_nodes > CP_SAT_NODES
    for method in (CliqueSearch(), Highs()) if is_large else EXACT:
        takes_weights = not is_weighted or method.takes_node_weights(problem)
        if method.solves(problem) and not method.missing() and takes_weights:
            yield method


def is_worth_a_try(problem: Problem, graph: Graph, whole: Graph, limit_s: float) -> bool:
    """Whether a solver is worth so many seconds on what is left of a whole graph that is not small.

    If that is in pieces, each is tried as if it were alone. For a dominating set it has to be, because everything that
    presolve finds is taken out already.
    """
    is_left = graph is not whole and graph.num_edges <= problem.proof_edges
    is_like_roads = 2 * graph.num_edges <= ROADS_DEGREE * graph.num_nodes
    most_nodes = max(LARGE_NODES, SPARSE_NODES_PER_S * limit_s if is_like_roads else 0)
    is_in_pieces = is_left and largest_component(graph) < most_nodes
    if isinstance(problem, MinimumDominatingSet) and graph is not whole:
        return is_in_pieces
    is_easy = is_in_pieces and is_sparse(graph)
    return is_easy or any(may_be_proven(problem, some, limit_s) for some in telling(problem, graph, whole))


def telling(problem: Problem, graph: Graph, whole: Graph) -> tuple[Graph, ...]:
    """Graphs of which one has to look promising. What is left for a dominating set always does: it has new leaves."""
    return (whole,) if isinstance(problem, MinimumDominatingSet) else (graph, whole)


def may_be_proven(problem: Problem, graph: Graph, limit_s: float) -> bool:
    """Whether a solver is worth so many seconds on a graph that is not small; our own clique search always is."""
    if graph.num_edges > problem.proof_edges:
        return False
    if isinstance(problem, MaximumClique):
        return counts_cliques(problem, graph)
    if isinstance(problem, MinimumDominatingSet):
        return can_shrink(graph) if is_sparse(graph) else graph.num_edges <= DENSE_EDGES
    has_time = graph.num_nodes <= CLOSED_NODES_PER_S * limit_s
    return is_sparse(graph) and (can_shrink(graph) or (has_time and is_closed(graph)))


def largest_component(graph: Graph) -> int:
    """Nodes of the largest component of a graph."""
    return int(np.bincount(component_numbers(graph.num_nodes, graph.edges)).max(initial=0))


def is_sparse(graph: Graph) -> bool:
    """Whether presolve of an exact solver may leave little of a graph."""
    return 2 * graph.num_edges <= SPARSE_DEGREE * graph.num_nodes


def can_shrink(graph: Graph) -> bool:
    """Whether presolve can begin: at nodes with few neighbours, of which some large sparse graphs have hardly any."""
    return graph.num_nodes < LARGE_NODES or is_loose(graph)


def is_loose(graph: Graph) -> bool:
    """Whether a graph has few edges, or many nodes with at most two neighbours."""
    if 2 * graph.num_edges < LOOSE_DEGREE * graph.num_nodes:
        return True
    return float((graph.degrees <= 2).mean()) >= LOOSE_SHARE


def is_promising(graph: Graph) -> bool:
    """Whether a graph may be proven: sparse ones need few nodes, loose ends, or triangles, as meshes have."""
    is_open = is_sparse(graph) and graph.num_nodes >= OPEN_NODES and not is_loose(graph)
    return not is_open or is_closed(graph)


def is_closed(graph: Graph) -> bool:
    """Whether a graph has many triangles and few neighbours, as meshes and lattices do."""
    return 2 * graph.num_edges <= CLOSED_DEGREE * graph.num_nodes and closed_share(graph) >= CLOSED


def closed_share(graph: Graph) -> float:
    """The share of nodes of which two random neighbours are neighbours.

    >>> closed_share(Graph.from_edges([(0, 1), (1, 2), (0, 2)])), closed_share(Graph.from_edges([(0, 1), (1, 2)]))
    (1.0, 0.0)
    """
    degrees, starts = graph.degrees, graph.csr.indptr[:-1]
    nodes = np.flatnonzero(degrees >= 2)
    if not len(nodes):
        return 0.0
    draws = np.random.default_rng(0).random((2, len(nodes)))
    first = (draws[0] * degrees[nodes]).astype(np.int64)
    second = (first + 1 + (draws[1] * (degrees[nodes] - 1)).astype(np.int64)) % degrees[nodes]
    ends = np.sort(graph.csr.indices[starts[nodes] + np.stack([first, second])], axis=0)
    u, v = graph.edges.T
    return float(np.isin(ends[0] * graph.num_nodes + ends[1], u * graph.num_nodes + v).mean())


def is_small(problem: Problem, graph: Graph) -> bool:
    """Whether a general solver can be expected to prove an optimum in about a second."""
    is_general = not counts_cliques(problem, graph)
    return is_general and graph.num_nodes <= problem.proof_nodes and graph.num_edges <= EXACT_EDGES


def counts_cliques(problem: Problem, graph: Graph) -> bool:
    """Whether our own clique search takes the graph."""
    return isinstance(problem, MaximumClique) and graph.node_weights is None
