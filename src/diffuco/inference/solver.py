"""A model loaded for a problem: graphs in, solutions out, in batches of similar size."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diffuco.diffusion.noise import NOISES, CategoricalNoise, make_noise
from diffuco.foundation.devices import now, pick_device
from diffuco.foundation.distributed import Group
from diffuco.foundation.errors import InputError
from diffuco.foundation.progress import in_units, report
from diffuco.graphs.by_size import batches_by_size, in_order, rows_per_batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import (
    Decode,
    SampleOptions,
    best_objective,
    best_solutions,
    draw_solutions,
    next_seed,
    unit_batch,
)
from diffuco.inference.memory import TYPICAL_HIDDEN, Requirement, check_fits, requirement
from diffuco.inference.parts import PartSampler
from diffuco.inference.refinement import refine as refine_states
from diffuco.inference.refinement import schedule_for_samples
from diffuco.inference.sampler import OnStep, Sampler
from diffuco.inference.streaming import StreamedStep, stream_steps
from diffuco.model.checkpoint import Checkpoint
from diffuco.model.engine.acceleration import accelerate, sampling_engine
from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.gnn import Gnn
from diffuco.pretrained import load_model
from diffuco.pretrained.choice import default_model
from diffuco.problems import Problem, check_weights, get_problem, graph_for, weight_unit
from diffuco.solution.result import Solution

Model = str | Path | Checkpoint
"""A shipped model by name, a file or folder, or a loaded one."""

_log = logging.getLogger(__name__)


class Solver:
    """A problem and a loaded model on a device, ready to solve any number of graphs from any number of threads.

    >>> solver = Solver("mvc")
    >>> [solution.objective for solution in solver.solve([[(0, 1), (1, 2)], [(0, 1), (2, 3)]])]
    [1.0, 2.0]
    """

    def __init__(
        self, problem: str | Problem, model: Model | None = None, *, device: str = "auto", group: Group | None = None
    ) -> None:
        """Load a model. A group of several processes samples in parts, on the group's devices; the rest is on CPUs."""
        started = time.perf_counter()
        self.problem = get_problem(problem)
        self.group = group or Group(pick_device(device))
        in_parts = self.group.size > 1
        self.device = torch.device("cpu") if in_parts else self.group.device
        if not isinstance(model, Checkpoint):
            model = load_model(default_model(self.problem) if model is None else model, self.group.device)
        self.checkpoint = model = fitted(model, self.problem)
        network = model.model.to(self.group.device)
        self.engine = sampling_engine(network, self.group.device, in_parts=in_parts)
        denoiser = accelerate(network, FlatParameters(network), self.engine, is_trained=True)
        num_steps, records = network.config.num_steps, network.is_recordable
        rounds: dict[str, Any] = {"noise": noise_of(model), "round_percent": round_percent(model, self.problem)}
        self.sampler: Sampler = (
            PartSampler(denoiser, num_steps, self.group, **rounds)
            if in_parts
            else Sampler(denoiser, num_steps, self.device, records=records, **rounds)
        )
        self.load_seconds = time.perf_counter() - started

    def solve(
        self,
        sources: Sequence[object],
        *,
        samples: int = 8,
        step_factor: int = 3,
        decode: Decode = "ce",
        token_size: int = 8,
        rounds: int = 0,
        refine: int | None = None,
        seed: int = 0,
        on_solved: Callable[[int], None] | None = None,
    ) -> list[Solution]:
        """Solve graphs of any kind in batches of similar size, with the options of `SampleOptions`.

        `on_solved` is told how many graphs each batch had.
        """
        options = SampleOptions(samples, step_factor, decode, token_size, rounds, refine)
        graphs = [graph_for(self.problem, source) for source in sources]
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
            check_fits(graph, need, self.group.device)
            _tell_of_large(graph, need, samples)
        # Two streams: the samples are the same however they are refined.
        seeds, refining_seeds = np.random.default_rng(seed), np.random.default_rng([seed, 1])

        def solve_batch(positions: list[int]) -> list[Solution]:
            chosen = [graphs[position] for position in positions]
            batch = unit_batch(self.problem, chosen, self.device, sparse=self.group.size > 1)
            states, seconds = draw_solutions(
                self.sampler,
                self.problem,
                batch,
                num_samples=samples,
                samples_at_once=min(needs[position].samples_at_once for position in positions),
                step_factor=options.step_factor,
                token_size=options.decoded_together,
                rounds=options.rounds,
                seeds=seeds,
                on_step=on_step,
            )
            schedule = schedule_for_samples(self.problem, max(graph.num_nodes for graph in chosen), options.sweeps)
            started = now(self.device)
            if schedule.num_sweeps:
                with in_units(weight_unit(self.problem, chosen[0])):
                    report("refining", best=lambda: best_objective(self.problem, batch, states))
                states = refine_states(self.problem, batch, states, schedule, seed=next_seed(refining_seeds))
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
        graph, seed = graph_for(self.problem, source), next_seed(np.random.default_rng(seed))
        check_weights(self.problem, [graph])
        check_fits(graph, self.requirement(graph, samples, split=False), self.device)
        return stream_steps(self.sampler, self.problem, graph, num_samples=samples, step_factor=step_factor, seed=seed)

    def requirement(self, graph: Graph, samples: int = 8, *, split: bool = True) -> Requirement:
        """The memory that solving a graph will take, and how its samples are split to keep it low."""
        num_hidden = getattr(self.checkpoint.model.config, "num_hidden", TYPICAL_HIDDEN)
        return requirement(graph, samples, num_hidden, self.engine, split=split, num_parts=self.group.size)


