"""The exact solver HiGHS, which comes with scipy, as a method."""

import time

import numpy as np
from numpy.typing import NDArray

from diffuco.methods.exact import ExactResult
from diffuco.methods.base import ALL_PROBLEMS, Deadline, GraphByGraph, repair
from diffuco.methods.linear_model import linear_model, trivial
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem, get_problem
from diffuco.solution.verification import verify

DEFAULT_LIMIT_S = 60.0


class Highs(GraphByGraph):
    """Stops when the optimum is proven; deterministic, so the seed does not matter."""

    name = "highs"
    summary = "exact: HiGHS of scipy, 60 s a graph unless told otherwise"
    problems = ALL_PROBLEMS
    time_limit = "stops"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Branch and cut until the optimum is proven or time is up."""
        limit_s = DEFAULT_LIMIT_S if deadline.limit_s is None else deadline.remaining_s
        return solve_highs(problem.name, graph, limit_s).chosen


def solve_highs(problem: str, graph: Graph, time_limit_s: float) -> ExactResult:
    """Search for the optimum until it is proven or the time is up.

    >>> solve_highs("mds", Graph.from_edges([(0, 1), (1, 2), (2, 3)]), 10.0).objective
    2.0
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    started = time.perf_counter()
    model = linear_model(problem, graph)
    is_integer = np.arange(len(model.cost)) < model.num_nodes
    result = milp(
        model.cost,
        integrality=is_integer.astype(np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(model.matrix, -np.inf, model.upper) if len(model.upper) else (),
        options={"time_limit": max(time_limit_s, 1e-3), "mip_rel_gap": 0.0},
    )
    found = trivial(problem, graph) if result.x is None else result.x[: model.num_nodes] > 0.5
    chosen = repair(get_problem(problem), graph, found[:, None])[:, 0]
    objective = verify(problem, graph, chosen).objective
    is_proven = result.status == 0
    sign = -1.0 if get_problem(problem).sense == "max" else 1.0
    bound = -np.inf if result.mip_dual_bound is None else result.mip_dual_bound
    bound = objective if is_proven else sign * float(bound)
    return ExactResult(objective, bound, is_proven, chosen, time.perf_counter() - started)
