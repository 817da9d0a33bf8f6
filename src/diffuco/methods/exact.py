"""What exact solvers share: they prove an optimum, or say how far from it a solution can be at most."""

from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.progress import report
from diffuco.graphs.components import Piece, pieces
from diffuco.graphs.datasets import available_cores
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph, repair
from diffuco.problems import LinearModel, Problem, get_problem
from diffuco.solution.result import Solution

MAX_TOTAL = 10**14
"""Sums of whole numbers are exact in float64 up to this, also when they are calculated from decimals."""
MAX_FLOATING_TOTAL = 2**30
"""The same for solvers that calculate in floating point with tolerances: they tell such sums apart by less than 1."""
MAX_POWER = 300
"""Powers of ten beyond this leave the range of float64."""
TOLERANCE = 1e-6
"""By how much these solvers may violate a constraint, miss a whole number and take a bound for reached."""
PROBE = Graph.from_edges([(0, 1)])
"""A graph small enough for any model."""


@dataclass(frozen=True, eq=False)
class ExactResult:
    """The best solution found and what is known about better ones."""

    objective: float
    bound: float
    """No solution is better than this."""
    proven: bool
    """Whether the solution is optimal."""
    chosen: NDArray[np.bool_]
    seconds: float
    why_not: str = "the time was too short for a proof"
    """Where it is not proven."""
    settled: NDArray[np.bool_] | None = None
    """[num_nodes] where it is, if the graph falls apart and that is so for some of its pieces only."""


