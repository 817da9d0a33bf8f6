"""What methods share that work on many graphs at once: batches of similar size, time, decoding, the best state.

Legend: B graphs, N rows, S states per graph.
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from diffuco.foundation.devices import finish
from diffuco.foundation.progress import in_units, report
from diffuco.foundation.wording import counted
from diffuco.graphs.batch import Batch
from diffuco.graphs.by_size import batches_by_size, in_order
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import best_objective, best_solutions, unit_batch
from diffuco.inference.decoding import conditional_expectation
from diffuco.methods.base import Deadline, Method, Settings
from diffuco.problems import Problem, weight_unit
from diffuco.solution.result import Solution

ROWS_PER_BATCH = {"cpu": 2**16, "cuda": 2**24}
"""Nodes times states of the graphs that are annealed together: what fits a CPU's cache, what keeps a GPU busy."""
DECODED_ROWS = 2**20
"""Nodes of a graph times states that are decoded at the end."""
SHARE_OF_TIME = 0.9
"""Of what is left, so that a round ends in time."""
SHARE_FOR_TRIALS = 0.1
"""The same for a round that only tells how fast rounds are."""
SHARE_THAT_TELLS = 0.03
"""Of the whole time: a round that took less tells too little."""
GROWTH = 3
"""Times the length of a trial: the most for the next, if somebody asks after each whether it is enough."""
ENDING = 10
"""Times that energies take: about what decoding and checking do, which of a huge graph take seconds."""
MOST_FASTER = 1.3
"""Times the speed of a round that a longer one may be expected to have."""
_used: set[tuple[object, ...]] = set()
"""Kinds of batches that were annealed before: their kernels are compiled."""


class Annealer(Method):
    """A method that takes graphs of similar size together; Conditional Expectation makes what it finds feasible."""

    reason: str = ""

    @property
    def found_by(self) -> str:
        """What solutions name as their finder."""
        return self.name

    @abstractmethod
    def num_columns(self, problem: Problem) -> int:
        """S: states per graph that are worked on at once."""

    @abstractmethod
    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """Probabilities or states of a batch. [N, S]."""

    def solve(self, problem: Problem, graphs: Sequence[Graph], settings: Settings) -> list[Solution]:
        """Anneal, decode and keep the best."""
        device, seed, limit_s = settings.device, settings.seed, settings.time_limit_s

        def solve_batch(number: int, positions: list[int]) -> list[Solution]:
            chosen = [graphs[position] for position in positions]
            deadline = Deadline.after(None if limit_s is None else limit_s * len(chosen))
            generator = torch.Generator(device).manual_seed(seed + number)
            batch = unit_batch(problem, chosen, device)
            report(f"{self.found_by}, {counted(sum(graph.num_nodes for graph in chosen), 'node')}")
            with in_units(weight_unit(problem, chosen[0])):
                annealed = self.anneal(problem, batch, generator, deadline)
            told = {"found_by": self.found_by, "reason": self.reason, "seed": seed}
            found = decoded(problem, chosen, batch, annealed, deadline, **told)
            settings.tell(len(chosen))
            return found

        max_rows = ROWS_PER_BATCH.get(device.type, ROWS_PER_BATCH["cuda"])
        batches = enumerate(batches_by_size(graphs, self.num_columns(problem), max_rows))
        return in_order((positions, solve_batch(number, positions)) for number, positions in batches)


