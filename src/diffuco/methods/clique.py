"""Maximum cliques by exact search: branch and bound with colourings as bounds, on sets of nodes as bits of integers.

A set of nodes in k colours holds no clique of more than k, so only nodes whose colour could still lead beyond the best
clique are branched on (Tomita and Seki 2003; the bits are San Segundo's, 2011). Sparse graphs of a few hundred nodes
take milliseconds where CP-SAT, which needs a constraint per missing edge, takes a second.
"""

import time
from typing import NamedTuple

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.methods.exact import ExactMethod, ExactResult
from diffuco.problems import MaximumClique, Problem


class CliqueSearch(ExactMethod):
    """Stops when the largest clique is proven."""

    name = "clique-search"
    summary = "exact: branch and bound for cliques, 60 s per graph unless told otherwise"

    def solves(self, problem: Problem) -> bool:
        """Cliques."""
        return isinstance(problem, MaximumClique)

    def takes_node_weights(self, problem: Problem) -> bool:
        """It counts nodes."""
        return False

    def prove(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Search until the largest clique is proven or the time is up.

        >>> house = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)])
        >>> result = CliqueSearch().prove(MaximumClique(), house, time_limit_s=10)
        >>> result.objective, result.proven, result.chosen.nonzero()[0].tolist()
        (3.0, True, [0, 1, 4])
        """
        started = time.perf_counter()
        # Nodes of high degree get the low bits, which are coloured first.
        nodes = np.argsort(-graph.degrees, kind="stable")
        best, bound = _search(_adjacency(graph, nodes), started + time_limit_s)
        chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
        chosen[nodes[best]] = True
        objective = problem.check(graph, chosen).objective
        return ExactResult(objective, float(bound), bound == len(best), chosen, time.perf_counter() - started)


class _Branches(NamedTuple):
    """Nodes that may join the clique at one depth, and those worth trying with their colours, the last one first."""

    candidates: int
    nodes: list[int]
    colors: list[int]


def _search(adjacent: list[int], deadline: float) -> tuple[list[int], int]:
    """The largest clique found and an upper bound on all cliques, equal to its size unless time ran out."""
    best: list[int] = []
    clique: list[int] = []
    stack = [_branches((1 << len(adjacent)) - 1, adjacent, 0)]
    bound = max(stack[0].colors, default=0)
    while stack:
        candidates, nodes, colors = stack[-1]
        if not nodes or len(clique) + colors[-1] <= len(best):
            stack.pop()
            if clique:
                clique.pop()
            continue
        if len(stack) == 1:
            bound = colors[-1]  # of this branch and all that are left, whose colours are no higher
        if time.perf_counter() >= deadline:
            return best, max(bound, len(best))
        node = nodes.pop()
        colors.pop()
        stack[-1] = _Branches(candidates & ~(1 << node), nodes, colors)
        clique.append(node)
        if len(clique) > len(best):
            best = clique.copy()
        stack.append(_branches(candidates & adjacent[node], adjacent, len(best) - len(clique)))
    return best, len(best)


def _branches(candidates: int, adjacent: list[int], enough: int) -> _Branches:
    """Colour the candidates greedily, one colour after the other, and keep those of a colour above `enough`."""
    nodes: list[int] = []
    colors: list[int] = []
    uncolored, color = candidates, 0
    while uncolored:
        color += 1
        available = uncolored
        while available:
            lowest = available & -available
            node = lowest.bit_length() - 1
            uncolored ^= lowest
            available &= ~(adjacent[node] | lowest)
            if color > enough:
                nodes.append(node)
                colors.append(color)
    return _Branches(candidates, nodes, colors)


def _adjacency(graph: Graph, nodes: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[int]:
    """Neighbours of every node as the bits of an integer, after renumbering node `nodes[i]` to i."""
    position = np.empty_like(nodes)
    position[nodes] = np.arange(len(nodes))
    adjacent = [0] * graph.num_nodes
    for u, v in position[graph.edges].tolist():
        adjacent[u] |= 1 << v
        adjacent[v] |= 1 << u
    return adjacent
