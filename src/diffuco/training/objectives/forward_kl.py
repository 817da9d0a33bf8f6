"""The forward divergence: learn from the model's own draws, weighted as the Boltzmann distribution asks.

The paper's bound, KL(q || p), is low for a model that draws some good states and misses others. The divergence in the
other direction is not. As in imitation,

    KL(p(X_0:T) || q(X_0:T)) = constant + E[ sum_t cost_t ],   cost_t = -E[log q(X_{t-1} | X_t)]

but X_0 is distributed as exp(-H / temperature) / Z. Paths of the model stand for that, each with its weight
(diffusion/path_weights.py), normalised over the paths of a graph; noise is added to their ends anew. The temperature
has to stay above 0. This is for models that draw from a Boltzmann distribution (docs/sampling.md); begin with the
paper's bound, because the weights of a poor model tell little.

Legend: B graphs, N rows, S samples, T steps.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.diffusion.noise import Noise, Temperature
from diffuco.diffusion.path_weights import end_and_log_ratio
from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser, reverse_process
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch
from diffuco.problems import Problem
from diffuco.training.objectives.base import Objective
from diffuco.training.objectives.imitation import denoised, flipping


@dataclass(frozen=True)
class ForwardKl(Objective):
    """KL(p(X_0:T) || q(X_0:T)), up to a constant, from weighted paths that the network draws itself."""

    name = "forward-kl"
    needs_flips = True

    samples_per_graph: int
    """S: paths per graph."""
    start_temperature: float
    end_temperature: float
    """The temperature changes from the one to the other, and the weights divide by it."""

    def __post_init__(self) -> None:
        if min(self.start_temperature, self.end_temperature) <= 0:
            raise InputError(
                "objective 'forward-kl' needs a start_temperature and an end_temperature above 0; set both"
            )

    def backward(
        self,
        denoiser: Denoiser,
        problem: Problem,
        noise: Noise,
        batch: Batch,
        *,
        temperature: Temperature,
        random: RandomSource,
        num_graphs: int,
        examples: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Add the gradient of the divergence; return it, the mean energy and the effective share of the paths."""
        noise = flipping(noise)
        num_steps, num_samples = noise.num_steps, self.samples_per_graph
        with torch.no_grad():
            path = reverse_process(denoiser, batch, range(num_steps, 0, -1), num_samples, random)
            x_0, log_ratio = end_and_log_ratio(batch, noise, path)
            energy = problem.energy(batch, x_0)
            weights = (log_ratio - energy / temperature).softmax(1).float()  # [B, S]
        step = torch.arange(1, num_steps + 1, device=batch.device).repeat(num_samples)  # [S * T]
        _, cost = denoised(denoiser, noise, batch, x_0.repeat_interleave(num_steps, dim=1), step, random)
        loss = (cost.view(batch.num_graphs, num_samples, num_steps).sum(2) * weights).sum() / num_graphs
        loss.backward()  # type: ignore[no-untyped-call]
        return {
            "energy": (weights * energy).sum() / num_graphs,
            "loss": loss.detach(),
            "effective_share": (1 / weights.square().sum(1)).sum() / (num_graphs * num_samples),
        }
