"""How well a network in training does on held-out graphs, without any solved example to compare with."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from diffuco.diffusion.reverse import Denoiser
from diffuco.graphs.batch import Batch, make_batch
from diffuco.graphs.by_size import batches_by_size, rows_per_batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import draw_solutions
from diffuco.inference.decoding import conditional_expectation
from diffuco.inference.sampler import Sampler
from diffuco.training.parts import Parts


class Validation:
    """Held-out graphs and a reference that needs no solver: the energy that CE reaches from p = 1/2."""

    def __init__(self, parts: Parts, denoiser: Denoiser, graphs: Sequence[Graph], device: torch.device) -> None:
        self.problem, self.config, self.device = parts.problem, parts.config, device
        config, records = parts.config, parts.network.is_recordable
        self.sampler = Sampler(denoiser, config.num_steps, device, records=records)
        groups = batches_by_size(graphs, config.validation_samples, rows_per_batch(device))
        self.batches = [make_batch([graphs[position] for position in group], device) for group in groups]
        self.plain = torch.cat([self._plain_energy(batch) for batch in self.batches])  # [B]

    def run(self) -> dict[str, float]:
        """Energies after CE, with as many steps as in training: mean, best of the samples, gain over the reference."""
        seeds = np.random.default_rng(self.config.seed)
        energies = torch.cat([self._energies(batch, seeds) for batch in self.batches])  # [B, S]
        gain = (self.plain - energies.mean(1)) / self.plain.abs().clamp(min=1e-9)
        return {
            "energy": energies.mean().item(),
            "best_energy": energies.min(1).values.mean().item(),
            "gain_over_plain_ce": gain.mean().item(),
        }

    def _energies(self, batch: Batch, seeds: np.random.Generator) -> Tensor:
        states, _ = draw_solutions(
            self.sampler,
            self.problem,
            batch,
            num_samples=self.config.validation_samples,
            step_factor=1,
            token_size=1,
            seeds=seeds,
        )
        return self.problem.energy(batch, states)

    def _plain_energy(self, batch: Batch) -> Tensor:
        half = torch.full((batch.num_rows, 1), 0.5, device=self.device)
        return self.problem.energy(batch, conditional_expectation(self.problem, batch, half))[:, 0]
