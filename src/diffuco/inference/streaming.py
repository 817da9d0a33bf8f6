"""Watching a solve: every state on the way from noise to samples, with its energy.

Legend: S samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import unit_batch
from diffuco.inference.sampler import Sampler
from diffuco.problems import Problem, weight_unit


@dataclass(frozen=True, eq=False)
class StreamedStep:
    """The states after some reverse steps."""

    index: int
    """Steps taken: 0 for the noise at the start, `num_steps` for the samples."""
    num_steps: int
    """Steps of the whole process."""
    states: NDArray[np.bool_]
    """Which nodes each sample has chosen [num_nodes, S]."""
    energies: NDArray[np.float64]
    """H of each sample [S]."""


@torch.inference_mode()
def stream_steps(
    sampler: Sampler, problem: Problem, graph: Graph, *, num_samples: int, step_factor: int, seed: int
) -> Iterator[StreamedStep]:
    """The noise, then the states after every reverse step of the process that `Sampler.draw` ends with."""
    batch = unit_batch(problem, [graph], sampler.device)
    num_steps = step_factor * sampler.num_steps
    for index, step in enumerate(sampler.steps(batch, num_samples, step_factor, seed=seed)):
        if index == 0:
            yield streamed_step(problem, graph, batch, step.x, index=0, num_steps=num_steps)
        yield streamed_step(problem, graph, batch, step.next_x, index=index + 1, num_steps=num_steps)


def streamed_step(
    problem: Problem, graph: Graph, batch: Batch, x: Tensor, *, index: int, num_steps: int
) -> StreamedStep:
    """What there is to see of the states of the `unit_batch` of one graph. [N, S]."""
    states = batch.split(x)[0].cpu().numpy().astype(np.bool_)
    energies = weight_unit(problem, graph) * problem.energy(batch, x)[0].double().cpu().numpy()
    return StreamedStep(index, num_steps, states, energies)
