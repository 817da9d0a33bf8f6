"""Gibbs sampling of one graph: what leaves the Boltzmann distribution as it is, and so tests whether draws follow it.

Legend: N rows, S samples.
"""

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems import Problem

MAX_NODES = 1000
"""Nodes that a sweep asks at most; those of a large graph are a random part of it."""


@torch.inference_mode()
def sweep(problem: Problem, batch: Batch, x: Tensor, *, temperature: float, generator: torch.Generator) -> Tensor:
    """Draw nodes in random order again, each given all others. The batch has one graph. [N, S] -> [N, S]."""
    states = x.clone()
    order = torch.randperm(int(batch.sizes[0]), generator=generator, device=x.device)
    for node in order[:MAX_NODES]:
        chance = (-problem.local_field(batch, states)[node] / temperature).sigmoid()
        uniform = torch.rand(chance.shape, generator=generator, dtype=chance.dtype, device=x.device)
        states[node] = (uniform < chance).to(x.dtype)
    return states
