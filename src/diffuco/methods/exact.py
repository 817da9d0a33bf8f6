"""What exact solvers share: they prove an optimum, or say how far from it a solution can be at most."""

from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.progress import report
from diffuco.graphs.components import Piece, pieces
from diffuco.graphs.datasets import available_cores
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph
from diffuco.problems import Problem, get_problem
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

        pool = ThreadPoolExecutor(at_once)
        try:
            results = list(pool.map(prove, range(len(parts))))
        finally:  # Ctrl+C does not wait for pieces
            pool.shutdown(wait=False, cancel_futures=True)
        return joined(problem, graph, parts, results, clock.elapsed_s)

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
