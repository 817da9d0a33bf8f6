"""A trained model as a method: `diffuco` samples, decodes and refines; `diffuco-ce` is the paper's method alone.

Legend: N rows, S chains per graph.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from diffuco.foundation.devices import finish
from diffuco.foundation.distributed import Group
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch
from diffuco.graphs.by_size import in_order, rows_per_batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import SampleOptions, draw_solutions
from diffuco.inference.refinement import schedule_for, schedule_for_samples
from diffuco.inference.sampler import OnStep
from diffuco.inference.solver import Model, Solver, shared_solver
from diffuco.methods.anneal import NUM_CHAINS, Chains, anneal_once, anneal_parts, annealed_on, num_chains
from diffuco.methods.annealer import Annealer
from diffuco.methods.base import Deadline, Method, Settings
from diffuco.model.checkpoint import Checkpoint
from diffuco.pretrained import has_model, is_known
from diffuco.pretrained.choice import choose_models
from diffuco.problems import Problem
from diffuco.solution.result import Solution

STEP_FACTOR = 3
"""How many times each diffusion step is taken; once for the first sample, which tells how long samples take."""
SHARE_FOR_FIRST = 0.5
"""Of the time that is left: the most for the first samples that take each step so often."""
SHARE_FOR_SAMPLES = 0.2
"""The same for all samples together; annealing from them gets the rest."""
DRAWS_PER_CHAIN = 4
"""The most samples that are drawn, of which each chain gets one."""
AT_ONCE = {"cpu": 2**13, "cuda": 2**19}
"""Nodes times samples that are drawn together, in less time than one after the other."""
LARGE_NODES = 10_000
"""Smallest graphs whose chains start at several temperatures."""
HOTTEST = {"cpu": 0.7, "cuda": 1.0}
"""The temperature of the hottest chain on a large graph, times the problem's own. On a CPU hot chains take longer."""
COLDEST = 0.08
"""The same that the coldest of many chains comes near to. It keeps most of its sample, the hottest keeps nothing; which
finds more depends on the graph and on the time."""
FEWEST = 2
"""Chains of a graph: one that is cold and one that is hot."""


class Pass(NamedTuple):
    """A sample that took each diffusion step once."""

    sample: Tensor
    """[N, 1]."""
    repeated_s: float
    """Seconds for a sample that takes each step `STEP_FACTOR` times."""


@dataclass(frozen=True)
class ModelMethod(Method):
    """A trained model: samples, refined. Given a time limit, chains from samples and as many sweeps as fit."""

    name = "diffuco"
    summary = "samples of a trained model, decoded and refined"
    time_limit = "used"
    draws_samples = True

    model: Model | None = None
    """None: the shipped model that is closest to each graph."""
    options: SampleOptions = field(default_factory=SampleOptions)
    on_step: OnStep | None = None
    """Sees each batch after every reverse step, without a time limit; what it raises ends the solve."""
    group: Group | None = None
    """Processes that sample every graph together, each a part of its nodes; all call this with the same arguments."""

    def solves(self, problem: Problem) -> bool:
        """Any problem with the model for it; without one, those of the shipped models."""
        return self.model is not None or has_model(problem)

    def check_time_limit(self) -> None:
        """A time limit decides what the options would."""
        if self.options != SampleOptions():
            what = "samples, step factor, decoding and refinement"
            raise InputError(f"a time limit decides on {what} of a model; leave out the limit or these options")

    def solve(self, problem: Problem, graphs: Sequence[Graph], settings: Settings) -> list[Solution]:
        """Sample with one model after the other, each for the graphs that it is closest to."""
        if self.group is not None and settings.time_limit_s is not None:
            raise InputError("several processes sample without a time limit; give --samples and --step-factor instead")

        def solve_some(solver: Solver, reason: str, positions: list[int]) -> list[Solution]:
            chosen = [graphs[position] for position in positions]
            if settings.time_limit_s is not None:
                return AnnealedSamples(solver, reason).solve(problem, chosen, settings)
            told: dict[str, Any] = {"seed": settings.seed, "on_solved": settings.on_solved}
            return solver.solve_graphs(chosen, self.options, reason=reason, on_step=self.on_step, **told)

        plan = self.plan(problem, graphs, settings.device)
        return in_order((positions, solve_some(solver, reason, positions)) for solver, reason, positions in plan)

    def plan(
        self, problem: Problem, graphs: Sequence[Graph], device: torch.device | str
    ) -> Iterator[tuple[Solver, str, list[int]]]:
        """Solvers, why each was chosen, and the positions of the graphs it is for."""
        if self.model is not None or not graphs:
            yield solver_with(problem, self.model, device, self.group), "", list(range(len(graphs)))
            return
        choices = choose_models(problem, graphs)
        for choice in dict.fromkeys(choices):
            positions = [position for position, other in enumerate(choices) if other == choice]
            yield solver_with(problem, choice.name, device, self.group), choice.reason, positions

    def rounds_from(self, problem: Problem, graph: Graph, batch: Batch, state: Tensor, seed: int) -> Tensor:
        """What the rounds of the options make of a state, once for each sample; never worse. [N, 1] -> [N, S]."""
        ((solver, _, _),) = self.plan(problem, [graph], batch.device)
        samples = self.options.samples
        states, _ = draw_solutions(
            solver.sampler,
            problem,
            batch,
            num_samples=samples,
            samples_at_once=solver.requirement(graph, samples).samples_at_once,
            step_factor=1,
            token_size=self.options.decoded_together,
            rounds=self.options.rounds,
            seeds=np.random.default_rng([seed, 2]),
            start=state.expand(-1, samples),
        )
        return states


