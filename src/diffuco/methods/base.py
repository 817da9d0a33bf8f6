"""What a method is: anything that takes a problem and graphs and gives one `Solution` per graph.

A method of your own is a subclass of `Method`, or of `GraphByGraph` if it solves one graph at a time; see
examples/custom_method.py.

Torch is imported where a tensor is made, so that an exact answer does not wait for it.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from threading import Thread
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem, in_weight_units
from diffuco.solution.result import Solution, as_states

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
TimeLimit = Literal["used", "stops", "ignored"]
"""What a method does with a time limit: search until it is over, stop at it unless done before, or ignore it."""


@dataclass(frozen=True)
class Settings:
    """What a method is told beside the problem and the graphs."""

    seed: int = 0
    """The same seed gives the same result, unless a time limit cuts the search."""
    place: "torch.device | str" = "cpu"
    """Where methods calculate that use tensors; `auto` is the GPU if there is one."""
    time_limit_s: float | None = None
    """Seconds per graph; a batch may take the sum of its graphs' limits. None leaves the time to the method."""
    on_solved: Callable[[int], None] | None = None
    """Is told how many more graphs are solved."""

    @cached_property
    def device(self) -> "torch.device":
        """The place as torch knows it. Asking for it imports torch."""
        return pick_device(self.place)

    def tell(self, num_solved: int) -> None:
        """Report graphs as solved."""
        if self.on_solved:
            self.on_solved(num_solved)


class Method(ABC):
    """A way to solve problems; `get_method` finds it by its name once it is registered."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for `diffuco methods`."""
    time_limit: ClassVar[TimeLimit] = "ignored"
    draws_samples: ClassVar[bool] = False
    """Whether answers are samples of a model, which may not suit a graph."""

    def solves(self, problem: Problem) -> bool:
        """Whether the method can solve a problem; by default it can solve any."""
        return True

    def takes_node_weights(self, problem: Problem) -> bool:
        """Whether the method can take node weights where the problem knows them."""
        return True

    def missing(self) -> str | None:
        """What has to be installed first, and how; None where the method is ready."""
        return None

    def check_time_limit(self) -> None:
        """Refuse a time limit where other settings exclude it."""
        return None

    @abstractmethod
    def solve(self, problem: Problem, graphs: Sequence[Graph], settings: Settings) -> list[Solution]:
        """Solve graphs, in the order given."""


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
    """A method that looks at one graph at a time; what it finds for a graph does not depend on the others.

    It has a `search`, or its own `solve_one`.
    """

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """States of one graph that has nodes: [num_nodes], or [num_nodes, S] of which the best is kept.

        Weights are in units near the largest (`weight_unit`).
        """
        raise NotImplementedError(f"{type(self).__name__} has no `search`; write one that returns states of the graph")

    def solve(self, problem: Problem, graphs: Sequence[Graph], settings: Settings) -> list[Solution]:
        """Search every graph in turn."""
        solutions: list[Solution] = []
        for graph in graphs:
            if graph.node_weights is not None and problem.uses_node_weights and not self.takes_node_weights(problem):
                name = graph.name or "the graph"
                raise InputError(f"{self.name} takes no node weights for {problem}, {name} has some; try anneal")
            solutions.append(self.solve_one(problem, graph, settings.seed, Deadline.after(settings.time_limit_s)))
            settings.tell(1)
        return solutions

    def solve_one(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> Solution:
        """The best of the states that the search finds."""
        scaled = in_weight_units(problem, graph)
        found = self.search(problem, scaled, seed, deadline) if graph.num_nodes else np.zeros((0, 1), dtype=np.bool_)
        return self.best_of(problem, graph, found, seed, deadline)

    def best_of(self, problem: Problem, graph: Graph, found: ArrayLike, seed: int, deadline: Deadline) -> Solution:
        """The best of some states, [num_nodes] or [num_nodes, S]."""
        import torch

        from diffuco.inference.answers import best_solutions, unit_batch

        states = torch.from_numpy(as_states(found, graph)).float()
        seconds = {"load": 0.0, "sample": deadline.elapsed_s, "decode": 0.0}
        (solution,) = best_solutions(
            problem, [graph], unit_batch(problem, [graph]), states, found_by=self.name, seed=seed, seconds=seconds
        )
        return solution


def repair(problem: Problem, graph: Graph, states: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """States of one graph made feasible by Conditional Expectation, at the same energy or a lower one. [n, S].

    >>> from diffuco.problems import get_problem
    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> repair(get_problem("mis"), triangle, np.ones((3, 1), dtype=np.bool_)).ravel().tolist()
    [False, False, True]
    """
    import torch

    from diffuco.inference.answers import unit_batch
    from diffuco.inference.decoding import conditional_expectation

    probs = torch.from_numpy(states.astype(np.float64))
    return conditional_expectation(problem, unit_batch(problem, [graph]), probs).numpy().astype(np.bool_)


def beside(work: Callable[[], T]) -> "Future[T]":
    """Start work in a thread that does not keep the program from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
