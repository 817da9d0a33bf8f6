"""What methods that anneal many graphs at once share: batches of similar size, time, decoding, the best state.

Legend: B graphs, N rows, S states per graph.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from diffuco.methods.base import Deadline, Method
from diffuco.diffusion.decoding import conditional_expectation
from diffuco.foundation.devices import finish
from diffuco.graphs.batch import Batch, make_batch
from diffuco.graphs.graph import Graph
from diffuco.graphs.batch.by_size import batches_by_size
from diffuco.problems import Problem
from diffuco.solution.result import Solution
from diffuco.inference.solver import best_solutions

ROWS_PER_BATCH = {"cpu": 2**16, "cuda": 2**24}
"""Nodes times states of the graphs that are annealed together: what fits a CPU's cache, what keeps a GPU busy."""


class BatchedMethod(Method):
    """A method that takes graphs of similar size together; what it finds, Conditional Expectation makes feasible."""

    @abstractmethod
    def num_columns(self, problem: Problem) -> int:
        """S: states per graph that are worked on at once."""

    @abstractmethod
    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """Probabilities or states of a batch. [N, S]."""

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
        """Anneal, decode and keep the best."""
        device = torch.device(device)
        solutions: dict[int, Solution] = {}
        max_rows = ROWS_PER_BATCH.get(device.type, ROWS_PER_BATCH["cuda"])
        for number, positions in enumerate(batches_by_size(graphs, self.num_columns(problem), max_rows)):
            chosen = [graphs[position] for position in positions]
            deadline = Deadline.after(None if time_limit_s is None else time_limit_s * len(chosen))
            generator = torch.Generator(device).manual_seed(seed + number)
            batch = make_batch(chosen, device)
            annealed = self.anneal(problem, batch, generator, deadline)
            finish(device)
            sampled_s = deadline.elapsed_s
            states = conditional_expectation(problem, batch, annealed)
            finish(device)
            seconds = {"load": 0.0, "sample": sampled_s, "decode": deadline.elapsed_s - sampled_s}
            share = {stage: value / len(chosen) for stage, value in seconds.items()}
            found = best_solutions(self.name, problem, chosen, batch, states, seed, share)
            solutions |= dict(zip(positions, found, strict=True))
            if on_solved:
                on_solved(len(solutions))
        return [solutions[position] for position in range(len(graphs))]
