"""Gap against time: several methods on the same graphs, each given the same seconds (`diffuco compare`)."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from diffuco import metrics
from diffuco.baselines.methods import check_method
from diffuco.baselines.methods.base import ALL_PROBLEMS, Deadline, Method
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem
from diffuco.solution import Solution
from diffuco.solver import Solver

TOLERANCE = 1e-5
"""Share of a reference by which single precision may make an energy that equals it look worse."""


@dataclass(frozen=True)
class Run:
    """One method on all graphs within one budget."""

    method: str
    budget_s: float | None
    """Seconds per graph it was given; None for a method that takes no notice of time."""
    seconds: float
    """Seconds per graph it took, over the whole set: a batch counts as the share of each of its graphs."""
    energies: NDArray[np.float64]
    """[G] of its solutions."""
    objectives: NDArray[np.float64]
    """[G]"""


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
            best = [min(pair, key=_energy) for pair in zip(best, found, strict=True)]
            round_s = 2 * (deadline.elapsed_s - before)
        return best


class PlainModelMethod(ModelMethod):
    """The paper's method: samples and Conditional Expectation, no refinement."""

    name: ClassVar[str] = "diffuco-ce"
    summary: ClassVar[str] = "samples of a trained model, decoded by Conditional Expectation"
    refine: ClassVar[int | None] = 0


def run_methods(
    problem: Problem,
    graphs: Sequence[Graph],
    methods: Sequence[Method],
    budgets_s: Sequence[float],
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Iterator[Run]:
    """Run every method within every budget; one that takes no notice of time runs once."""
    for method in methods:
        check_method(method, problem.name, min(budgets_s))
    for method in methods:
        # What is compiled or loaded at the first call is not part of solving. The largest graph decides on the kernels;
        # on a GPU the shape of the batch does too.
        largest = max(graphs, key=lambda graph: graph.num_nodes)
        warm_up = graphs if torch.device(device).type == "cuda" else [largest]
        method.solve(problem, warm_up, seed=seed, device=device, time_limit_s=min(budgets_s))
        for budget_s in budgets_s if method.time_limit != "ignored" else (None,):
            started = time.perf_counter()
            solutions = method.solve(problem, graphs, seed=seed, device=device, time_limit_s=budget_s)
            seconds = (time.perf_counter() - started) / len(graphs)
            energies = np.array([_energy(solution) for solution in solutions])
            objectives = np.array([solution.objective for solution in solutions])
            yield Run(method.name, budget_s, seconds, energies, objectives)


def _energy(solution: Solution) -> float:
    """Of the sample that was kept: that of a feasible solution is its objective with the problem's sign."""
    return min(solution.energies)


def best_known(runs: Sequence[Run]) -> NDArray[np.float64]:
    """The lowest energy that any method found on each graph: a reference where there is no other. [G]."""
    lowest: NDArray[np.float64] = np.min([run.energies for run in runs], axis=0)
    return lowest


def summary(run: Run, optima: NDArray[np.float64]) -> dict[str, float | str | None]:
    """A run as a line of a table; `optima` are optimal or best known energies. [G]."""
    gap = metrics.mean_with_error(metrics.relative_error(run.energies[:, None], optima))
    return {
        "method": run.method,
        "budget_s": run.budget_s,
        "seconds": run.seconds,
        "mean": float(run.objectives.mean()),
        "gap": gap.mean,
        "gap_standard_error": gap.standard_error,
        "solved_to_reference": float((run.energies <= optima + TOLERANCE * np.abs(optima)).mean()),
    }
