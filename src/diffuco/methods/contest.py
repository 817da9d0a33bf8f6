"""One large graph: chains that start from samples of a model, or from coin flips where those are ahead.

Which of them finds more depends on the graph and on the time, and no rule that we measured holds for all graphs.

On a GPU, one pass of each model on the graph itself tells which model draws the samples. Then chains from its first
sample and from coin flips run side by side for a short time. If those from coin flips are ahead so early, they go on
alone. If not, more and better samples are drawn, and chains start from them at temperatures from cold to hot: the
coldest improves its sample, and the hottest forgets it.

On a CPU, a narrow network draws one sample, and takes each of its steps as often as a share of the time allows. Then
half of the chains start from the sample and half from coin flips, for the rest of the time.

Samples are of the whole graph. If many nodes can be taken out of it (`cores`), chains and the answer are of what is
left.

Legend: N rows, S states.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from diffuco.foundation.progress import in_units, report
from diffuco.graphs.batch import Batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import unit_batch
from diffuco.inference.memory import fits
from diffuco.inference.refinement import schedule_for
from diffuco.methods.anneal import Chains, FlipAnnealing, anneal_parts, anneal_until, annealed_on, flip_coins
from diffuco.methods.annealer import decoded
from diffuco.methods.base import Deadline, Settings
from diffuco.methods.cores import Core
from diffuco.methods.model import AnnealedSamples, Pass, heats, solver_with
from diffuco.pretrained.choice import full_models
from diffuco.problems import Problem, weight_unit
from diffuco.solution.result import Solution

SHARE_FOR_MODELS = 0.1
"""Of the time limit, in which one model after the other is tried."""
SHARE_FOR_TRIAL = 0.1
"""Of the time that is left, in which both kinds of chains are tried."""
SHARE_ON_CPU = 0.75
"""The same on a CPU, for its sample."""
MOST_REPEATED = 12
"""Times that a step is taken for it, at most."""
_used: set[tuple[str, torch.device]] = set()
"""Models that have drawn from a large graph before, and where: their kernels are compiled."""


def contest(
    problem: Problem,
    graph: Graph,
    core: Core | None,
    settings: Settings,
    is_settled: Callable[[], bool] = lambda: False,
) -> Solution:
    """The best of all chains, or of the samples alone if `is_settled` says after sampling that there is no need.

    If the graph has a core, the answer is for that.
    """
    clock = Deadline.after(settings.time_limit_s)
    batch = unit_batch(problem, [graph], settings.device)
    generator = torch.Generator(settings.device).manual_seed(settings.seed)
    seeds = np.random.default_rng(settings.seed)
    tried, clock = try_models(problem, graph, batch, seeds, settings, clock)
    left = Left.of(problem, graph, core, batch)
    if not tried:
        return left.annealed(settings, clock, "the memory is too small for samples of a model")
    model, first = min(tried, key=lambda some: float(problem.energy(batch, some[1].sample)))
    kept, winner, loser = left.states_of(first.sample), model.found_by, FlipAnnealing.name
    with left.told():
        if clock.limit_s is not None and annealed_on(problem, batch) == "cuda":  # coin flips are never ahead elsewhere
            half = model.num_chains(problem, left.batch, clock) // 2
            states = run_both(problem, left.batch, kept, half, generator, clock)
            best = int(problem.energy(left.batch, states)[0].argmin())
            kept = states[:, best : best + 1]
            winner, loser = (winner, loser) if best < half else (loser, winner)
        if winner == FlipAnnealing.name:
            states = FlipAnnealing().anneal(problem, left.batch, generator, clock)
        else:
            states = left.states_of(model.draw(problem, batch, clock, seeds, first))
            if clock.limit_s is None or not is_settled():
                states = model.anneal_from(problem, left.batch, states, generator, clock)
    return left.solution(torch.cat([states, kept], dim=1), clock, winner, loser, settings)


@dataclass(frozen=True)
class Left:
    """What is annealed of a graph: its core, or all of it."""

    problem: Problem
    whole: Graph
    batch: Batch
    core: Core | None

    @classmethod
    def of(cls, problem: Problem, graph: Graph, core: Core | None, batch: Batch) -> "Left":
        """Of a graph whose batch is given."""
        return cls(problem, graph, unit_batch(problem, [core.graph], batch.device) if core else batch, core)

    @property
    def graph(self) -> Graph:
        """The graph of the batch."""
        return self.core.graph if self.core else self.whole

    @property
    def gain(self) -> float:
        """What all other nodes add to the objective."""
        return self.core.gain if self.core else 0.0

    def states_of(self, samples: Tensor) -> Tensor:
        """What samples of the whole graph [N, S] say about it."""
        if self.core is None:
            return samples
        return torch.from_numpy(self.core.restrict(samples.bool().cpu().numpy())).to(samples)

    def told(self) -> AbstractContextManager[None]:
        """Progress is told as objectives of the whole graph."""
        return in_units(weight_unit(self.problem, self.graph), plus=self.gain)

    def annealed(self, settings: Settings, clock: Deadline, reason: str) -> Solution:
        """What chains from coin flips find, without samples."""
        timed = replace(settings, time_limit_s=None if clock.limit_s is None else clock.remaining_s)
        with in_units(1.0, plus=self.gain):  # the method knows the unit of weights itself
            (solution,) = FlipAnnealing().solve(self.problem, [self.graph], timed)
        return replace(solution, reason=reason)

    def solution(self, states: Tensor, clock: Deadline, winner: str, loser: str, settings: Settings) -> Solution:
        """The best of the states."""
        told = {"found_by": winner, "reason": f"ahead of {loser} on this graph", "seed": settings.seed}
        (solution,) = decoded(self.problem, [self.graph], self.batch, states, clock, **told)
        return solution


def run_both(
    problem: Problem, batch: Batch, sample: Tensor, half: int, generator: torch.Generator, clock: Deadline
) -> Tensor:
    """What both kinds of chains find in a short time. [N, 2 half]."""
    trial = Deadline.after(SHARE_FOR_TRIAL * clock.remaining_s)
    return anneal_until(both_chains(problem, batch, sample, half, generator), trial)


def both_chains(problem: Problem, batch: Batch, sample: Tensor, half: int, generator: torch.Generator) -> Chains:
    """Half of the chains from a sample [N, 1], from cold to hot, and after them as many from coin flips."""

    def start() -> Tensor:
        return torch.cat([sample.expand(-1, half), flip_coins(batch, half, generator)], dim=1)

    heat = heats(problem, batch, 2 * half)
    heat[half:] = 1.0
    return Chains(problem, batch, start, schedule_for(problem, batch.largest).temperature, generator, heat)


def contest_on_cpu(problem: Problem, graph: Graph, core: Core | None, name: str, settings: Settings) -> Solution:
    """The best of chains from a sample of a narrow model and of chains from coin flips, within a time limit.

    If the graph has a core, the answer is for that.
    """
    clock = Deadline.after(settings.time_limit_s)
    batch = unit_batch(problem, [graph], settings.device)
    report(f"trying {name}")
    model = AnnealedSamples(solver_with(problem, name, settings.device), "")
    clock, step_s = timed_step(model, batch, clock)
    step_factor = int(SHARE_ON_CPU * clock.remaining_s / (step_s * model.solver.sampler.num_steps))
    left = Left.of(problem, graph, core, batch)
    if not step_factor or not fits(model.solver.requirement(graph, samples=1), settings.device):
        return left.annealed(settings, clock, f"a sample of {name} would take too much time or memory")
    seeds, generator = np.random.default_rng(settings.seed), torch.Generator().manual_seed(settings.seed)
    sample = model.sample(problem, batch, min(step_factor, MOST_REPEATED), seeds)
    half = model.num_chains(problem, left.batch, clock) // 2
    with left.told():
        chains = both_chains(problem, left.batch, left.states_of(sample), half, generator)
        states = anneal_parts(chains, clock)
    winner, loser = name, FlipAnnealing.name
    if int(problem.energy(left.batch, states)[0].argmin()) >= half:
        winner, loser = loser, winner
    settings.tell(1)
    return left.solution(states, clock, winner, loser, settings)


def timed_step(model: AnnealedSamples, batch: Batch, clock: Deadline) -> tuple[Deadline, float]:
    """The clock without what the first step of a process compiles, and the seconds of one step of one sample."""
    steps = model.solver.sampler.steps(batch, 1, 1, seed=0)
    limit_s, key = clock.remaining_s, (model.found_by, batch.device)
    next(steps)
    if key not in _used:
        _used.add(key)
        clock = Deadline.after(limit_s)
    started_s = clock.elapsed_s
    next(steps)
    return clock, clock.elapsed_s - started_s


def try_models(
    problem: Problem, graph: Graph, batch: Batch, seeds: np.random.Generator, settings: Settings, clock: Deadline
) -> tuple[list[tuple[AnnealedSamples, Pass]], Deadline]:
    """One pass of each model that fits and for which there is time, and the clock, without what compiling took."""
    limit_s = settings.time_limit_s
    tried: list[tuple[AnnealedSamples, Pass]] = []
    for name in full_models(problem, graph):
        if not tried or limit_s is None or clock.elapsed_s < SHARE_FOR_MODELS * limit_s:
            report(f"trying {name}")
            model = AnnealedSamples(solver_with(problem, name, settings.device), "")
            if not fits(model.solver.requirement(graph, samples=1), settings.device):
                continue
            if limit_s is not None and (name, settings.device) not in _used:
                model.compile(problem, batch, clock)
                _used.add((name, settings.device))
                clock = Deadline.after(limit_s)
            tried.append((model, model.one_pass(problem, batch, seeds)))
    return tried, clock
