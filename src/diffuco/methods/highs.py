"""The exact solver HiGHS, which comes with scipy, as a method."""

import time

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.methods.exact import ExactMethod, ExactResult, FloatingModel
from diffuco.problems import Problem


class Highs(ExactMethod):
    """Stops when the optimum is proven; it is deterministic, so the seed does not matter."""

    name = "highs"
    summary = "exact: HiGHS of scipy, 60 s per graph unless told otherwise"

    def prove(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Branch and cut until the optimum is proven or the time is up.

        >>> from diffuco.problems import get_problem
        >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
        >>> Highs().prove(get_problem("mds"), path, time_limit_s=10.0).objective
        2.0
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        started = time.perf_counter()
        if not graph.num_nodes:
            return ExactResult(0.0, 0.0, True, np.zeros(0, dtype=np.bool_), 0.0)
        model = FloatingModel.of(problem, graph)
        linear = model.linear
        result = milp(
            model.cost,
            integrality=model.is_binary.astype(np.int64),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(linear.matrix, -np.inf, linear.upper) if len(linear.upper) else (),
            options={"time_limit": max(time_limit_s, 1e-3), "mip_rel_gap": 0.0},
        )
        seconds = time.perf_counter() - started
        return model.result(result.x, result.mip_dual_bound, finished=result.status == 0, seconds=seconds)
