"""A trained model as a method: what others are compared with, and what `auto` takes where time is short."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch

from diffuco.baselines.methods.base import ALL_PROBLEMS, Deadline, Method
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem
from diffuco.solution import Solution
from diffuco.solver import Solver


class ModelMethod(Method):
    """A trained model: twice as many samples in every round until the time is over, the best is kept."""

    name: ClassVar[str] = "diffuco"
    summary: ClassVar[str] = "samples of a trained model, decoded and refined"
    problems: ClassVar[tuple[str, ...]] = ALL_PROBLEMS
    time_limit = "used"

    refine: ClassVar[int | None] = None
    """Sweeps as `Solver.solve` takes them."""

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
        """Rounds of 1, 2, 4, ... samples of all graphs; one round of 8 without a time limit."""
        deadline = Deadline.after(None if time_limit_s is None else time_limit_s * len(graphs))
        samples = 8 if time_limit_s is None else 1
        best = self.solver.solve(graphs, samples=samples, refine=self.refine, seed=seed, on_solved=on_solved)
        # A round of twice the samples takes at most twice the time.
        round_s = 2 * deadline.elapsed_s
        while time_limit_s is not None and round_s < deadline.remaining_s:
            samples, seed, before = 2 * samples, seed + 1, deadline.elapsed_s
            found = self.solver.solve(graphs, samples=samples, refine=self.refine, seed=seed, on_solved=on_solved)
            best = [min(pair, key=kept_energy) for pair in zip(best, found, strict=True)]
            round_s = 2 * (deadline.elapsed_s - before)
        return best


class PlainModelMethod(ModelMethod):
    """The paper's method: samples and Conditional Expectation, no refinement."""

    name: ClassVar[str] = "diffuco-ce"
    summary: ClassVar[str] = "samples of a trained model, decoded by Conditional Expectation"
    refine: ClassVar[int | None] = 0


def kept_energy(solution: Solution) -> float:
    """Of the sample that was kept: that of a feasible solution is its objective with the problem's sign."""
    return min(solution.energies)
