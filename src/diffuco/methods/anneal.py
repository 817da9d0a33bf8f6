"""Simulated annealing by single flips from random states: what refines the samples of models, without the samples.

The comparison that samples have to win: the same compiled loops and the same schedule, only that the chains start from
coin flips. Conditional Expectation makes the last repairs.

Legend: N rows, S chains per graph.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch, SparseBatch
from diffuco.inference.refinement import Schedule, anneal, schedule_for
from diffuco.inference.rounds import best_parts
from diffuco.methods.annealer import Annealer, best_of_rounds
from diffuco.methods.base import Deadline
from diffuco.problems import Problem

NUM_CHAINS = 32
MIN_CHAINS = 4
MAX_ROWS = {"cpu": 2**13, "cuda": 2**20}
"""Nodes times chains of one graph. A larger graph gets fewer chains with more sweeps each, which finds more: on a CPU
from 1,000 nodes on, on a GPU where more chains would make a sweep slower (docs/log.md)."""
FIRST_SWEEPS = 20
"""Of the round from which the speed is known."""
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
        return best_parts(problem, batch, anneal_until(deadline, problem, batch, start, suited.temperature, generator))


def num_chains(problem: Problem, batch: Batch, deadline: Deadline) -> int:
    """Chains per graph. Only where a clock decides, the number of cores may: other answers are the same everywhere."""
    where = annealed_on(problem, batch)
    fewest = 1 if where == "cuda" else torch.get_num_threads()
    if deadline.limit_s is None:
        fewest = MIN_CHAINS
    return min(NUM_CHAINS, max(fewest, MAX_ROWS[where] // max(1, batch.largest)))


def annealed_on(problem: Problem, batch: Batch) -> str:
    """Where chains run, "cpu" or "cuda": a GPU leaves large covers to its CPU."""
    leaves = isinstance(batch, SparseBatch) and not problem.is_quadratic
    return "cpu" if batch.device.type == "cpu" or leaves else "cuda"


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
) -> Tensor:
    """The best states of some rounds, each from what `start` returns and as long as the time allows. [N, S]."""

    def run(num_sweeps: int) -> Tensor:
        return _round(problem, batch, start(), Schedule(num_sweeps, temperature), generator, heat)

    max_sweeps = MAX_SWEEPS * max(1, batch.largest // 1000)
    return best_of_rounds(deadline, problem, batch, run, FIRST_SWEEPS, max_sweeps)


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
