"""The exact solver HiGHS, which comes with scipy, as a method."""

import time

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.methods.base import beside
from diffuco.methods.exact import ExactMethod, ExactResult
from diffuco.methods.linear import FloatingModel
from diffuco.problems import Problem

PATIENCE, PATIENCE_S = 1.1, 0.5
"""How long we wait for it: this many times the limit and so many seconds more. It does not always heed the limit, and
cannot be stopped; its thread then goes on by itself."""


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
        search = beside(
            lambda: milp(
                model.cost,
                integrality=model.is_binary.astype(np.int64),
                bounds=Bounds(0, 1),
                constraints=LinearConstraint(linear.matrix, -np.inf, linear.upper) if len(linear.upper) else (),
                options={"time_limit": max(time_limit_s, 1e-3), "mip_rel_gap": 0.0},
            )
        )
        try:
            result = search.result(PATIENCE * time_limit_s + PATIENCE_S)
        except TimeoutError:
            return model.result(None, None, finished=False, seconds=time.perf_counter() - started)
        seconds = time.perf_counter() - started
        return model.result(result.x, result.mip_dual_bound, finished=result.status == 0, seconds=seconds)
