"""The reverse process: from uniform noise X_T, step by step, to a solution X_0 (Sec. 3.1).

Legend: N rows, S samples, R random features per node.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from diffuco.diffusion import mean_field
from diffuco.diffusion.randomness import RandomSource
from diffuco.graphs.batch import Batch


class Denoiser(Protocol):
    """Anything that turns a noisy state into the logits of the previous one."""

    @property
    def num_random_features(self) -> int:
        """R: random numbers that each node gets at every step, to tell equal neighbourhoods apart."""

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits of q(X_{t-1} | X_t): states [N, S], steps t [S], random features [N, S, R] -> [N, S]."""


class ReverseStep(NamedTuple):
    """One draw X_{t-1} ~ q(. | X_t)."""

    step: int
    """t, counted down to 1."""
    x: Tensor
    """X_t [N, S]."""
    features: Tensor
    """The random features that the network saw [N, S, R]; with them, the step can be computed again."""
    logits: Tensor
    """Logits of q(X_{t-1} | X_t) [N, S]."""
    next_x: Tensor
    """X_{t-1} [N, S]."""


class Steps(NamedTuple):
    """Some reverse steps of a path side by side, as if they were samples."""

    step: Tensor
    """t of every column [C * S]."""
    x: Tensor
    """X_t [N, C * S]."""
    logits: Tensor
    """Logits of q(X_{t-1} | X_t) [N, C * S]."""
    next_x: Tensor
    """X_{t-1} [N, C * S]."""

    @classmethod
    def join(cls, path: list[ReverseStep]) -> "Steps":
        """Put steps side by side."""
        step = [torch.full((taken.x.shape[1],), taken.step, device=taken.x.device) for taken in path]
        return cls(
            torch.cat(step),
            torch.cat([taken.x for taken in path], dim=1),
            torch.cat([taken.logits for taken in path], dim=1),
            torch.cat([taken.next_x for taken in path], dim=1),
        )


def predict(denoiser: Denoiser, batch: Batch, x: Tensor, step: int, features: Tensor) -> Tensor:
    """Logits of q(X_{t-1} | X_t) when all samples are at the same step. [N, S] -> [N, S]."""
    return denoiser(batch, x, torch.full((x.shape[1],), step, device=x.device), features)


def reverse_process(
    denoiser: Denoiser,
    batch: Batch,
    steps: Iterable[int],
    num_samples: int,
    random: RandomSource,
    *,
    start: Tensor | None = None,
) -> Iterator[ReverseStep]:
    """Yield the reverse process along the given steps; a longer evaluation may repeat a step.

    It starts from uniform noise, or from the states given for the first step. [N, S].
    """
    if start is None:
        uniform = random.uniform(batch, num_samples)
        start = mean_field.sample(torch.zeros_like(uniform), uniform)
    x = start
    for step in steps:
        features = random.normal(batch, num_samples, denoiser.num_random_features)
        logits = predict(denoiser, batch, x, step, features)
        next_x = mean_field.sample(logits, random.uniform(batch, num_samples))
        yield ReverseStep(step, x, features, logits, next_x)
        x = next_x
