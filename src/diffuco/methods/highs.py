"""The exact solver HiGHS, which comes with scipy, as a method."""

import time

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.methods.base import repair
from diffuco.methods.exact import ExactMethod, ExactResult, model_of, trivial, unbounded
from diffuco.problems import Problem


class Highs(ExactMethod):
    """Stops when the optimum is proven; it is deterministic, so the seed does not matter."""

    name = "highs"
    summary = "exact: HiGHS of scipy, 60 s a graph unless told otherwise"

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
        model = model_of(problem, graph)
        is_integer = np.arange(len(model.cost)) < model.num_nodes
        result = milp(
            model.cost,
            integrality=is_integer.astype(np.int64),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(model.matrix, -np.inf, model.upper) if len(model.upper) else (),
            options={"time_limit": max(time_limit_s, 1e-3), "mip_rel_gap": 0.0},
        )
        found = trivial(problem, graph) if result.x is None else result.x[: model.num_nodes] > 0.5
        chosen = repair(problem, graph, found[:, None])[:, 0]
        objective = problem.check(graph, chosen).objective
        proven = result.status == 0
        bound = unbounded(problem) if result.mip_dual_bound is None else problem.sign * float(result.mip_dual_bound)
        return ExactResult(objective, objective if proven else bound, proven, chosen, time.perf_counter() - started)