def decoded(
    problem: Problem, graphs: Sequence[Graph], batch: Batch, annealed: Tensor, clock: Deadline, **told: Any
) -> list[Solution]:
    """Solutions from annealed states [N, S], with each graph's share of the time since the clock started.

    Of a large graph, only the states of lowest energy are decoded.
    """
    finish(batch.device)
    sampled_s = clock.elapsed_s
    most = max(1, DECODED_ROWS // max(1, batch.largest))
    if annealed.shape[1] > most:
        lowest = problem.energy(batch, annealed).argsort(1)[:, :most]
        annealed = annealed.gather(1, batch.spread(lowest))
    states = conditional_expectation(problem, batch, annealed)
    finish(batch.device)
    seconds = {"load": 0.0, "sample": sampled_s, "decode": clock.elapsed_s - sampled_s}
    share = {stage: value / len(graphs) for stage, value in seconds.items()}
    return list(best_solutions(problem, graphs, batch, states, seconds=share, **told))


def best_of_rounds(
    deadline: Deadline,
    problem: Problem,
    batch: Batch,
    run: Callable[[int, float], Tensor],
    first_length: int,
    max_length: int,
    is_enough: Callable[[Tensor, float], bool] | None = None,
) -> Tensor:
    """The best states of the rounds that fit into the time, each as long as what is left of it allows. [N, S].

    `run(length, expected_s)` returns the states of a round [N, S], which should take so many seconds; 0 if that is not
    known. The first ones, of `first_length` and more, tell how fast it is.
    `is_enough(states, seconds per step)` is asked after all but the first, and ends them as soon as the speed is known
    well; until then, the length of rounds grows slowly, so that it is asked several times.
    """
    deadline = after_compiling(deadline, problem, batch, lambda: run(1, 0.0))
    left_s = deadline.remaining_s
    best = lowest = None
    length, taken, expected_s = first_length, 0, 0.0
    known = (0, 0.0)  # a length, and how long it took
    while length > 0:
        started = time.perf_counter()
        found = run(length, expected_s)
        finish(batch.device)
        seconds = time.perf_counter() - started
        clock = Deadline.after(None)
        energies = problem.energy(batch, found)
        if best is None or lowest is None:
            best, lowest = found, energies
        best = torch.where(batch.spread(energies < lowest), found, best)
        lowest = torch.minimum(energies, lowest)
        finish(batch.device)
        ending_s = ENDING * clock.elapsed_s
        taken += length
        report("searching, steps", taken, best=partial(best_objective, problem, batch, best))
        share = SHARE_OF_TIME if seconds >= SHARE_THAT_TELLS * left_s else SHARE_FOR_TRIALS
        is_first = not known[0]
        speed = steps_per_s(known, (length, seconds))
        if is_enough and not is_first and is_enough(best, 1 / speed) and share == SHARE_OF_TIME:
            break
        known = (length, seconds)
        is_short = seconds < SHARE_FOR_TRIALS * left_s
        most = GROWTH * length if is_enough and is_short and (is_first or share == SHARE_FOR_TRIALS) else max_length
        length = min(most, int(share * max(0.0, deadline.remaining_s - ending_s) * speed))
        expected_s = length / speed
    assert best is not None
    return best


def after_compiling(deadline: Deadline, problem: Problem, batch: Batch, run: Callable[[], Tensor]) -> Deadline:
    """The deadline after a first run on a batch of this kind, whose time does not count: most of it is compiling."""
    size = batch.largest.bit_length()  # decides how many chains there are
    kind = (problem.name, type(batch), batch.device, size)
    if kind in _used:
        return deadline
    _used.add(kind)
    left_s = deadline.remaining_s
    run()
    finish(batch.device)
    return Deadline.after(left_s)


def steps_per_s(before: tuple[int, float], after: tuple[int, float]) -> float:
    """How fast a longer round will be, from the lengths and seconds of the last two: each takes a time of its own, too.

    >>> steps_per_s((20, 0.5), (100, 1.0)), steps_per_s((100, 1.0), (20, 0.5)), steps_per_s((0, 0.0), (20, 0.5))
    (130.0, 40.0, 40.0)
    """
    (few, few_s), (many, many_s) = before, after
    speed = many / many_s
    if many <= few or many_s <= few_s:
        return speed
    return max(speed, min(MOST_FASTER * speed, (many - few) / (many_s - few_s)))
