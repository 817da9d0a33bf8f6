"""Graphs of a few nodes: compare all choices by the problem's own check.

`auto` asks it first. Nothing has to be imported for it, and it takes weights of any number of digits.
"""

import time

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.methods.exact import ExactMethod, ExactResult
from diffuco.problems import Problem, is_shipped

MAX_NODES = 10
"""Largest graphs: 1,024 choices take about 10 ms."""


class Enumeration(ExactMethod):
    """Always proves the optimum."""

    name = "enumeration"
    summary = "exact: all choices of a few nodes"

    def solves(self, problem: Problem) -> bool:
        """Our own problems: their checks are quick, and some choice is feasible."""
        return is_shipped(problem)

    def prove(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Compare all choices.

        >>> from diffuco.problems import get_problem
        >>> path = Graph.from_edges([(0, 1), (1, 2)], node_weights=[1e-10, 5e-10, 1e-10])
        >>> Enumeration().prove(get_problem("mis"), path, time_limit_s=1.0).objective
        5e-10
        """
        assert graph.num_nodes <= MAX_NODES
        started = time.perf_counter()
        choices = (np.arange(2**graph.num_nodes)[:, None] >> np.arange(graph.num_nodes) & 1).astype(np.bool_)
        verdicts = [problem.check(graph, chosen) for chosen in choices]
        feasible = [position for position, verdict in enumerate(verdicts) if verdict.feasible]
        best = min(feasible, key=lambda position: problem.sign * verdicts[position].objective)
        objective = verdicts[best].objective
        return ExactResult(objective, objective, True, choices[best], time.perf_counter() - started)
