"""What exact solvers share: they prove an optimum, or say how far from it a solution can be at most."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph
from diffuco.problems import LinearModel, Problem
from diffuco.solution.result import Solution

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


class ExactMethod(GraphByGraph):
    """A method that proves what it finds, if it has the time."""

    time_limit = "stops"
    default_limit_s: ClassVar[float] = 60.0
    """Seconds a graph unless told otherwise."""

    def solves(self, problem: Problem) -> bool:
        """Problems with a linear model."""
        return problem.linear_model(PROBE) is not None

    @abstractmethod
    def prove(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Search until the optimum is proven or the time is up."""

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """The best solution found."""
        return self.solve_one(problem, graph, seed, deadline).chosen

    def solve_one(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> Solution:
        """The best solution found, with its bound."""
        limit_s = self.default_limit_s if deadline.limit_s is None else deadline.remaining_s
        result = self.prove(problem, graph, time_limit_s=limit_s, seed=seed)
        reason = f"proven optimal by {self.name}" if result.proven else "the time was too short for a proof"
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
    )


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
