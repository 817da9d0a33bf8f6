"""A denoiser ready to draw from: any number of samples, from any thread; on a GPU, small draws are recorded."""

import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from diffuco.diffusion.noise import CategoricalNoise, ExponentialNoise
from diffuco.diffusion.randomness import RandomSource, RowRandom
from diffuco.diffusion.reverse import Denoiser, ReverseStep
from diffuco.diffusion.sampling import round_level, round_steps, sample_steps
from diffuco.foundation.progress import report
from diffuco.graphs.batch import Batch, DenseBatch
from diffuco.ops.capture import CapturedCalls
from diffuco.problems import Problem

OnStep = Callable[[Batch, ReverseStep], None]

CAPTURED_ROWS = 2**17
"""Nodes times samples up to which a GPU waits for the host to name its kernels, so that recording them pays."""


class Samples(NamedTuple):
    """The end of a reverse process."""

    states: Tensor
    """X_0 [N, S]."""
    logits: Tensor
    """Of q(X_0 | X_1), which decoding starts from [N, S]."""


class Sampler:
    """Draws samples from a denoiser; on a GPU the whole process of a small batch is recorded and replayed.

    Threads may share it: engines and recordings keep state between calls, so one thread computes at a time.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        num_steps: int,
        device: torch.device,
        *,
        records: bool = True,
        noise: CategoricalNoise | None = None,
        round_percent: int = Problem.round_percent,
    ) -> None:
        self.denoiser, self.num_steps, self.device, self.records = denoiser, num_steps, device, records
        self.noise = noise or ExponentialNoise(num_steps)
        """What rounds add to samples."""
        self.round_level = round_level(num_steps, round_percent)
        self.calls = CapturedCalls(self._dense, device)
        self.lock = threading.Lock()

    def num_evaluations(self, step_factor: int, rounds: int) -> int:
        """How often the network is asked for a draw and the rounds after it."""
        return step_factor * self.num_steps + rounds * self.round_level

    @torch.inference_mode()
    def draw(
        self, batch: Batch, num_samples: int, step_factor: int, *, seed: int, on_step: OnStep | None = None
    ) -> Samples:
        """Samples that depend on the seed and the batch alone; `on_step` sees every step and ends it by raising."""
        return self._samples(batch, num_samples, step_factor, None, seed=seed, on_step=on_step)

    @torch.inference_mode()
    def draw_again(self, batch: Batch, states: Tensor, *, seed: int, on_step: OnStep | None = None) -> Samples:
        """The samples of a round that starts from states. [N, S]."""
        return self._samples(batch, states.shape[1], 1, states, seed=seed, on_step=on_step)

    def _samples(
        self,
        batch: Batch,
        num_samples: int,
        step_factor: int,
        states: Tensor | None,
        *,
        seed: int,
        on_step: OnStep | None,
    ) -> Samples:
        is_replayed = self.records and on_step is None and batch.num_rows * num_samples <= CAPTURED_ROWS
        with self.lock:
            if not (is_replayed and isinstance(batch, DenseBatch) and batch.device.type == "cuda"):
                self.calls.generator.manual_seed(seed)
                return self._draw(batch, num_samples, step_factor, states, on_step)
            inputs = {"edges": batch.weights, "nodes": batch.node_weights, "states": states}
            given = {name: values for name, values in inputs.items() if values is not None}
            key = (num_samples, step_factor, tuple(given), batch.adjacency.shape)
            samples: Samples = self.calls(key, batch.sizes, batch.adjacency, *given.values(), seed=seed)
            return Samples(*(values.clone() for values in samples))

    def steps(self, batch: Batch, num_samples: int, step_factor: int, *, seed: int) -> Iterator[ReverseStep]:
        """Every step of such a draw; between two of them, other threads may draw."""
        steps = self._steps(batch, num_samples, step_factor, torch.Generator(self.device).manual_seed(seed))
        while True:
            with self.lock:
                step = next(steps, None)
            if step is None:
                return
            yield step

    def random(self, batch: Batch, generator: torch.Generator) -> RandomSource:
        """The random numbers of a draw."""
        return RowRandom(generator)

    def _dense(
        self, key: tuple[int, int, tuple[str, ...]], sizes: Tensor, adjacency: Tensor, *given: Tensor
    ) -> Samples:
        inputs = dict(zip(key[2], given, strict=True))
        batch = DenseBatch(sizes, adjacency, inputs.get("edges"), inputs.get("nodes"))
        return self._draw(batch, *key[:2], inputs.get("states"))

    def _draw(
        self,
        batch: Batch,
        num_samples: int,
        step_factor: int,
        states: Tensor | None,
        on_step: OnStep | None = None,
    ) -> Samples:
        generator = self.calls.generator
        if states is None:
            steps = self._steps(batch, num_samples, step_factor, generator)
            num_steps = step_factor * self.num_steps
        else:
            level, random = self.round_level, self.random(batch, generator)
            num_steps = level
            steps = round_steps(self.denoiser, batch, states, noise=self.noise, level=level, random=random)
        for number, step in enumerate(steps, 1):
            report("sampling, steps", number, num_steps)
            if on_step:
                on_step(batch, step)
        return Samples(step.next_x, step.logits)

    def _steps(
        self, batch: Batch, num_samples: int, step_factor: int, generator: torch.Generator
    ) -> Iterator[ReverseStep]:
        return sample_steps(
            self.denoiser,
            batch,
            num_steps=self.num_steps,
            num_samples=num_samples,
            random=self.random(batch, generator),
            step_factor=step_factor,
        )
