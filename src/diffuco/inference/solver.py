"""From a model and graphs to solutions: sample, decode, refine, keep the best (Sec. 4.1, App. C.2).

Legend: B graphs, N rows, S samples.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from diffuco.diffusion.decoding import conditional_expectation
from diffuco.foundation.devices import now, pick_device
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch, make_batch
from diffuco.graphs.batch.by_size import batches_by_size, in_order, rows_per_batch
from diffuco.graphs.convert import as_graph, qubo_as_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.memory import LARGE_BYTES, Requirement, check_fits, requirement
from diffuco.inference.refinement import refine as refine_states
from diffuco.inference.refinement import schedule_for_samples
from diffuco.inference.sampler import OnStep, Sampler
from diffuco.inference.streaming import StreamedStep, stream_steps
from diffuco.model.checkpoint import Checkpoint
from diffuco.model.engine.acceleration import accelerate, pick_engine
from diffuco.model.engine.parameters import FlatParameters
from diffuco.pretrained import default_model, load_model
from diffuco.problems import Problem, Qubo, check_weights, get_problem
from diffuco.solution.result import Solution

Decode = Literal["none", "ce", "ce-st"]
Model = str | Path | Checkpoint
"""A shipped model by name, a file or folder, or a loaded one."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SampleOptions:
    """How a model solves a graph; values that make no sense are refused."""

    samples: int = 8
    """Solutions drawn per graph; the best is kept."""
    step_factor: int = 3
    """n: how many times each diffusion step is taken."""
    decode: Decode = "ce"
    """Conditional Expectation: not at all, node by node, or in tokens of nodes."""
    token_size: int = 8
    """k: nodes that `ce-st` decides together."""
    refine: int | None = None
    """Sweeps of annealing from every sample. None: as many as suit the graph, but none for samples kept as drawn. 0 is
    the paper's method."""

    def __post_init__(self) -> None:
        if self.refine is not None and self.refine < 0:
            raise InputError(f"{self.refine} sweeps of refinement; give 0 or more")
        for name in ("samples", "step_factor", "token_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name.replace('_', ' ')} is {getattr(self, name)}; give 1 or more")
        if self.decode not in get_args(Decode):
            raise InputError(f"unknown decoding '{self.decode}'; choose one of {', '.join(get_args(Decode))}")

    @property
    def decoded_together(self) -> int:
        """Nodes that decoding decides together; 0: samples are kept as drawn."""
        return {"none": 0, "ce": 1, "ce-st": self.token_size}[self.decode]

    @property
    def sweeps(self) -> int | None:
        """Sweeps of annealing, or None where the graph decides."""
        return 0 if self.refine is None and self.decode == "none" else self.refine


class Solver:
    """A problem and a loaded model on a device, ready to solve any number of graphs from any number of threads.

    >>> solver = Solver("mvc")
    >>> [solution.objective for solution in solver.solve([[(0, 1), (1, 2)], [(0, 1), (2, 3)]])]
    [1.0, 2.0]
    """

    def __init__(self, problem: str | Problem, model: Model | None = None, *, device: str = "auto") -> None:
        started = time.perf_counter()
        self.problem = get_problem(problem)
        self.device = pick_device(device)
        if not isinstance(model, Checkpoint):
            model = load_model(default_model(self.problem) if model is None else model, self.device)
        if model.problem != self.problem.name:
            raise InputError(
                f"model '{model.name}' was trained for {model.problem}, not {self.problem}; choose another model"
            )
        self.checkpoint = model
        network = model.model.to(self.device)
        # Compiling pays when a shape repeats, as in training; here every batch has its own.
        can_fuse = pick_engine("auto", network.config, self.device) == "fused"
        self.engine = "fused" if can_fuse else "reference"
        denoiser = accelerate(network, FlatParameters(network), self.engine)
        self.sampler = Sampler(denoiser, network.config.num_steps, self.device)
        self.load_seconds = time.perf_counter() - started

    def solve(
        self,
        sources: Sequence[object],
        *,
        samples: int = 8,
        step_factor: int = 3,
        decode: Decode = "ce",
        token_size: int = 8,
        refine: int | None = None,
        seed: int = 0,
        on_solved: Callable[[int], None] | None = None,
    ) -> list[Solution]:
        """Solve graphs of any kind in batches of similar size, with the options of `SampleOptions`.

        `on_solved` is told how many graphs each batch had.
        """
        options = SampleOptions(samples, step_factor, decode, token_size, refine)
        graphs = [self._as_graph(source) for source in sources]
        check_weights(self.problem, graphs)
        return self.solve_graphs(graphs, options, seed=seed, on_solved=on_solved)

    def solve_graphs(
        self,
        graphs: Sequence[Graph],
        options: SampleOptions,
        *,
        seed: int = 0,
        reason: str = "",
        on_solved: Callable[[int], None] | None = None,
        on_step: OnStep | None = None,
    ) -> list[Solution]:
        """The same for graphs whose weights are checked already.

        `on_step` sees each batch after every reverse step; what it raises ends the solve. `reason` becomes that of the
        solutions.
        """
        samples = options.samples
        needs = [self.requirement(graph, samples) for graph in graphs]
        for graph, need in zip(graphs, needs, strict=True):
            check_fits(graph, need, self.device)
            _tell_of_large(graph, need, samples)
        # Two streams: the samples are the same however they are refined.
        seeds, refining_seeds = np.random.default_rng(seed), np.random.default_rng([seed, 1])

        def solve_batch(positions: list[int]) -> list[Solution]:
            chosen = [graphs[position] for position in positions]
            batch = make_batch(chosen, self.device)
            states, seconds = draw_solutions(
                self.sampler,
                self.problem,
                batch,
                num_samples=samples,
                samples_at_once=min(needs[position].samples_at_once for position in positions),
                step_factor=options.step_factor,
                token_size=options.decoded_together,
                seeds=seeds,
                on_step=on_step,
            )
            schedule = schedule_for_samples(self.problem, max(graph.num_nodes for graph in chosen), options.sweeps)
            started = now(self.device)
            if schedule.num_sweeps:
                states = refine_states(self.problem, batch, states, schedule, seed=_next_seed(refining_seeds))
            seconds["refine"] = now(self.device) - started
            share = {"load": self.load_seconds / len(graphs)} | {k: v / len(chosen) for k, v in seconds.items()}
            found = best_solutions(
                self.problem,
                chosen,
                batch,
                states,
                found_by=self.checkpoint.name,
                reason=reason,
                seed=seed,
                seconds=share,
                sweeps=schedule.num_sweeps,
            )
            if on_solved:
                on_solved(len(chosen))
            return list(found)

        batches = batches_by_size(graphs, samples, rows_per_batch(self.device))
        return in_order((positions, solve_batch(positions)) for positions in batches)

    def stream(
        self, source: object, *, samples: int = 8, step_factor: int = 3, seed: int = 0
    ) -> Iterator[StreamedStep]:
        """Yield the noise and the states after every reverse step, up to the samples that `solve` would decode.

        All samples take a step together, so a large graph needs more memory here than in `solve`.

        >>> for step in Solver("mis").stream([(0, 1), (1, 2)], samples=2):
        ...     index, states, energies = step.index, step.states, step.energies
        >>> index == step.num_steps, states.shape, energies.shape
        (True, (3, 2), (2,))
        """
        SampleOptions(samples, step_factor)
        graph, seed = self._as_graph(source), _next_seed(np.random.default_rng(seed))
        check_weights(self.problem, [graph])
        check_fits(graph, self.requirement(graph, samples, split=False), self.device)
        return stream_steps(self.sampler, self.problem, graph, num_samples=samples, step_factor=step_factor, seed=seed)

    def _as_graph(self, source: object) -> Graph:
        return qubo_as_graph(source) if isinstance(self.problem, Qubo) else as_graph(source)

    def requirement(self, graph: Graph, samples: int = 8, *, split: bool = True) -> Requirement:
        """The memory that solving a graph will take, and how its samples are split to keep it low."""
        return requirement(graph, samples, self.checkpoint.model.config.num_hidden, self.engine, split=split)


