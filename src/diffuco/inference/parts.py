"""Sampling a graph in parts: several processes, each with a share of the nodes, draw the samples of one.

Every process gets the same whole samples, in main memory. What follows, such as decoding, each does for itself.

Legend: N rows of the whole batch, n own rows, S samples.
"""

import torch
from torch import Tensor

from diffuco.diffusion.noise import CategoricalNoise
from diffuco.diffusion.randomness import RandomSource, SharedRandom
from diffuco.diffusion.reverse import Denoiser
from diffuco.foundation.distributed import Group
from diffuco.graphs.batch import Batch, SparseBatch
from diffuco.graphs.batch.part import PartBatch
from diffuco.inference.sampler import OnStep, Sampler, Samples


class PartSampler(Sampler):
    """A sampler whose network sees the nodes of one process; batches are sparse and in main memory."""

    def __init__(
        self, denoiser: Denoiser, num_steps: int, group: Group, *, noise: CategoricalNoise | None, round_percent: int
    ) -> None:
        super().__init__(denoiser, num_steps, group.device, records=False, noise=noise, round_percent=round_percent)
        self.group = group

    @torch.inference_mode()
    def draw(
        self, batch: Batch, num_samples: int, step_factor: int, *, seed: int, on_step: OnStep | None = None
    ) -> Samples:
        """The samples that one process would draw, up to rounding."""
        assert isinstance(batch, SparseBatch)
        part = PartBatch(batch, self.group)
        return self._joined(batch, super().draw(part, num_samples, step_factor, seed=seed, on_step=on_step))

    @torch.inference_mode()
    def draw_again(self, batch: Batch, states: Tensor, *, seed: int, on_step: OnStep | None = None) -> Samples:
        """The samples of a round that starts from states. [N, S]."""
        assert isinstance(batch, SparseBatch)
        part = PartBatch(batch, self.group)
        own = states[part.rows].to(self.device)
        return self._joined(batch, super().draw_again(part, own, seed=seed, on_step=on_step))

    def random(self, batch: Batch, generator: torch.Generator) -> RandomSource:
        """The numbers of all rows, of which each process takes its own."""
        assert isinstance(batch, PartBatch)
        return SharedRandom(generator, num_graphs=1, first_graph=0, num_padded=batch.num_all_rows)

    def _joined(self, batch: Batch, samples: Samples) -> Samples:
        return Samples(*(self.group.join(values, batch.num_rows).to(batch.device) for values in samples))
