"""The exact solver Gurobi as a method, where `gurobipy` and a licence for the size of the graph are there."""

import time
from importlib.util import find_spec

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.methods.exact import ExactMethod, ExactResult
from diffuco.methods.linear import FloatingModel
from diffuco.problems import Problem


class Gurobi(ExactMethod):
    """Stops when the optimum is proven."""

    name = "gurobi"
    uses_all_cores = True
    summary = "exact: Gurobi, needs a licence; 60 s per graph unless told otherwise"

    def missing(self) -> str | None:
        """gurobipy; whether the licence is large enough shows when solving."""
        return (
            None if find_spec("gurobipy") else "Gurobi; pip install gurobipy, which needs a licence for larger graphs"
        )

    def prove(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Branch and cut until the optimum is proven or the time is up."""
        import gurobipy

        started = time.perf_counter()
        model = FloatingModel.of(problem, graph)
        linear = model.linear
        try:
            with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as solver:
                solver.Params.TimeLimit = time_limit_s
                solver.Params.Seed = seed % 2_000_000_000
                solver.Params.MIPGap = 0.0
                types = np.where(model.is_binary, "B", "C")
                x = solver.addMVar(len(model.cost), ub=1.0, obj=model.cost, vtype=types)
                if len(linear.upper):
                    solver.addMConstr(linear.matrix, x, "<", linear.upper)
                solver.optimize()
                values = x.X if solver.SolCount else None
                finished, bound = solver.Status == gurobipy.GRB.OPTIMAL, float(solver.ObjBound)
        except gurobipy.GurobiError as error:
            raise InputError(
                f"Gurobi refuses {graph.name or 'the graph'}: {error}; get a licence or try cp-sat"
            ) from None
        return model.result(values, bound, finished=finished, seconds=time.perf_counter() - started)
