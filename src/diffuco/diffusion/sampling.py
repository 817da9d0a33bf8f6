"""Drawing solutions: the reverse process with more steps than in training (App. C.2).

With a step factor n, each of the T time steps is taken n times in a row, every time conditioned on the same t. The
appendix also gives the formula floor((t + 1) / n), which is this rule only for n = 2; here its text holds for every n.

Rounds are not part of the paper. A round takes finished samples, adds the noise of the first t steps of the forward
process and denoises them again, once per step; whoever asks for it keeps what became better. At the same number of
network evaluations, rounds find more than repeated steps.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from diffuco.diffusion.noise import CategoricalNoise
from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser, ReverseStep, reverse_process
from diffuco.graphs.batch import Batch


def evaluation_steps(num_steps: int, step_factor: int) -> list[int]:
    """The time step t that the network gets at each of the `step_factor * num_steps` steps.

    >>> evaluation_steps(3, 2)
    [3, 3, 2, 2, 1, 1]
    """
    return [step for step in range(num_steps, 0, -1) for _ in range(step_factor)]


def round_level(num_steps: int, percent: int) -> int:
    """The step t that a round noises samples back to, in percent of all steps; much of a sample has to be left.

    >>> [round_level(num_steps, 60) for num_steps in (1, 6, 8, 12, 16, 24)]
    [1, 4, 5, 8, 10, 15]
    """
    return max(1, -(-percent * num_steps // 100))


@torch.inference_mode()
def sample_steps(
    denoiser: Denoiser,
    batch: Batch,
    *,
    num_steps: int,
    num_samples: int,
    random: RandomSource,
    step_factor: int = 3,
) -> Iterator[ReverseStep]:
    """Yield every reverse step; the last one holds the samples (`next_x`) and the logits that decoding starts from."""
    yield from reverse_process(denoiser, batch, evaluation_steps(num_steps, step_factor), num_samples, random)


@torch.inference_mode()
def round_steps(
    denoiser: Denoiser, batch: Batch, states: Tensor, *, noise: CategoricalNoise, level: int, random: RandomSource
) -> Iterator[ReverseStep]:
    """Yield the reverse steps of a round: from step `level`, to which the states are noised first. [N, S]."""
    num_samples = states.shape[1]
    step = torch.full((num_samples,), level, device=batch.device)
    changes = random.uniform(batch, num_samples) < noise.change_probability(step)
    noisy = torch.where(changes, 1 - states, states)
    yield from reverse_process(denoiser, batch, range(level, 0, -1), num_samples, random, start=noisy)
