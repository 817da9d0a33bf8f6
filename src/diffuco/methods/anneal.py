"""Simulated annealing by single flips from random states: what refines the samples of models, without the samples.

The comparison that samples have to win: the same compiled loops and the same schedule, only that the chains start from
coin flips. Conditional Expectation makes the last repairs.

Legend: N rows, S chains per graph.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from diffuco import ops
from diffuco.foundation.devices import finish
from diffuco.foundation.progress import report
from diffuco.graphs.batch import Batch, SparseBatch
from diffuco.inference.answers import best_objective
from diffuco.inference.refinement import Schedule, anneal, schedule_for
from diffuco.inference.rounds import best_parts, better_parts, has_parts
from diffuco.methods.annealer import ENDING, Annealer, after_compiling, best_of_rounds
from diffuco.methods.base import Deadline
from diffuco.problems import Problem

NUM_CHAINS = 32
MIN_CHAINS = 4
MAX_ROWS = {"cpu": 2**13, "cuda": 2**20}
"""Nodes times chains of one graph. A larger graph gets fewer chains with more sweeps each, which finds more: on a CPU
from 1,000 nodes on, on a GPU where more chains would make a sweep slower (docs/log.md)."""
FIRST_SWEEPS = 20
FIRST_NODES = 2**20
"""Sweeps of the round from which the speed is known, for up to so many nodes; fewer beyond."""
LEAST_GAIN = 2e-4
"""Of the energy: what merging the first chains must gain, so that parts are searched."""
MERGING = 10
"""Times that energies take: about what merging two chains does, and asking whether it pays."""
FLIPPED = 0.1
"""Share of the nodes that a round of parts flips."""
PART_SWEEPS = 100
PART_HEAT = 0.6
"""Sweeps of such a round, and its temperature, times the usual one (docs/log.md)."""
MAX_SWEEPS = 20_000
"""Of a round, for up to 1,000 nodes and in proportion beyond; with time for more, another round finds more."""


class FlipAnnealing(Annealer):
    """32 chains of 1,000 sweeps, or fewer longer ones; given a time limit, rounds of as many sweeps as fit."""

    name = "anneal"
    summary = "simulated annealing on CPU or GPU, 32 chains of 1,000 sweeps, or fewer longer ones for large graphs"
    time_limit = "used"

    def num_columns(self, problem: Problem) -> int:
        """Chains per graph."""
        return NUM_CHAINS

    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """The best state of each chain, starting from coin flips. [N, S]."""
        suited = schedule_for(problem, batch.largest)
        chains = num_chains(problem, batch, deadline)
        if deadline.limit_s is None:
            return anneal_once(problem, batch, flip_coins(batch, chains, generator), suited, generator)
        start = partial(flip_coins, batch, chains, generator)
        return anneal_parts(deadline, problem, batch, start, suited.temperature, generator)


def num_chains(problem: Problem, batch: Batch, deadline: Deadline) -> int:
    """Chains per graph. Only where a clock decides, the number of cores may: other answers are the same everywhere."""
    where = annealed_on(problem, batch)
    fewest = 1 if where == "cuda" else torch.get_num_threads()
    if deadline.limit_s is None:
        fewest = MIN_CHAINS
    return min(NUM_CHAINS, max(fewest, MAX_ROWS[where] // max(1, batch.largest)))


def annealed_on(problem: Problem, batch: Batch) -> str:
    """Where chains run, "cpu" or "cuda": a GPU leaves sparse covers to its CPU if they are small."""
    is_small = batch.num_rows < ops.COVER_ROWS * batch.num_graphs
    is_left = isinstance(batch, SparseBatch) and not problem.is_quadratic and is_small
    return "cpu" if batch.device.type == "cpu" or is_left else "cuda"


def flip_coins(batch: Batch, num_states: int, generator: torch.Generator) -> Tensor:
    """Random states. [N, S]."""
    return torch.randint(2, (batch.num_rows, num_states), generator=generator, device=batch.device).float()


def anneal_once(
    problem: Problem,
    batch: Batch,
    states: Tensor,
    schedule: Schedule,
    generator: torch.Generator,
    heat: Tensor | None = None,
) -> Tensor:
    """The best states of one round without a clock: the fewer chains, the more sweeps. [N, S] -> [N, S]."""
    longer = replace(schedule, num_sweeps=schedule.num_sweeps * NUM_CHAINS // states.shape[1])
    return _round(problem, batch, states, longer, generator, heat)


def anneal_until(
    deadline: Deadline,
    problem: Problem,
    batch: Batch,
    start: Callable[[], Tensor],
    temperature: float,
    generator: torch.Generator,
    heat: Tensor | None = None,
    is_enough: Callable[[Tensor, float], bool] | None = None,
) -> Tensor:
    """The best states of some rounds, each from what `start` returns and as long as the time allows. [N, S].

    `is_enough(states, seconds of a sweep)` may end them early.
    """

    def run(num_sweeps: int) -> Tensor:
        return _round(problem, batch, start(), Schedule(num_sweeps, temperature), generator, heat)

    max_sweeps = MAX_SWEEPS * max(1, batch.largest // 1000)
    first_sweeps = max(1, FIRST_SWEEPS * FIRST_NODES // max(FIRST_NODES, batch.largest))
    return best_of_rounds(deadline, problem, batch, run, first_sweeps, max_sweeps, is_enough)


def anneal_parts(
    deadline: Deadline,
    problem: Problem,
    batch: Batch,
    start: Callable[[], Tensor],
    temperature: float,
    generator: torch.Generator,
    heat: Tensor | None = None,
) -> Tensor:
    """The same, and on a large graph the best parts of all chains in the first. [N, S].

    Where short chains have different parts to give, as on roads, grids and meshes, most of the time goes into
    short rounds: flip some nodes of the best state, anneal at less than the full temperature, and keep the parts that
    are better.
    """
    if not has_parts(batch):
        return anneal_until(deadline, problem, batch, start, temperature, generator, heat)

    did_pay = False
    round_s, ending_s = math.inf, 0.0  # of a round of parts, as soon as the speed is known

    def parts_pay(states: Tensor, sweep_s: float) -> bool:
        nonlocal did_pay, round_s, ending_s
        round_s = PART_SWEEPS * sweep_s
        if not did_pay:
            clock = Deadline.after(None)
            order = problem.energy(batch, states).argsort(1)[:, :2]
            energy_s = clock.elapsed_s
            ending_s = ENDING * energy_s
            if MERGING * energy_s + round_s + ending_s > deadline.remaining_s:
                return False
            two = states.gather(1, batch.spread(order))
            before, after = (problem.energy(batch, x)[:, 0].sum() for x in (two, best_parts(problem, batch, two)))
            did_pay = bool(before - after > LEAST_GAIN * after.abs())
        return did_pay

    schedule = Schedule(1, temperature)
    deadline = after_compiling(
        deadline, problem, batch, lambda: _round(problem, batch, start(), schedule, generator, heat)
    )
    states = anneal_until(deadline, problem, batch, start, temperature, generator, heat, parts_pay)
    if not did_pay and not parts_pay(states, round_s / PART_SWEEPS):
        return states
    merged = best_parts(problem, batch, states)
    best, rounds = merged[:, :1], 0
    while deadline.remaining_s > round_s + ending_s:
        clock = Deadline.after(None)
        flips = torch.rand(states.shape, generator=generator, device=batch.device) < FLIPPED
        noised = torch.where(flips, 1 - best, best)
        annealed = _round(problem, batch, noised, Schedule(PART_SWEEPS, PART_HEAT * temperature), generator, None)
        for column in range(annealed.shape[1]):
            best = better_parts(problem, batch, best, annealed[:, column : column + 1])
        finish(batch.device)
        rounds, round_s = rounds + 1, clock.elapsed_s
        report("searching parts, rounds", rounds, best=partial(best_objective, problem, batch, best))
    return torch.cat([best, merged[:, 1:]], dim=1)


def _round(
    problem: Problem,
    batch: Batch,
    start: Tensor,
    schedule: Schedule,
    generator: torch.Generator,
    heat: Tensor | None,
) -> Tensor:
    seed = int(torch.randint(2**62, (), generator=generator, device=batch.device))
    return anneal(problem, batch, start, schedule, seed=seed, heat=heat)
