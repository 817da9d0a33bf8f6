"""The exact solver HiGHS, which comes with scipy, as a method."""

import numpy as np
from numpy.typing import NDArray

from diffuco.baselines.methods.base import ALL_PROBLEMS, Deadline, GraphByGraph, repair
from diffuco.baselines.methods.linear_model import linear_model, trivial
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem

DEFAULT_LIMIT_S = 60.0


class Highs(GraphByGraph):
    """Stops when the optimum is proven; deterministic, so the seed does not matter."""

    name = "highs"
    summary = "exact: HiGHS of scipy, 60 s a graph unless told otherwise"
    problems = ALL_PROBLEMS
    time_limit = "stops"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Branch and cut until the optimum is proven or time is up."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        model = linear_model(problem.name, graph)
        is_integer = np.arange(len(model.cost)) < model.num_nodes
        limit_s = deadline.remaining_s if deadline.limit_s is not None else DEFAULT_LIMIT_S
        result = milp(
            model.cost,
            integrality=is_integer.astype(np.int64),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(model.matrix, -np.inf, model.upper) if len(model.upper) else (),
            options={"time_limit": max(limit_s, 1e-3), "mip_rel_gap": 0.0},
        )
        found = trivial(problem.name, graph) if result.x is None else result.x[: model.num_nodes] > 0.5
        return repair(problem, graph, found[:, None])