def solver_with(
    problem: Problem, model: Model | None, device: torch.device | str, group: Group | None = None
) -> Solver:
    """A solver with a model; shipped and loaded models are kept for the next call, files may change until then."""
    if group is not None:
        return Solver(problem, model, group=group)
    if isinstance(model, Checkpoint) or (model is not None and is_known(model)):
        return shared_solver(problem, model, str(device))
    return Solver(problem, model, device=str(device))


@dataclass(frozen=True)
class AnnealedSamples(Annealer):
    """Chains that start from samples of a model and anneal until the time is over."""

    solver: Solver
    reason: str

    @property
    def found_by(self) -> str:
        """The model."""
        return self.solver.checkpoint.name

    def num_columns(self, problem: Problem) -> int:
        """Chains per graph."""
        return NUM_CHAINS

    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """The best state of each chain, starting from samples."""
        samples = self.draw(problem, batch, deadline, np.random.default_rng(generator.initial_seed()))
        return self.anneal_from(problem, batch, samples, generator, deadline)

    def anneal_from(
        self, problem: Problem, batch: Batch, samples: Tensor, generator: torch.Generator, deadline: Deadline
    ) -> Tensor:
        """The best state of a chain from each sample. [N, S] -> [N, S]."""
        schedule, heat = schedule_for_samples(problem, batch.largest), None
        if batch.largest >= LARGE_NODES:
            schedule, heat = schedule_for(problem, batch.largest), heats(problem, batch, samples.shape[1])
        chains = Chains(problem, batch, lambda: samples, schedule.temperature, generator, heat)
        if deadline.limit_s is None:
            return anneal_once(chains, schedule.num_sweeps)
        return anneal_parts(chains, deadline, samples)

    def draw(
        self, problem: Problem, batch: Batch, deadline: Deadline, seeds: np.random.Generator, first: Pass | None = None
    ) -> Tensor:
        """Samples for all chains, the best first; too few for all are there several times. [N, S]."""
        chains = self.num_chains(problem, batch, deadline)
        if deadline.limit_s is None:
            return self._draw(problem, batch, chains, STEP_FACTOR, seeds)[0]
        samples, expected_s = first or self.one_pass(problem, batch, seeds)
        drawn, limit = 0, Deadline.after(SHARE_FOR_FIRST * deadline.remaining_s)
        count = min(num_at_once(batch, chains), num_within(limit.remaining_s, expected_s))
        while drawn < DRAWS_PER_CHAIN * chains and expected_s < limit.remaining_s:
            started = Deadline.after(None)
            samples = torch.cat([samples, self._draw(problem, batch, count, STEP_FACTOR, seeds)[0]], dim=1)
            samples = samples.gather(1, batch.spread(problem.energy(batch, samples).argsort(1)[:, :chains]))
            finish(batch.device)
            drawn, expected_s = drawn + count, started.elapsed_s
            limit = Deadline(limit.started, SHARE_FOR_SAMPLES * deadline.remaining_s)
        return samples.repeat(1, chains)[:, :chains]

    def one_pass(self, problem: Problem, batch: Batch, seeds: np.random.Generator) -> Pass:
        """One sample that takes each step once."""
        sample, seconds = self._draw(problem, batch, 1, 1, seeds)
        return Pass(sample, STEP_FACTOR * seconds["sample"] + seconds["decode"])

    def sample(self, problem: Problem, batch: Batch, step_factor: int, seeds: np.random.Generator) -> Tensor:
        """One sample that takes each step so often. [N, 1]."""
        return self._draw(problem, batch, 1, step_factor, seeds)[0]

    def compile(self, problem: Problem, batch: Batch, deadline: Deadline) -> None:
        """Draw once as `one_pass` and once as `draw` does, so that a clock does not count the first use of kernels."""
        for count in {1, num_at_once(batch, self.num_chains(problem, batch, deadline))}:
            self._draw(problem, batch, count, 1, np.random.default_rng(0))

    def num_chains(self, problem: Problem, batch: Batch, deadline: Deadline) -> int:
        """Chains of each graph."""
        return max(FEWEST, num_chains(problem, batch, deadline))

    def _draw(
        self, problem: Problem, batch: Batch, count: int, step_factor: int, seeds: np.random.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """Samples and the seconds that they took.

        Those of large graphs are not decoded. That would take as long as to draw them and gain 0.01 %: annealing
        repairs them, too, and what it finds is decoded at the end.
        """
        return draw_solutions(
            self.solver.sampler,
            problem,
            batch,
            num_samples=count,
            samples_at_once=max(1, rows_per_batch(batch.device) // max(1, batch.num_rows)),
            step_factor=step_factor,
            token_size=0 if batch.largest >= LARGE_NODES else 1,
            seeds=seeds,
        )


def num_at_once(batch: Batch, most: int) -> int:
    """Samples that are drawn together."""
    return max(1, min(most, AT_ONCE.get(batch.device.type, AT_ONCE["cuda"]) // max(1, batch.num_rows)))


def num_within(seconds: float, of_one_s: float) -> int:
    """Samples that one draw can have in this time: on a GPU, five take three times as long as one.

    >>> num_within(0.4, of_one_s=0.1)
    7
    """
    return max(1, int(2 * seconds / max(of_one_s, 1e-9)) - 1)


def heats(problem: Problem, batch: Batch, chains: int) -> Tensor:
    """The temperatures at which chains of a large graph start, times the problem's own, the coldest first. [S]."""
    hottest = HOTTEST[annealed_on(problem, batch)]
    colder = torch.arange(chains - 1, -1, -1, device=batch.device) / chains
    return hottest * (COLDEST / hottest) ** colder


@dataclass(frozen=True)
class PlainModelMethod(ModelMethod):
    """The paper's method, samples and Conditional Expectation: twice as many in every round until the time is over."""

    name = "diffuco-ce"
    summary = "samples of a trained model, decoded by Conditional Expectation"

    def solve(self, problem: Problem, graphs: Sequence[Graph], settings: Settings) -> list[Solution]:
        """Rounds of 1, 2, 4, ... samples of all graphs, the best is kept; one round of 8 without a time limit."""

        def draw(samples: int, seed: int) -> list[Solution]:
            plain = ModelMethod(self.model, SampleOptions(samples=samples, refine=0))
            return plain.solve(problem, graphs, Settings(seed, settings.device))

        limit_s, seed = settings.time_limit_s, settings.seed
        deadline = Deadline.after(None if limit_s is None else limit_s * len(graphs))
        samples = 8 if limit_s is None else 1
        best = draw(samples, seed)
        # A round of twice the samples takes at most twice the time.
        round_s = 2 * deadline.elapsed_s
        while limit_s is not None and round_s < deadline.remaining_s:
            samples, seed, before = 2 * samples, seed + 1, deadline.elapsed_s
            best = [min(pair, key=kept_energy) for pair in zip(best, draw(samples, seed), strict=True)]
            round_s = 2 * (deadline.elapsed_s - before)
        settings.tell(len(graphs))
        return best


def kept_energy(solution: Solution) -> float:
    """Energy of the sample that was kept: that of a feasible solution is its objective with the problem's sign."""
    return min(solution.energies)
