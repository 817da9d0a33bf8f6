"""Greedy heuristics: node by node, never taken back.

`greedy` follows the problem's own rule. `db-greedy` is the degree-based rule that the paper compares with on MVC
(Toenshoff et al. 2020, Sec. 5.2): the cover is what the minimum-degree independent set leaves.
"""

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph, repair
from diffuco.problems import MinimumVertexCover, Problem, States
from diffuco.problems.greedy import independent_set


class Greedy(GraphByGraph):
    """The problem's rule or, if it has none, Conditional Expectation from all nodes unset."""

    name = "greedy"
    summary = "node by node, by degree"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> States:
        """Follow the rule; ties are broken at random."""
        found = problem.greedy(graph, np.random.default_rng(seed))
        return repair(problem, graph, np.zeros((graph.num_nodes, 1), dtype=np.bool_)) if found is None else found


class DegreeBasedGreedy(GraphByGraph):
    """What the minimum-degree independent set leaves, as a vertex cover."""

    name = "db-greedy"
    summary = "DB-Greedy: cover of what a minimum-degree independent set leaves"

    def solves(self, problem: Problem) -> bool:
        """Vertex covers."""
        return isinstance(problem, MinimumVertexCover)

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> States:
        """Choose everything but the independent set."""
        return ~independent_set(graph, np.random.default_rng(seed))
