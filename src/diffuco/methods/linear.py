"""Linear models as exact solvers take them: weights as whole numbers, and answers that are checked again."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.methods.base import repair
from diffuco.methods.exact import ExactResult
from diffuco.problems import LinearModel, Problem

MAX_TOTAL = 10**14
"""Sums of whole numbers are exact in float64 up to this, also when they are calculated from decimals."""
MAX_FLOATING_TOTAL = 2**30
"""The same for solvers that calculate in floating point with tolerances: they tell such sums apart by less than 1."""
MAX_POWER = 300
"""Powers of ten beyond this leave the range of float64."""
ROUNDS, ENTRIES = 300, 10**8
"""The most rounds of `FloatingModel.priced_bound`, and the most entries of the matrix that all of them may read."""
PATIENCE = 4
"""Rounds without a better bound, after which steps are half as long."""
TOLERANCE = 1e-6
"""By how much these solvers may violate a constraint, miss a whole number and take a bound for reached."""


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
        if not finished and not problem.is_quadratic:  # the first bounds of covers take solvers long
            priced = self.priced_bound(problem.sign * objective * self.scale)
            bound = priced if bound is None else max(priced, bound)
        if bound is None:
            return ExactResult(objective, unbounded(problem), False, chosen, seconds)
        if finished and self.is_whole and is_confirmed(problem.sign * bound / self.scale, objective, self.scale):
            return ExactResult(objective, objective, True, chosen, seconds)
        if self.is_whole:
            bound = np.ceil(bound - TOLERANCE * (1 + abs(bound))) + 0.0  # not -0
        else:  # the variable of an edge depends on two nodes and a constraint, each of which may be off
            bound -= TOLERANCE * (1 + 3 * np.abs(self.cost).sum())
        limit = problem.sign * bound / self.scale
        why_not = "the weights have too many digits for a proof" if finished else ExactResult.why_not
        return ExactResult(objective, limit, False, chosen, seconds, why_not)

    def priced_bound(self, best: float) -> float:
        """What no solution costs less than, given the cost of one: a Lagrangian bound, by subgradients.

        Constraints may be broken at a price. The prices of broken ones rise and those of others fall, in steps as long
        as the distance to the best solution suggests (Polyak's rule).
        """
        matrix, upper = self.linear.matrix, self.linear.upper
        transposed = matrix.T.tocsr()
        prices = kept = np.zeros(len(upper))
        highest, pace, misses = -np.inf, 1.0, 0
        for _ in range(min(ROUNDS, ENTRIES // max(1, matrix.nnz))):
            reduced = self.cost + transposed @ prices
            is_cheap = reduced < 0
            value = float(reduced[is_cheap].sum() - prices @ upper)
            misses = 0 if value > highest else misses + 1
            if value > highest:
                highest, kept = value, prices
            elif misses == PATIENCE:
                pace, misses, prices = pace / 2, 0, kept
                continue
            broken = matrix @ is_cheap.astype(np.float64) - upper
            step = np.where((prices > 0) | (broken > 0), broken, 0.0)
            prices = np.maximum(0.0, prices + pace * (best - value) / max(1e-12, float(step @ step)) * step)
        return highest


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
