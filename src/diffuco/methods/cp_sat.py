"""The exact solver CP-SAT as a method (the extra `exact`)."""

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from diffuco.methods.exact import solve_exact
from diffuco.methods.base import ALL_PROBLEMS, Deadline, GraphByGraph
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem

DEFAULT_LIMIT_S = 60.0


class CpSat(GraphByGraph):
    """Stops when the optimum is proven; eight threads, so the seed does not decide what a cut search finds."""

    name = "cp-sat"
    summary = "exact: CP-SAT of OR-tools, 60 s a graph unless told otherwise"
    problems = ALL_PROBLEMS
    time_limit = "stops"

    def missing(self) -> str | None:
        """OR-tools."""
        return None if find_spec("ortools") else "OR-tools; pip install 'diffuco[exact]'"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Search until the optimum is proven or time is up."""
        limit_s = DEFAULT_LIMIT_S if deadline.limit_s is None else deadline.limit_s
        return solve_exact(problem.name, graph, time_limit_s=limit_s).chosen
