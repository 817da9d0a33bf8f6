"""Greedy heuristics: node by node, never taken back.

`greedy` follows the problem's own rule. `db-greedy` is the degree-based rule that the paper compares with on MVC
(Toenshoff et al. 2020, Sec. 5.2): the cover is what the minimum-degree independent set leaves.
"""

import warnings
from collections.abc import Sequence

import numpy as np

from diffuco.foundation.errors import GraphWarning
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph, Settings, repair
from diffuco.problems import MinimumVertexCover, Problem, States
from diffuco.problems.greedy import independent_set
from diffuco.solution.result import Solution, as_count

GREEDY_NODES = 50_000
"""The largest graph on which samples are compared with a greedy choice, which takes a tenth of a second."""


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


def warn_if_greedy_is_ahead(problem: Problem, found: Sequence[Solution], *, are_finished: bool = True) -> None:
    """Issue a `GraphWarning` if samples are worse than a greedy choice on the first graph that is not large.

    That tells of the model only if they are finished: decoded and refined.
    """
    first = next((solution for solution in found if 0 < solution.graph.num_nodes <= GREEDY_NODES), None)
    if first is None:
        return
    (greedy,) = Greedy().solve(problem, [first.graph], Settings())
    if first.feasible and greedy.feasible and problem.sign * (first.objective - greedy.objective) > 0:
        values = f"{as_count(first.objective)}, a greedy choice {as_count(greedy.objective)}"
        told = f"{first.graph.name or 'graph'}: samples of {first.found_by} reach {values}"
        reason = "the model was trained on other graphs, or too briefly"
        if not are_finished:
            reason = "decoding or refinement is switched off"
        warnings.warn(GraphWarning(f"{told}; {reason}; leave out the options of models"), stacklevel=3)
