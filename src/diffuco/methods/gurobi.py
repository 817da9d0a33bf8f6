"""The exact solver Gurobi as a method, where `gurobipy` and a licence for the size of the graph are there."""

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from diffuco.methods.base import ALL_PROBLEMS, Deadline, GraphByGraph, repair
from diffuco.methods.linear_model import linear_model, trivial
from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem

DEFAULT_LIMIT_S = 60.0


class Gurobi(GraphByGraph):
    """Stops when the optimum is proven."""

    name = "gurobi"
    summary = "exact: Gurobi, needs a licence; 60 s a graph unless told otherwise"
    problems = ALL_PROBLEMS
    time_limit = "stops"

    def missing(self) -> str | None:
        """gurobipy; whether the licence is large enough shows when solving."""
        return (
            None if find_spec("gurobipy") else "Gurobi; pip install gurobipy, which needs a licence for larger graphs"
        )

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Branch and cut until the optimum is proven or time is up."""
        import gurobipy

        model = linear_model(problem.name, graph)
        try:
            with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as solver:
                solver.Params.TimeLimit = deadline.remaining_s if deadline.limit_s is not None else DEFAULT_LIMIT_S
                solver.Params.Seed = seed % 2_000_000_000
                solver.Params.MIPGap = 0.0
                types = np.where(np.arange(len(model.cost)) < model.num_nodes, "B", "C")
                x = solver.addMVar(len(model.cost), ub=1.0, obj=model.cost, vtype=types)
                if len(model.upper):
                    solver.addMConstr(model.matrix, x, "<", model.upper)
                solver.optimize()
                found = x.X[: model.num_nodes] > 0.5 if solver.SolCount else trivial(problem.name, graph)
        except gurobipy.GurobiError as error:
            raise InputError(
                f"Gurobi refuses {graph.name or 'the graph'}: {error}; get a licence or try cp-sat"
            ) from None
        return repair(problem, graph, found[:, None])
