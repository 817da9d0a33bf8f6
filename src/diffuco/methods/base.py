"""What a method is: anything that takes a problem and graphs and gives one feasible `Solution` per graph.

A method of one's own is a subclass of `Method`, or of `GraphByGraph` where graphs are solved one at a time; see
examples/custom_method.py.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from diffuco.diffusion.decoding import conditional_expectation
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import make_batch
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem, all_problems
from diffuco.solution.result import Solution
from diffuco.inference.solver import best_solutions

ALL_PROBLEMS = tuple(problem.name for problem in all_problems())

TimeLimit = Literal["used", "stops", "ignored"]
"""What a method does with a time limit: search until it is over, stop at it unless done before, or take no notice."""


class Method(ABC):
    """A way to solve problems; `get_method` finds it by its name once it is registered."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for `diffuco methods`."""
    problems: ClassVar[tuple[str, ...]]
    """Names of the problems it can solve."""
    unweighted: ClassVar[tuple[str, ...]] = ()
    """Those of which it cannot take node weights."""
    time_limit: ClassVar[TimeLimit] = "ignored"

    def missing(self) -> str | None:
        """What has to be installed first and how; None where the method is ready."""
        return None

    @abstractmethod
    def solve(
        self,
        problem: Problem,
        graphs: Sequence[Graph],
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        time_limit_s: float | None = None,
        on_solved: Callable[[int], None] | None = None,
    ) -> list[Solution]:
        """Solve graphs, in the order given; every solution is feasible.

        `time_limit_s` is meant per graph, a batch may take the sum of its graphs' limits; None is the method's own
        choice. The same seed gives the same result unless a time limit cuts the search. `device` is for methods that
        calculate with tensors. `on_solved` is told how many graphs are done.
        """


@dataclass(frozen=True)
class Deadline:
    """The moment a search has to stop; without a limit, never."""

    started: float
    limit_s: float | None

    @classmethod
    def after(cls, limit_s: float | None) -> "Deadline":
        """A deadline that many seconds from now."""
        return cls(time.perf_counter(), limit_s)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def remaining_s(self) -> float:
        """Seconds left, never below 0."""
        return float("inf") if self.limit_s is None else max(0.0, self.limit_s - self.elapsed_s)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.remaining_s <= 0


class GraphByGraph(Method):
    """A method that looks at one graph at a time; what it finds for a graph does not depend on the others."""

    @abstractmethod
    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Feasible states of one graph that has nodes: [num_nodes], or [num_nodes, S] of which the best is kept."""

    def solve(
        self,
        problem: Problem,
        graphs: Sequence[Graph],
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        time_limit_s: float | None = None,
        on_solved: Callable[[int], None] | None = None,
    ) -> list[Solution]:
        """Search every graph in turn."""
        solutions: list[Solution] = []
        for graph in graphs:
            if problem.name in self.unweighted and graph.node_weights is not None:
                name = graph.name or "the graph"
                raise InputError(f"{self.name} takes no node weights for {problem.name}, {name} has some; try anneal")
            deadline = Deadline.after(time_limit_s)
            found = np.zeros((0, 1), dtype=np.bool_)
            if graph.num_nodes:
                found = self.search(problem, graph, seed, deadline)
            seconds = {"load": 0.0, "sample": deadline.elapsed_s, "decode": 0.0}
            states = torch.from_numpy(found[:, None] if found.ndim == 1 else found).float()
            solutions += best_solutions(self.name, problem, [graph], make_batch([graph]), states, seed, seconds)
            if on_solved:
                on_solved(len(solutions))
        return solutions


def repair(problem: Problem, graph: Graph, states: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """States of one graph made feasible by Conditional Expectation, at the same energy or a lower one. [n, S].

    >>> from diffuco.problems import get_problem
    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> repair(get_problem("mis"), triangle, np.ones((3, 1), dtype=np.bool_)).ravel().tolist()
    [False, False, True]
    """
    probs = torch.from_numpy(states.astype(np.float64))
    return conditional_expectation(problem, make_batch([graph]), probs).numpy().astype(np.bool_)