@lru_cache(maxsize=8)
def shared_solver(problem: Problem, model: Model, device: str) -> Solver:
    """A solver that is kept for the next call with the same model."""
    return Solver(problem, model, device=device)


def draw_solutions(
    sampler: Sampler,
    problem: Problem,
    batch: Batch,
    *,
    num_samples: int,
    samples_at_once: int | None = None,
    step_factor: int,
    token_size: int,
    seeds: np.random.Generator,
    on_step: OnStep | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """Sample and decode one batch (token size 0: keep the samples as drawn); states [N, S] and seconds per stage."""
    started = now(batch.device)
    samples_at_once = samples_at_once or num_samples
    parts = [
        sampler.draw(batch, min(samples_at_once, left), step_factor, seed=_next_seed(seeds), on_step=on_step)
        for left in range(num_samples, 0, -samples_at_once)
    ]
    sampled = now(batch.device)
    if token_size:
        logits = torch.cat([part.logits for part in parts], dim=1)
        decoded = conditional_expectation(problem, batch, logits.sigmoid(), token_size)
    else:
        decoded = torch.cat([part.states for part in parts], dim=1)
    return decoded, {"sample": sampled - started, "decode": now(batch.device) - sampled}


def best_solutions(
    problem: Problem,
    graphs: Sequence[Graph],
    batch: Batch,
    states: Tensor,
    *,
    found_by: str,
    seed: int,
    seconds: dict[str, float],
    reason: str = "",
    sweeps: int = 0,
) -> Iterator[Solution]:
    """Of every graph, the feasible state of lowest energy, or the lowest of all where none is feasible. [N, S]."""
    energies = problem.energy(batch, states)  # [B, S]
    infeasible = problem.violations(batch, states) > 0.5
    best = torch.where(infeasible & ~infeasible.all(1, keepdim=True), torch.inf, energies).argmin(1).tolist()
    objectives = problem.objective(batch, states).tolist()
    for graph, x, index, energy, values in zip(
        graphs, batch.split(states.bool().cpu()), best, energies.tolist(), objectives, strict=True
    ):
        kept = x.numpy().copy()  # so that no solution holds on to those of the whole batch
        yield Solution(
            problem=problem,
            graph=graph,
            chosen=kept[:, index],
            states=kept,
            energies=energy,
            objectives=values,
            found_by=found_by,
            reason=reason,
            seed=seed,
            seconds=seconds,
            sweeps=sweeps,
        )


def _tell_of_large(graph: Graph, need: Requirement, samples: int) -> None:
    if need.num_bytes >= LARGE_BYTES:
        size, at_once = f"{need.num_bytes / 2**30:.1f} GiB", f"{need.samples_at_once} of {samples} samples at a time"
        _log.info("%s will need about %s, %s", graph.name or "the graph", size, at_once)


def _next_seed(seeds: np.random.Generator) -> int:
    return int(seeds.integers(np.iinfo(np.int64).max))
