"""Several answers to one graph: distinct feasible states of a method, of annealing and near the best, best first."""

from dataclasses import replace

import numpy as np

from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.base import Settings, repair
from diffuco.problems import Problem, States
from diffuco.solution.result import Solution

MAX_SEARCHES = 4
"""Times that a graph is annealed for more answers."""
NUM_VARIATIONS = 256
"""Copies of the best answer in which nodes are flipped by chance, then repaired, where annealing always ends in it."""
FLIPPED_SHARE = 0.2
"""Of their nodes."""


def several(solution: Solution, count: int, settings: Settings) -> list[Solution]:
    """Up to `count` distinct solutions, each checked as a single answer is; annealing adds to what the method found.

    It stops as soon as there are `count` as good as the best. If there are too few in the end, variations of the best
    are added. Without a feasible state, the answer stays alone.
    """
    known: dict[bytes, Solution] = {}
    _add(known, solution)
    for number in range(1, MAX_SEARCHES + 1):
        ranked = _best_first(known, count)
        if len(ranked) == count and ranked[-1].objective == ranked[0].objective:
            break
        again = replace(settings, seed=settings.seed + number)
        _add(known, *FlipAnnealing().solve(solution.problem, [solution.graph], again))
    if 0 < len(known) < count:
        _add(known, _variations(_best_first(known, 1)[0], settings.seed))
    return [
        replace(one, bound=solution.bound, optimal=solution.optimal and one.objective == solution.objective)
        for one in _best_first(known, count)
    ] or [solution]


def _add(known: dict[bytes, Solution], found: Solution) -> None:
    """Add all feasible states of a solution that are not there yet."""
    for chosen in (found.chosen, *found.states.T):
        key = identity(found.problem, chosen)
        if key not in known:
            one = replace(found, chosen=chosen)  # which checks it
            if one.feasible:
                known[key] = one


def _variations(best: Solution, seed: int) -> Solution:
    """States near a solution."""
    import torch

    from diffuco.inference.answers import best_solutions, unit_batch

    flips = np.random.default_rng(seed).random((len(best.chosen), NUM_VARIATIONS)) < FLIPPED_SHARE
    states = repair(best.problem, best.graph, best.chosen[:, None] ^ flips)
    (found,) = best_solutions(
        best.problem,
        [best.graph],
        unit_batch(best.problem, [best.graph]),
        torch.from_numpy(states).float(),
        found_by="variation",
        seed=best.seed,
        seconds=best.seconds,
    )
    return found


def _best_first(known: dict[bytes, Solution], count: int) -> list[Solution]:
    return sorted(known.values(), key=lambda one: one.problem.sign * one.objective)[:count]


def identity(problem: Problem, chosen: States) -> bytes:
    """What two states have in common if they are the same solution: for a cut, its sides may change places.

    >>> import numpy as np
    >>> from diffuco.problems import get_problem
    >>> one, other = np.array([True, False]), np.array([False, True])
    >>> identity(get_problem("max-cut"), one) == identity(get_problem("max-cut"), other)
    True
    """
    return (chosen ^ chosen[0] if problem.sides_are_alike and len(chosen) else chosen).tobytes()
