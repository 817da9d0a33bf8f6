"""Simulated annealing by single flips from random states: what refines the samples of models, without the samples.

The comparison that samples have to win: the same compiled loops and the same schedule, only that the chains start from
coin flips. Conditional Expectation makes the last repairs.

Legend: N rows, S chains per graph.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from diffuco import ops
from diffuco.foundation.devices import finish
from diffuco.foundation.progress import Progress, following, report
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
"""Of the energy: what merging two samples, or the first chains, must gain, so that parts are searched."""
MERGING = 10
"""Times that energies take: about what merging two chains does, and asking whether it pays."""
FLIPPED = 0.1
"""Share of the nodes that a round of parts flips."""
PART_SWEEPS = 100
PART_HEAT = 0.6
"""Sweeps of such a round, and its temperature, times the usual one (docs/log.md)."""
PIECE_S, MAX_PIECES = 1.0, 16
"""Seconds of a piece of a long round on a CPU, and the most pieces."""
HOT_TIME = 2.0
"""How much longer a sweep at the first temperature takes than a cold one, at most: 2 means three times as long."""
MAX_SWEEPS = 20_000
"""Of a round, for up to 1,000 nodes and in proportion beyond; with time for more, another round finds more."""


@dataclass(frozen=True)
class Chains:
    """Chains of a batch: where they start, how hot they are, and their random numbers."""

    problem: Problem
    batch: Batch
    start: Callable[[], Tensor]
    """The states of a new round. [N, S]."""
    temperature: float
    """Of the first sweep of a round."""
    generator: torch.Generator
    heat: Tensor | None = None
    """Times that temperature for each chain [S]; None: 1."""
    are_random: bool = False
    """Whether they start from coin flips. Then a round can be cut into pieces, each of which starts from the best state
    of the one before; chains from samples would begin each hot piece with their sample again."""

    def anneal(self, schedule: Schedule, states: Tensor | None = None, heat: Tensor | None = None) -> Tensor:
        """The best states that the chains see, from the start or from these states. [N, S]."""
        states = self.start() if states is None else states
        seed = int(torch.randint(2**62, (), generator=self.generator, device=self.batch.device))
        return anneal(self.problem, self.batch, states, schedule, seed=seed, heat=heat)

    def round(self, num_sweeps: int) -> Tensor:
        """The best states of a whole round. [N, S]."""
        return self.anneal(Schedule(num_sweeps, self.temperature), heat=self.heat)


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
        start = partial(flip_coins, batch, num_chains(problem, batch, deadline), generator)
        chains = Chains(problem, batch, start, suited.temperature, generator, are_random=True)
        if deadline.limit_s is None:
            return anneal_once(chains, suited.num_sweeps)
        return anneal_parts(chains, deadline)


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


def anneal_once(chains: Chains, num_sweeps: int) -> Tensor:
    """The best states of one round without a clock: the fewer chains than 32, the more sweeps. [N, S]."""
    states = chains.start()
    return replace(chains, start=lambda: states).round(num_sweeps * NUM_CHAINS // states.shape[1])


def anneal_until(
    chains: Chains, deadline: Deadline, is_enough: Callable[[Tensor, float], bool] | None = None
) -> Tensor:
    """The best states of some rounds, each as long as the time allows. [N, S].

    `is_enough(states, seconds of a sweep)` may end them early.
    """
    batch = chains.batch

    def run(num_sweeps: int, expected_s: float) -> Tensor:
        pieces = min(MAX_PIECES, int(expected_s / PIECE_S))
        if pieces > 1 and chains.are_random and annealed_on(chains.problem, batch) == "cpu":
            return anneal_in_pieces(chains, num_sweeps, expected_s, pieces)
        return chains.round(num_sweeps)

    max_sweeps = MAX_SWEEPS * max(1, batch.largest // 1000)
    first_sweeps = max(1, FIRST_SWEEPS * FIRST_NODES // max(FIRST_NODES, batch.largest))
    return best_of_rounds(deadline, chains.problem, batch, run, first_sweeps, max_sweeps, is_enough)


def anneal_in_pieces(chains: Chains, num_sweeps: int, expected_s: float, pieces: int) -> Tensor:
    """The best states of a round that looks at the clock after every piece. [N, S].

    On a machine that has become slower, the other pieces get fewer sweeps, so that the temperature still falls to 0.
    """
    clock, states = Deadline.after(expected_s), chains.start()
    left, to_do, done = 1.0, num_sweeps, 0
    for piece in range(pieces, 0, -1):
        started_s, sweeps, after = clock.elapsed_s, max(1, to_do // piece), left - left / piece
        with following(_tell_nothing):  # the round as a whole is told below
            states = chains.anneal(Schedule(sweeps, chains.temperature, (left, after)), states)
        left, done = after, done + sweeps
        sweep_s = (clock.elapsed_s - started_s) / sweeps
        fitting = int((1 + HOT_TIME * left) * clock.remaining_s / max(sweep_s, 1e-9))
        to_do = min(to_do - sweeps, fitting)
        best = partial(best_objective, chains.problem, chains.batch, states)
        report("annealing, sweeps", done, done + to_do, best=best)
    return states


def _tell_nothing(seen: Progress) -> None:
    pass


@dataclass
class PartsTrial:
    """Asks, after rounds of chains, whether merging their best states gains enough for parts to be searched."""

    chains: Chains
    deadline: Deadline
    pays: bool = False
    round_s: float = math.inf
    """Seconds of a round of parts, as soon as the speed is known."""
    ending_s: float = 0.0
    """Seconds to leave at the end."""

    def __call__(self, states: Tensor, sweep_s: float) -> bool:
        """Whether it does, now or before."""
        problem, batch = self.chains.problem, self.chains.batch
        self.round_s = PART_SWEEPS * sweep_s
        if not self.pays:
            clock = Deadline.after(None)
            problem.energy(batch, states)
            energy_s = clock.elapsed_s
            self.ending_s = ENDING * energy_s
            if MERGING * energy_s + self.round_s + self.ending_s > self.deadline.remaining_s:
                return False
            self.pays = merging_pays(problem, batch, states)
        return self.pays


def merging_pays(problem: Problem, batch: Batch, states: Tensor) -> bool:
    """Whether the best parts of two states have much less energy than the better one: the best, and the next best."""
    energies = problem.energy(batch, states)
    best = energies.argmin(1, keepdim=True)
    is_other = batch.graph_mean((states != states.gather(1, batch.spread(best))).to(states.dtype)) > 0
    second = energies.where(is_other, torch.inf).argmin(1, keepdim=True)
    two = states.gather(1, batch.spread(torch.cat([best, second], dim=1)))
    before, after = (problem.energy(batch, x)[:, 0].sum() for x in (two, best_parts(problem, batch, two)))
    return bool(before - after > LEAST_GAIN * after.abs())


def anneal_parts(chains: Chains, deadline: Deadline, samples: Tensor | None = None) -> Tensor:
    """The same, and on a large graph the best parts of all chains in the first. [N, S].

    Where short chains have different parts to give, or the samples that they start from, as on roads, grids and meshes,
    most of the time goes into short rounds: flip some nodes of the best state, anneal at less than the full
    temperature, and keep the parts that are better.
    """
    problem, batch = chains.problem, chains.batch
    if not has_parts(batch):
        return anneal_until(chains, deadline)

    deadline = after_compiling(deadline, problem, batch, lambda: chains.round(1))
    trial = PartsTrial(chains, deadline)
    given = []
    if samples is not None and merging_pays(problem, batch, samples):
        trial.pays, given = True, [best_parts(problem, batch, samples)[:, :1]]
    states = anneal_until(chains, deadline, trial)
    if not trial.pays and not trial(states, trial.round_s / PART_SWEEPS):
        return states
    merged = best_parts(problem, batch, torch.cat([*given, states], dim=1))
    best, rounds = merged[:, :1], 0
    schedule = Schedule(PART_SWEEPS, PART_HEAT * chains.temperature)
    while deadline.remaining_s > trial.round_s + trial.ending_s:
        clock = Deadline.after(None)
        flips = torch.rand(states.shape, generator=chains.generator, device=batch.device) < FLIPPED
        annealed = chains.anneal(schedule, torch.where(flips, 1 - best, best))
        for column in range(annealed.shape[1]):
            best = better_parts(problem, batch, best, annealed[:, column : column + 1])
        finish(batch.device)
        rounds, trial.round_s = rounds + 1, clock.elapsed_s
        report("searching parts, rounds", rounds, best=partial(best_objective, problem, batch, best))
    return torch.cat([best, merged[:, 1 : states.shape[1]]], dim=1)
