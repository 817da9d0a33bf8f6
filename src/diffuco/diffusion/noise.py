"""The forward process p(X_t | X_{t-1}): the noise distributions and the cost each adds to a reverse step (Sec. 3.2).

Legend: B graphs, N rows, S samples. `step` is [S], the diffusion step t in 1..num_steps of every sample.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch

Temperature = float | Tensor
"""A number, or a tensor [] if it changes between replays of a CUDA graph."""


@dataclass(frozen=True)
class Noise(ABC):
    """A forward process over `num_steps` steps, as the loss needs it."""

    name: ClassVar[str]
    """Its name in training configurations."""

    num_steps: int
    """T: diffusion steps."""

    @abstractmethod
    def expected_cost(
        self, batch: Batch, x: Tensor, probs: Tensor, energy: Tensor, step: Tensor, temperature: Temperature
    ) -> Tensor:
        """-temperature * E[log p] over X_{t-1} ~ probs of the factor that X_{t-1} decides, without constants. [B, S].

        It is p(X_t | X_{t-1}), or p(X_{t-1}) for annealed noise. `x` is X_t [N, S]; `energy` is E[H(X_{t-1})] [B, S].
        """


@dataclass(frozen=True)
class CategoricalNoise(Noise):
    """Every variable flips independently with probability beta_t = 1 / (T - t + 2), for any problem."""

    name = "categorical"

    def flip_probability(self, step: Tensor) -> Tensor:
        """beta_t; one half at t = T, so that X_T is uniform."""
        return 1.0 / (self.num_steps - step + 2)

    def expected_cost(
        self, batch: Batch, x: Tensor, probs: Tensor, energy: Tensor, step: Tensor, temperature: Temperature
    ) -> Tensor:
        """-temperature * sum_i [P(x_i stays) log(1 - beta) + P(x_i flips) log beta]. [B, S]."""
        flip = self.flip_probability(step.to(probs.dtype))
        flips = x * (1 - probs) + (1 - x) * probs
        return -temperature * batch.graph_sum((1 - flips) * torch.log1p(-flip) + flips * flip.log())

    def change_probability(self, step: Tensor) -> Tensor:
        """Probability that a variable of X_t differs from that of X_0: flips of all steps up to t, an odd number."""
        each = self.flip_probability(torch.arange(1.0, self.num_steps + 1, device=step.device))
        stays = torch.cat([each.new_ones(1), (1 - 2 * each).cumprod(0)])
        return (1 - stays[step]) / 2

    def posterior(self, x_0: Tensor, x: Tensor, step: Tensor) -> Tensor:
        """Probability that a variable of X_{t-1} is 1, given X_0 and X_t, by Bayes' rule. [N, S]."""
        change, flip = self.change_probability(step - 1), self.flip_probability(step.to(x.dtype))
        prior = x_0 * (1 - change) + (1 - x_0) * change
        ones, zeros = prior * torch.where(x > 0.5, 1 - flip, flip), (1 - prior) * torch.where(x > 0.5, flip, 1 - flip)
        return ones / (ones + zeros)


@dataclass(frozen=True)
class ExponentialNoise(CategoricalNoise):
    """Categorical noise that starts almost at zero: beta_t = 0.5 * 2^(-6 (1 - t/T))."""

    name = "exponential"

    def flip_probability(self, step: Tensor) -> Tensor:
        """beta_t; one half at t = T, so that X_T is uniform."""
        return 0.5 * 2.0 ** (-6 * (1 - step / self.num_steps))


@dataclass(frozen=True)
class AnnealedNoise(Noise):
    """Boltzmann distribution at rising temperature, p(X_t | X_{t-1}) ~ exp(-beta_t H(X_t) / temperature).

    The temperature cancels, so this term guides intermediate steps even when the temperature has reached 0.
    """

    name = "annealed"

    def energy_weight(self, t: Tensor) -> Tensor:
        """beta_t = 1 - t/T; zero at t = T, so that X_T is uniform."""
        return 1.0 - t / self.num_steps

    def expected_cost(
        self, batch: Batch, x: Tensor, probs: Tensor, energy: Tensor, step: Tensor, temperature: Temperature
    ) -> Tensor:
        """beta_{t-1} E[H(X_{t-1})]: given X_t, the factor of the path that step t decides is p(X_{t-1}). [B, S].

        It is zero at t = 1: X_0 has no noise term, and its energy is part of the loss itself.
        """
        weight = self.energy_weight(step.to(energy.dtype) - 1)
        return torch.where(step > 1, weight, 0.0) * energy


NOISES: dict[str, type[Noise]] = {noise.name: noise for noise in (AnnealedNoise, CategoricalNoise, ExponentialNoise)}


def make_noise(noise: str | Noise, num_steps: int) -> Noise:
    """The noise distribution of this name with `num_steps` steps, or this object, which must have as many.

    >>> make_noise("annealed", 3).energy_weight(torch.tensor([0, 1, 3])).tolist()
    [1.0, 0.6666666269302368, 0.0]
    """
    if isinstance(noise, str):
        if noise not in NOISES:
            raise InputError(f"unknown noise '{noise}'; choose one of {', '.join(NOISES)}")
        return NOISES[noise](num_steps)
    if noise.num_steps != num_steps:
        raise InputError(f"the noise has {noise.num_steps} steps, the run has {num_steps}; give both as many")
    return noise
