"""Drawing solutions: the reverse process with more steps than in training (App. C.2).

With a step factor n, each of the T time steps is taken n times in a row, every time conditioned on the same t. The
appendix also gives the formula floor((t + 1) / n), which is this rule only for n = 2; here its text holds for every n.
"""

from collections.abc import Iterator

import torch

from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser, ReverseStep, reverse_process
from diffuco.graphs.batch import Batch


def evaluation_steps(num_steps: int, step_factor: int) -> list[int]:
    """The time step t that the network gets at each of the `step_factor * num_steps` steps.

    >>> evaluation_steps(3, 2)
    [3, 3, 2, 2, 1, 1]
    """
    return [step for step in range(num_steps, 0, -1) for _ in range(step_factor)]


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
