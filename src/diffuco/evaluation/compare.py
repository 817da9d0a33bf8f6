"""Gap against time: several methods on the same graphs with the same time (`diffuco compare`)."""

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from diffuco.evaluation import metrics
from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import GraphWarning
from diffuco.foundation.values import check_seed
from diffuco.foundation.wording import counted
from diffuco.graphs.graph import Graph
from diffuco.methods import Method, Settings, check_method, get_method
from diffuco.methods.model import kept_energy
from diffuco.problems import Problem, check_weights, get_problem, graph_for

TOLERANCE = 1e-5
"""Relative tolerance of a tie with the reference: single precision may make an equal energy look worse."""


@dataclass(frozen=True)
class Run:
    """One method on all graphs within one budget."""

    method: str
    budget_s: float | None
    """Seconds per graph that it was given; None for a method that ignores time."""
    seconds: float
    """Seconds per graph that it took: the time of the whole set over the number of graphs."""
    energies: NDArray[np.float64]
    """[G] energies of its solutions."""
    objectives: NDArray[np.float64]
    """[G] objectives of its solutions."""
    num_infeasible: int = 0
    """How many of its solutions violate constraints; they count in energies and objectives."""


def compare(
    graphs: Sequence[object],
    problem: str | Problem,
    methods: Sequence[str | Method],
    budgets_s: Sequence[float],
    *,
    seed: int = 0,
    device: str = "auto",
) -> Iterator[Run]:
    """Run every method within every budget of seconds per graph; a method that ignores time runs once.

    A graph is anything that `solve` takes. A `GraphWarning` tells of infeasible answers, which problems of your own may
    get.

    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> [run.objectives.tolist() for run in compare([path], "mis", ["greedy", "cp-sat"], [1.0])]
    [[2.0], [2.0]]
    """
    known, place, seed = get_problem(problem), pick_device(device), check_seed(seed)
    chosen = [get_method(method) for method in methods]
    for method in chosen:
        check_method(method, known, min(budgets_s))
    given = [graph_for(known, graph) for graph in graphs]
    check_weights(known, given)
    for method in chosen:
        budgets = budgets_of(method, budgets_s)
        for some, budget_s in _warm_ups(given, budgets, place):
            method.solve(known, some, Settings(seed, place, budget_s))
        for budget_s in budgets:
            started = time.perf_counter()
            solutions = method.solve(known, given, Settings(seed, place, budget_s))
            seconds = (time.perf_counter() - started) / len(given)
            energies = np.array([kept_energy(solution) for solution in solutions])
            objectives = np.array([solution.objective for solution in solutions])
            num_infeasible = sum(not solution.feasible for solution in solutions)
            if num_infeasible:
                told = f"{num_infeasible} of {counted(len(given), 'answer')} infeasible, and still in the means"
                warnings.warn(GraphWarning(f"{method.name}: {told}"), stacklevel=2)
            yield Run(method.name, budget_s, seconds, energies, objectives, num_infeasible)


def budgets_of(method: Method, budgets_s: Sequence[float]) -> Sequence[float | None]:
    """The budgets within which a method runs: one that ignores time runs once."""
    return (None,) if method.time_limit == "ignored" else sorted(budgets_s)


def _warm_ups(
    graphs: Sequence[Graph], budgets: Sequence[float | None], device: torch.device
) -> list[tuple[Sequence[Graph], float | None]]:
    """What to solve before the clock starts, so that compiling and loading are not measured.

    The largest graph decides which kernels are compiled. On a GPU the shape of the batch and the number of samples do
    too. The number of samples depends on the budget and on the time of the first sample, which is right only once its
    kernels are compiled. So the smallest budget runs twice.
    """
    if device.type == "cuda":
        return [(graphs, budget_s) for budget_s in (budgets[0], *budgets)]
    return [([max(graphs, key=lambda graph: graph.num_nodes)], budgets[0])]


def best_known(runs: Sequence[Run]) -> NDArray[np.float64]:
    """The lowest energy that any method found on each graph: the reference if there is no other. [G]."""
    lowest: NDArray[np.float64] = np.min([run.energies for run in runs], axis=0)
    return lowest


def summary(run: Run, optima: NDArray[np.float64]) -> dict[str, float | str | None]:
    """A run as a row of a table; `optima` are optimal or best known energies. [G]."""
    gap = metrics.mean_with_error(metrics.relative_error(run.energies[:, None], optima))
    return {
        "method": run.method,
        "budget_s": run.budget_s,
        "seconds": run.seconds,
        "infeasible": run.num_infeasible,
        "mean": float(run.objectives.mean()),
        "gap": gap.mean,
        "gap_standard_error": gap.standard_error,
        "solved_to_reference": float((run.energies <= optima + TOLERANCE * np.abs(optima)).mean()),
    }
