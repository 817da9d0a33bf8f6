"""The exact solver CP-SAT of OR-Tools as a method (the extra `exact`).

The parameters are those that were fastest on the paper's datasets; CP-SAT's default of one worker per core is slower on
all of them.
"""

import time
from importlib.util import find_spec
from typing import Any

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint
from diffuco.foundation.progress import Progress, current_follower
from diffuco.graphs.graph import Graph
from diffuco.methods.exact import ExactMethod, ExactResult
from diffuco.methods.linear import integers, is_confirmed, model_of, trivial, unbounded
from diffuco.problems import LinearModel, Problem

WORKERS = 8
"""Threads per graph, even on fewer cores: each searches in its own way, and one of them is fast."""
LONG_ROWS = 2.5
"""Linear relaxations are good at rows with more nodes than this on average, such as those of dominating sets."""


class CpSat(ExactMethod):
    """Stops when the optimum is proven; it has eight threads, so the seed does not decide what a cut search finds."""

    name = "cp-sat"
    uses_all_cores = True
    summary = "exact: CP-SAT of OR-Tools, 60 s per graph unless told otherwise"

    def missing(self) -> str | None:
        """OR-Tools."""
        return None if find_spec("ortools") else f"OR-Tools; {install_hint('exact')}"

    def prove(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Search until the optimum is proven or the time is up.

        >>> from diffuco.problems import get_problem
        >>> five_cycle = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
        >>> result = CpSat().prove(get_problem("mis"), five_cycle, time_limit_s=10)
        >>> result.objective, result.proven
        (2.0, True)
        """
        cp_model = _import_cp_model()
        started = time.perf_counter()
        linear = model_of(problem, graph)
        model = cp_model.CpModel()
        x = [model.new_bool_var("") for _ in range(len(linear.cost))]
        _add_rows(model, x, linear)
        (costs,), scale = integers(linear.cost)
        model.minimize(sum(cost * variable for cost, variable in zip(costs, x, strict=True) if cost))
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = time_limit_s
        solver.parameters.num_workers = WORKERS
        if len(linear.cost) == linear.num_nodes and linear.matrix.nnz > LONG_ROWS * len(linear.upper):
            # One worker with all cuts beats eight without.
            solver.parameters.num_workers = 1
            solver.parameters.linearization_level = 2
        status = solver.solve(model, _teller(cp_model, problem.sign / scale))
        found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        nodes = x[: linear.num_nodes]
        chosen = trivial(problem, graph)
        if found:
            chosen = np.array([bool(solver.value(node)) for node in nodes], dtype=np.bool_)
        verdict = problem.check(graph, chosen)
        claimed = problem.sign * solver.objective_value / scale if found else np.inf
        proven = status == cp_model.OPTIMAL and is_confirmed(claimed, verdict.objective, scale)
        if proven:
            bound = verdict.objective
        else:  # the bound that CP-SAT reports without a solution is 0, which bounds nothing
            bound = problem.sign * solver.best_objective_bound / scale if found else unbounded(problem)
        return ExactResult(verdict.objective, bound, proven, chosen, time.perf_counter() - started)


def _import_cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise InputError(f"exact solutions need OR-Tools; {install_hint('exact')}") from None
    return cp_model


def _teller(cp_model: Any, unit: float) -> Any:
    """Reports every better solution to whoever follows; None if nobody does."""
    follower = current_follower()
    if follower is None:
        return None
    tell = follower

    class Teller(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        """CP-SAT calls it from threads of its own."""

        num_found = 0

        def on_solution_callback(self) -> None:
            """A better solution was found."""
            self.num_found += 1
            tell(Progress("cp-sat, solutions", self.num_found, None, unit * self.objective_value))

    return Teller()


def _add_rows(model: Any, x: list[Any], linear: LinearModel) -> None:
    """A row of ones and minus ones that only forbids one combination is a clause; others are linear constraints."""
    indptr, indices, values = linear.matrix.indptr, linear.matrix.indices.tolist(), linear.matrix.data
    for row, upper in enumerate(linear.upper.tolist()):
        part = slice(indptr[row], indptr[row + 1])
        columns, factors = indices[part], values[part]
        if (np.abs(factors) == 1).all() and upper == (factors > 0).sum() - 1:
            signed = zip(columns, factors.tolist(), strict=True)
            model.add_bool_or([~x[column] if factor > 0 else x[column] for column, factor in signed])
        else:
            (whole, limit), _ = integers(factors, np.array([upper]))
            model.add(sum(factor * x[column] for factor, column in zip(whole, columns, strict=True)) <= limit[0])
    if linear.is_symmetric and x:
        model.add(x[0] == 0)