class ExactMethod(GraphByGraph):
    """A method that proves what it finds, if it has the time."""

    time_limit = "stops"
    default_limit_s: ClassVar[float] = 60.0
    """Seconds a graph unless told otherwise."""
    uses_all_cores: ClassVar[bool] = False
    """Whether one proof does; if not, pieces of a graph are proven at the same time."""

    def solves(self, problem: Problem) -> bool:
        """Problems with a linear model."""
        return problem.linear_model(PROBE) is not None

    @abstractmethod
    def prove(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Search until the optimum is proven or the time is up."""

    def prove_pieces(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Prove the pieces of a graph that falls apart each for itself; the time that is left is shared equally.

        A solver does not see them, and would prove nothing if there is one that it cannot prove. Many small components
        that look alike can keep HiGHS busy for hours, whatever its time limit is.
        """
        if problem.complement:  # HiGHS presolves independent sets better than vertex covers
            other = self.prove_pieces(get_problem(problem.complement), graph, time_limit_s=time_limit_s, seed=seed)
            return complemented(problem, graph, other)
        parts = pieces(graph) if problem.adds_up else []
        if len(parts) < 2:
            return self.prove(problem, graph, time_limit_s=time_limit_s, seed=seed)
        clock = Deadline.after(time_limit_s)
        at_once = 1 if self.uses_all_cores else min(len(parts), available_cores())

        def prove(place: int) -> ExactResult:
            share_s = clock.remaining_s * min(1.0, at_once / (len(parts) - place))
            return self.prove(problem, parts[place].graph, time_limit_s=share_s, seed=seed)

        with ThreadPoolExecutor(at_once) as pool:
            results = list(pool.map(prove, range(len(parts))))
        return joined(problem, graph, parts, results, clock.elapsed_s)

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """The best solution found."""
        return self.solve_one(problem, graph, seed, deadline).chosen

    def solve_one(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> Solution:
        """The best solution found, with its bound."""
        limit_s = self.default_limit_s if deadline.limit_s is None else deadline.remaining_s
        report(f"{self.name}, at most {limit_s:.3g} s")
        result = self.prove_pieces(problem, graph, time_limit_s=limit_s, seed=seed)
        report(self.name, best=lambda: result.objective)
        reason = f"proven optimal by {self.name}" if result.proven else result.why_not
        return as_solution(problem, graph, result, found_by=self.name, seed=seed, reason=reason)


def as_solution(
    problem: Problem, graph: Graph, result: ExactResult, *, found_by: str, seed: int, reason: str
) -> Solution:
    """What an exact solver found as a solution, whose energy is its objective."""
    return Solution(
        problem=problem,
        graph=graph,
        chosen=result.chosen,
        states=result.chosen[:, None],
        energies=[problem.sign * result.objective],
        objectives=[result.objective],
        found_by=found_by,
        reason=reason,
        seed=seed,
        seconds={"load": 0.0, "sample": result.seconds, "decode": 0.0},
        optimal=result.proven,
        bound=result.bound if np.isfinite(result.bound) else None,
        settled=result.settled,
    )


def complemented(problem: Problem, graph: Graph, other: ExactResult) -> ExactResult:
    """The result for a problem whose solutions leave out what those of the other one choose."""
    objective = problem.check(graph, ~other.chosen).objective
    bound = objective if other.proven else objective + other.objective - other.bound
    return replace(other, objective=objective, bound=bound, chosen=~other.chosen)


def joined(
    problem: Problem, graph: Graph, parts: Sequence[Piece], results: Sequence[ExactResult], seconds: float
) -> ExactResult:
    """What was found for the pieces of a graph, as one result."""
    chosen, settled = np.zeros((2, graph.num_nodes), dtype=np.bool_)
    for part, result in zip(parts, results, strict=True):
        chosen[part.nodes], settled[part.nodes] = result.chosen, result.proven
    objective = problem.check(graph, chosen).objective
    if settled.all():
        return ExactResult(objective, objective, True, chosen, seconds)
    why_not = next(result.why_not for result in results if not result.proven)
    bound = sum(result.bound for result in results)
    return ExactResult(objective, bound, False, chosen, seconds, why_not, settled if settled.any() else None)


def integers(*values: NDArray[np.float64], most: int = MAX_TOTAL) -> tuple[list[list[int]], float]:
    """Numbers times the smallest power of ten that makes all of them whole, and that power.

    Each may be off by a rounding of float64, as 0.1 * 3 is. Numbers whose sum would exceed `most` are an InputError.

    >>> integers(np.array([0.5, 2.0])), integers(np.array([3e-10]), np.array([1e-9]))
    (([[5, 20]], 10.0), ([[3], [10]], 10000000000.0))
    """
    sizes = np.abs(np.concatenate(values))
    largest = sizes.max(initial=0.0)
    power = -int(np.floor(np.log10(largest))) if largest > 0 else 0
    while abs(power) <= MAX_POWER and sizes.sum() * 10.0**power <= most:
        scaled = [part * 10.0**power for part in values]
        if all(np.allclose(part, np.round(part), rtol=1e-15, atol=0.0) for part in scaled):
            return [[int(number) for number in np.round(part)] for part in scaled], 10.0**power
        power += 1
    raise InputError("the weights have too many digits for exact solutions; round them, or try anneal")


@dataclass(frozen=True, eq=False)
class FloatingModel:
    """A linear model for a solver that calculates in floating point: costs are whole numbers, or at most 1."""

    problem: Problem
    graph: Graph
    linear: LinearModel
    cost: NDArray[np.float64]
    scale: float
    """Costs of the linear model times this are `cost`."""
    is_whole: bool
    """Whether the costs are whole numbers; only then can a solver with tolerances prove an optimum."""

    @classmethod
    def of(cls, problem: Problem, graph: Graph) -> "FloatingModel":
        """The model of a problem on a graph, in units that do not depend on those of the weights."""
        linear = model_of(problem, graph)
        try:
            (whole,), scale = integers(linear.cost, most=MAX_FLOATING_TOTAL)
            return cls(problem, graph, linear, np.array(whole, dtype=np.float64), scale, True)
        except InputError:
            largest = np.abs(linear.cost).max()
            return cls(problem, graph, linear, linear.cost / largest, float(1 / largest), False)

    @property
    def is_binary(self) -> NDArray[np.bool_]:
        """Which variables are nodes."""
        return np.arange(len(self.cost)) < self.linear.num_nodes

    def result(self, values: Any, bound: float | None, *, finished: bool, seconds: float) -> ExactResult:
        """What a solver found, None if nothing; it is proven if its bound, in units of `cost`, agrees with it."""
        problem, graph = self.problem, self.graph
        found = trivial(problem, graph) if values is None else values[: graph.num_nodes] > 0.5
        chosen = repair(problem, graph, found[:, None])[:, 0]
        objective = problem.check(graph, chosen).objective
        if bound is None:
            return ExactResult(objective, unbounded(problem), False, chosen, seconds)
        if finished and self.is_whole and is_confirmed(problem.sign * bound / self.scale, objective, self.scale):
            return ExactResult(objective, objective, True, chosen, seconds)
        if self.is_whole:
            bound = max(bound, np.ceil(bound - TOLERANCE * (1 + abs(bound))))
        else:  # the variable of an edge depends on two nodes and a constraint, each of which may be off
            bound -= TOLERANCE * (1 + 3 * np.abs(self.cost).sum())
        limit = problem.sign * bound / self.scale
        why_not = "the weights have too many digits for a proof" if finished else ExactResult.why_not
        return ExactResult(objective, limit, False, chosen, seconds, why_not)


def is_confirmed(claimed: float, objective: float, scale: float) -> bool:
    """Whether a claimed optimum is the objective of its solution: they are within half a unit of 1 / scale."""
    return abs(claimed - objective) * scale < 0.5


def model_of(problem: Problem, graph: Graph) -> LinearModel:
    """The linear model of a problem that has one."""
    model = problem.linear_model(graph)
    assert model is not None, f"{problem} has no linear model"
    return model


def trivial(problem: Problem, graph: Graph) -> NDArray[np.bool_]:
    """An answer for a solver that ran out of time with nothing: no nodes, or all of them if that is not feasible."""
    nothing = np.zeros(graph.num_nodes, dtype=np.bool_)
    return nothing if problem.check(graph, nothing).feasible else ~nothing


def unbounded(problem: Problem) -> float:
    """The bound of a solver that knows none."""
    return -problem.sign * np.inf