def fitted(model: Checkpoint, problem: Problem) -> Checkpoint:
    """The model for the problem; one for the problem's complement chooses what it would leave out.

    >>> fitted(load_model("mis-rb-small"), get_problem("mvc")).problem
    'mvc'
    """
    if model.problem == problem.name:
        return model
    if model.problem == problem.complement and isinstance(model.model, Gnn):
        return replace(model, model=complement(model.model), problem=problem.name)
    raise InputError(f"model '{model.name}' was trained for {model.problem}, not {problem}; choose another model")


def complement(network: Gnn) -> Gnn:
    """The network that chooses what this one leaves out: its logits of 1 - X are those of X, negated."""
    other, parameters = Gnn(network.config), network.state_dict()
    encoder = parameters["encode_node.weight"].clone()
    encoder[:, 0] *= -1  # the column of the state, which is -1 or 1
    last = {name: -parameters[name] for name in ("head.6.weight", "head.6.bias")}
    other.load_state_dict(parameters | last | {"encode_node.weight": encoder})
    return other.eval()


def noise_of(model: Checkpoint) -> CategoricalNoise | None:
    """The noise that a model was trained with, if it is one of ours that flips variables.

    A card has only the name of a noise of the user's own. Rounds then add `ExponentialNoise`.
    """
    name, num_steps = model.card.get("training", {}).get("noise"), model.model.config.num_steps
    noise = make_noise(name, num_steps) if name in NOISES else None
    return noise if isinstance(noise, CategoricalNoise) else None


def round_percent(model: Checkpoint, problem: Problem) -> int:
    """How far rounds go back: as the model's card tells, where that was measured, or as suits the problem."""
    told = model.card.get("round_percent")
    return told if isinstance(told, int) and 0 < told <= 100 else problem.round_percent


def shared_solver(problem: Problem, model: Model, device: str) -> Solver:
    """A solver that is kept for the next call with the same model, unless the problem has a field without a hash."""
    try:
        hash(problem)
    except TypeError:
        return Solver(problem, model, device=device)
    return _kept_solver(problem, model, device)


@lru_cache(maxsize=8)
def _kept_solver(problem: Problem, model: Model, device: str) -> Solver:
    return Solver(problem, model, device=device)


def _tell_of_large(graph: Graph, need: Requirement, samples: int) -> None:
    if need.is_large:
        size, at_once = f"{need.num_bytes / 2**30:.1f} GiB", f"{need.samples_at_once} of {samples} samples at a time"
        _log.info("%s will need about %s, %s", graph.name or "the graph", size, at_once)
