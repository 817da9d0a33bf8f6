"""How good a method is on a set of graphs: its answers, summarised as the samples of a model are."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from diffuco.methods import get_method, solve_with
from diffuco.methods.annealer import BatchedMethod
from diffuco.foundation.devices import pick_device
from diffuco.evaluation.evaluate import NUM_WARM_UP, summarise
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem


def evaluate_method(
    method: str,
    problem: str,
    graphs: Sequence[Graph],
    *,
    seed: int = 0,
    device: str = "auto",
    time_limit_s: float | None = None,
    references: Sequence[float] | None = None,
    tightness: Sequence[float] | None = None,
    on_solved: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Solve the graphs and summarise; a method's answer is one sample, whatever it tried on the way.

    >>> record = evaluate_method("greedy", "mis", [Graph.from_edges([(0, 1), (1, 2)])], references=[2])
    >>> record["mean"], record["reference"]["gap"]
    (2.0, 0.0)
    """
    options: dict[str, Any] = {"seed": seed, "device": device, "time_limit_s": time_limit_s}
    if pick_device(device).type == "cuda" and isinstance(get_method(method), BatchedMethod):
        solve_with(method, problem, graphs[:NUM_WARM_UP], **options)
    solutions = solve_with(method, problem, graphs, on_solved=on_solved, **options)
    sign = -1.0 if get_problem(problem).sense == "max" else 1.0
    energies = sign * np.array([[solution.objective] for solution in solutions])
    about = {"method": method, "time_limit_s": time_limit_s, "seed": seed}
    return about | summarise(get_problem(problem), solutions, energies, pick_device(device), references, tightness)
