"""From a model and graphs to solutions: sample, decode, refine, keep the best (Sec. 4.1, App. C.2).

Legend: B graphs, N rows, S samples.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from diffuco.diffusion.decoding import conditional_expectation
from diffuco.foundation.devices import now, pick_device
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch, make_batch
from diffuco.graphs.convert import as_graph, qubo_as_graph
from diffuco.graphs.graph import Graph
from diffuco.graphs.batch.by_size import batches_by_size, rows_per_batch
from diffuco.inference.memory import Requirement, check_fits, requirement
from diffuco.model.engine.acceleration import accelerate, pick_engine
from diffuco.model.checkpoint import Checkpoint
from diffuco.model.engine.parameters import FlatParameters
from diffuco.pretrained import default_model, load_model
from diffuco.problems import Problem, check_weights, get_problem
from diffuco.inference.refinement import refine as refine_states
from diffuco.inference.refinement import schedule_for_samples
from diffuco.inference.sampler import OnStep, Sampler
from diffuco.solution.result import Solution
from diffuco.inference.streaming import StreamedStep, stream_steps

Decode = Literal["none", "ce", "ce-st"]


class Solver:
    """A problem and a loaded model on a device, ready to solve any number of graphs from any number of threads.

    >>> solver = Solver("mvc")
    >>> [solution.objective for solution in solver.solve([[(0, 1), (1, 2)], [(0, 1), (2, 3)]])]
    [1.0, 2.0]
    """

    def __init__(self, problem: str, model: str | Path | Checkpoint | None = None, *, device: str = "auto") -> None:
        started = time.perf_counter()
        self.problem = get_problem(problem)
        self.device = pick_device(device)
        if not isinstance(model, Checkpoint):
            model = load_model(default_model(problem) if model is None else model, self.device)
        if model.problem != problem:
            raise InputError(
                f"model '{model.name}' was trained for {model.problem}, not {problem}; choose another model"
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
        on_step: OnStep | None = None,
    ) -> list[Solution]:
        """Solve graphs in batches of similar size; `on_solved` is told how many are done after each.

        `on_step` sees each batch after every reverse step; what it raises ends the solve.

        `refine` is the number of sweeps of annealing from every sample: None as many as suit the graph, but none for
        samples that are kept as drawn; 0 is the paper's method.
        """
        check_options(samples, step_factor, decode, token_size, refine)
        graphs = [self._as_graph(source) for source in sources]
        check_weights(self.problem, graphs)
        needs = [self.requirement(graph, samples) for graph in graphs]
        for graph, need in zip(graphs, needs, strict=True):
            check_fits(graph, need, self.device)
        # Two streams: the samples are the same however they are refined.
        seeds, refining_seeds = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        sweeps = 0 if refine is None and decode == "none" else refine
        solutions: dict[int, Solution] = {}
        for positions in batches_by_size(graphs, samples, rows_per_batch(self.device)):
            chosen = [graphs[position] for position in positions]
            batch = make_batch(chosen, self.device)
            states, seconds = draw_solutions(
                self.sampler,
                self.problem,
                batch,
                num_samples=samples,
                samples_at_once=min(needs[position].samples_at_once for position in positions),
                step_factor=step_factor,
                token_size={"none": 0, "ce": 1, "ce-st": token_size}[decode],
                seeds=seeds,
                on_step=on_step,
            )
            schedule = schedule_for_samples(self.problem, max(graph.num_nodes for graph in chosen), sweeps)
            started = now(self.device)
            if schedule.num_sweeps:
                states = refine_states(self.problem, batch, states, schedule, seed=_next_seed(refining_seeds))
            seconds["refine"] = now(self.device) - started
            share = {"load": self.load_seconds / len(graphs)} | {k: v / len(chosen) for k, v in seconds.items()}
            name = self.checkpoint.name
            found = best_solutions(name, self.problem, chosen, batch, states, seed, share, schedule.num_sweeps)
            solutions |= dict(zip(positions, found, strict=True))
            if on_solved:
                on_solved(len(solutions))
        return [solutions[position] for position in range(len(graphs))]

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
        check_options(samples, step_factor, "ce", 1)
        graph, seed = self._as_graph(source), _next_seed(np.random.default_rng(seed))
        check_weights(self.problem, [graph])
        check_fits(graph, self.requirement(graph, samples, split=False), self.device)
        return stream_steps(self.sampler, self.problem, graph, num_samples=samples, step_factor=step_factor, seed=seed)

    def _as_graph(self, source: object) -> Graph:
        return qubo_as_graph(source) if self.problem.name == "qubo" else as_graph(source)

    def requirement(self, graph: Graph, samples: int = 8, *, split: bool = True) -> Requirement:
        """The memory that solving a graph will take, and how its samples are split to keep it low."""
        return requirement(graph, samples, self.checkpoint.model.config.num_hidden, self.engine, split=split)


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
    name: str,
    problem: Problem,
    graphs: Sequence[Graph],
    batch: Batch,
    states: Tensor,
    seed: int,
    seconds: dict[str, float],
    sweeps: int = 0,
) -> Iterator[Solution]:
    """Of every graph, the feasible state of lowest energy, or the lowest of all where none is feasible. [N, S].

    `name` is the model or method that found them.
    """
    energies = problem.energy(batch, states)  # [B, S]
    infeasible = problem.violations(batch, states) > 0.5
    best = torch.where(infeasible & ~infeasible.all(1, keepdim=True), torch.inf, energies).argmin(1).tolist()
    objectives = problem.objective(batch, states).tolist()
    for graph, x, index, energy, values in zip(
        graphs, batch.split(states.bool().cpu()), best, energies.tolist(), objectives, strict=True
    ):
        kept = x.numpy().copy()  # so that no solution holds on to those of the whole batch
        yield Solution(problem.name, graph, kept[:, index], kept, energy, values, name, seed, seconds, sweeps)


def check_options(samples: int, step_factor: int, decode: str, token_size: int, refine: int | None = None) -> None:
    """Refuse what cannot be meant."""
    if refine is not None and refine < 0:
        raise InputError(f"{refine} sweeps of refinement; give 0 or more")
    for name, value in (("samples", samples), ("step factor", step_factor), ("token size", token_size)):
        if value < 1:
            raise InputError(f"{name} is {value}; give 1 or more")
    if decode not in get_args(Decode):
        raise InputError(f"unknown decoding '{decode}'; choose one of {', '.join(get_args(Decode))}")


def _next_seed(seeds: np.random.Generator) -> int:
    return int(seeds.integers(np.iinfo(np.int64).max))
