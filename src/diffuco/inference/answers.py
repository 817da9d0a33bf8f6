"""From a denoiser and a batch to solutions: sample, decode, keep the best (Sec. 4.1, App. C.2).

Legend: B graphs, N rows, S samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from diffuco.foundation.devices import now
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch, SparseBatch, make_batch
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import conditional_expectation
from diffuco.inference.rounds import better_parts
from diffuco.inference.sampler import OnStep, Sampler
from diffuco.problems import Problem, in_weight_units, weight_unit
from diffuco.solution.result import Solution

Decode = Literal["none", "ce", "ce-st"]


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
    rounds: int = 0
    """How often samples are noised back, denoised again and kept where they are better. Not part of the paper."""
    refine: int | None = None
    """Sweeps of annealing from every sample. None: as many as suit the graph, but none for samples kept as drawn. 0 is
    the paper's method."""

    def __post_init__(self) -> None:
        least = {"samples": 1, "step_factor": 1, "token_size": 1, "rounds": 0, "refine": 0}
        for name, lowest in least.items():
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value >= lowest) and (name, value) != ("refine", None):
                raise InputError(f"{name.replace('_', ' ')} is {value!r}; give a whole number, {lowest} or more")
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


def draw_solutions(
    sampler: Sampler,
    problem: Problem,
    batch: Batch,
    *,
    num_samples: int,
    samples_at_once: int | None = None,
    step_factor: int,
    token_size: int,
    rounds: int = 0,
    seeds: np.random.Generator,
    start: Tensor | None = None,
    on_step: OnStep | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """Sample and decode one batch (token size 0: keep the samples as drawn); states [N, S] and seconds per stage.

    With states to start from [N, S], there are only rounds.
    """
    samples_at_once = samples_at_once or num_samples
    seconds = {"sample": 0.0, "decode": 0.0}
    states = start
    for _ in range(rounds if start is not None else 1 + rounds):
        started = now(batch.device)
        told: dict[str, Any] = {"on_step": on_step}
        parts = [
            sampler.draw(batch, min(samples_at_once, num_samples - first), step_factor, seed=next_seed(seeds), **told)
            if states is None
            else sampler.draw_again(batch, states[:, first : first + samples_at_once], seed=next_seed(seeds), **told)
            for first in range(0, num_samples, samples_at_once)
        ]
        sampled = now(batch.device)
        if token_size:
            logits = torch.cat([part.logits for part in parts], dim=1)
            found = conditional_expectation(problem, batch, logits.sigmoid(), token_size)
        else:
            found = torch.cat([part.states for part in parts], dim=1)
        states = found if states is None else better_parts(problem, batch, states, found)
        seconds["sample"] += sampled - started
        seconds["decode"] += now(batch.device) - sampled
    assert states is not None
    return states, seconds


def unit_batch(
    problem: Problem, graphs: Sequence[Graph], device: torch.device | str = "cpu", *, sparse: bool = False
) -> Batch:
    """The graphs as searches take them: their weights, if they have any, in units of the largest."""
    scaled = [in_weight_units(problem, graph) for graph in graphs]
    return SparseBatch.from_graphs(scaled, device) if sparse else make_batch(scaled, device)


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
    """Of every graph, the feasible state of lowest energy, or the lowest of all where none is feasible. [N, S].

    `batch` is the `unit_batch` of the graphs.
    """
    energies = problem.energy(batch, states)  # [B, S]
    infeasible = problem.violations(batch, states) > 0.5
    best = torch.where(infeasible & ~infeasible.all(1, keepdim=True), torch.inf, energies).argmin(1).tolist()
    objectives = problem.objective(batch, states).tolist()
    for graph, x, index, energy, values in zip(
        graphs, batch.split(states.bool().cpu()), best, energies.tolist(), objectives, strict=True
    ):
        unit = weight_unit(problem, graph)
        kept = x.numpy().copy()  # so that no solution holds on to those of the whole batch
        yield Solution(
            problem=problem,
            graph=graph,
            chosen=kept[:, index],
            states=kept,
            energies=[unit * value for value in energy],
            objectives=[unit * value for value in values],
            found_by=found_by,
            reason=reason,
            seed=seed,
            seconds=seconds,
            sweeps=sweeps,
        )


def best_objective(problem: Problem, batch: Batch, states: Tensor) -> float | None:
    """The best objective among the feasible states of one graph; None if there is none, or for several graphs."""
    feasible = problem.violations(batch, states) < 0.5  # [B, S]
    values = problem.objective(batch, states)[feasible]
    if batch.num_graphs > 1 or not len(values):
        return None
    return float(values.max() if problem.sense == "max" else values.min())


def next_seed(seeds: np.random.Generator) -> int:
    """The seed of the next draw."""
    return int(seeds.integers(np.iinfo(np.int64).max))
