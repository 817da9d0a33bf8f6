"""A trained model as a method: what others are compared with, and what `auto` takes where its samples pay.

Legend: N rows, S chains per graph.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from diffuco.methods.anneal import NUM_CHAINS, anneal_until
from diffuco.methods.base import ALL_PROBLEMS, Deadline, Method
from diffuco.methods.annealer import BatchedMethod
from diffuco.foundation.devices import finish
from diffuco.graphs.batch import Batch
from diffuco.graphs.graph import Graph
from diffuco.graphs.batch.by_size import rows_per_batch
from diffuco.problems import Problem
from diffuco.inference.refinement import schedule_for_samples
from diffuco.solution.result import Solution
from diffuco.inference.solver import Solver, draw_solutions

MANY_SAMPLES = (32, 8)
"""Samples a graph, the first of these for which there is time; else one."""
SHARE_FOR_SAMPLES = 0.3
"""Of the time that is left after the first sample; annealing from them gets the rest."""


class ModelMethod(BatchedMethod):
    """A trained model: 8 samples, refined; given a time limit, 32 chains from samples and as many sweeps as fit."""

    name: ClassVar[str] = "diffuco"
    summary: ClassVar[str] = "samples of a trained model, decoded and refined"
    problems: ClassVar[tuple[str, ...]] = ALL_PROBLEMS
    time_limit = "used"

    def __init__(self, solver: Solver) -> None:
        self.solver = solver

    def num_columns(self, problem: Problem) -> int:
        """Chains per graph."""
        return NUM_CHAINS

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
        """As `diffuco solve --model` does, or until the time is over."""
        if time_limit_s is None:
            return self.solver.solve(graphs, seed=seed, on_solved=on_solved)
        found = super().solve(
            problem, graphs, seed=seed, device=self.solver.device, time_limit_s=time_limit_s, on_solved=on_solved
        )
        return [replace(solution, model=self.solver.checkpoint.name) for solution in found]

    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """The best state of each chain, starting from samples; where there are fewer, several start from the same."""
        seeds = np.random.default_rng(generator.initial_seed())
        started = time.perf_counter()
        samples = self._draw(problem, batch, 1, seeds)
        finish(batch.device)
        sample_s = time.perf_counter() - started
        for count in MANY_SAMPLES:
            if (count - 1) * sample_s <= SHARE_FOR_SAMPLES * deadline.remaining_s:
                samples = torch.cat([samples, self._draw(problem, batch, count - 1, seeds)], dim=1)
                break
        states = samples.repeat(1, NUM_CHAINS // samples.shape[1])
        temperature = schedule_for_samples(problem, batch.largest).temperature
        return anneal_until(deadline, problem, batch, lambda: states, temperature, generator)

    def _draw(self, problem: Problem, batch: Batch, count: int, seeds: np.random.Generator) -> Tensor:
        at_once = max(1, rows_per_batch(batch.device) // max(1, batch.num_rows))
        states, _ = draw_solutions(
            self.solver.sampler,
            problem,
            batch,
            num_samples=count,
            samples_at_once=at_once,
            step_factor=3,
            token_size=1,
            seeds=seeds,
        )
        return states


class PlainModelMethod(Method):
    """The paper's method, samples and Conditional Expectation: twice as many in every round until the time is over."""

    name: ClassVar[str] = "diffuco-ce"
    summary: ClassVar[str] = "samples of a trained model, decoded by Conditional Expectation"
    problems: ClassVar[tuple[str, ...]] = ALL_PROBLEMS
    time_limit = "used"

    def __init__(self, solver: Solver) -> None:
        self.solver = solver

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
        """Rounds of 1, 2, 4, ... samples of all graphs, the best is kept; one round of 8 without a time limit."""
        deadline = Deadline.after(None if time_limit_s is None else time_limit_s * len(graphs))
        samples = 8 if time_limit_s is None else 1
        best = self.solver.solve(graphs, samples=samples, refine=0, seed=seed, on_solved=on_solved)
        # A round of twice the samples takes at most twice the time.
        round_s = 2 * deadline.elapsed_s
        while time_limit_s is not None and round_s < deadline.remaining_s:
            samples, seed, before = 2 * samples, seed + 1, deadline.elapsed_s
            found = self.solver.solve(graphs, samples=samples, refine=0, seed=seed, on_solved=on_solved)
            best = [min(pair, key=kept_energy) for pair in zip(best, found, strict=True)]
            round_s = 2 * (deadline.elapsed_s - before)
        return best


def kept_energy(solution: Solution) -> float:
    """Of the sample that was kept: that of a feasible solution is its objective with the problem's sign."""
    return min(solution.energies)
