"""What a path of the model counts in the Boltzmann distribution: importance weights of whole paths.

The model draws X_T, ..., X_0 with probability q(X_T) prod_t q(X_{t-1} | X_t). Noise that is added to draws of the
Boltzmann distribution gives the same path with probability exp(-H(X_0) / temperature) / Z prod_t p(X_t | X_{t-1}). The
ratio of the two, without the unknown Z, is the weight of the path:

    w = exp(-H(X_0) / temperature) * prod_t p(X_t | X_{t-1}) / (q(X_T) prod_t q(X_{t-1} | X_t))

So E[w] = Z and E[w f(X_0)] = Z E_Boltzmann[f], however good or bad the model is. Random features of the network have
the same density on both sides and cancel.

That holds for any forward process whose probabilities sum to 1. The noise of the training is the one that the model
fits best. Annealed noise draws X_1, ..., X_T independently of X_0. Their own distribution under the model then serves
as well, and all but the last step cancels: w = exp(-H(X_0) / temperature) / q(X_0 | X_1).

Legend: B graphs, N rows, S samples, R random features per node.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.diffusion import mean_field
from diffuco.diffusion.noise import CategoricalNoise
from diffuco.diffusion.randomness import RowRandom
from diffuco.diffusion.reverse import Denoiser, ReverseStep, reverse_process
from diffuco.graphs.batch import Batch


@torch.inference_mode()
def weighted_paths(
    denoiser: Denoiser,
    batch: Batch,
    noise: CategoricalNoise | None,
    *,
    num_steps: int,
    num_samples: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Draw paths; their ends X_0 [N, S] and log w + H(X_0) / temperature [B, S], the part that no temperature changes.

    Without a noise that flips variables, X_0 is taken to be independent of the other states.
    """
    random = RowRandom(generator, torch.float64)
    steps = range(num_steps, 0, -1)
    return end_and_log_ratio(batch, noise, reverse_process(_InDouble(denoiser), batch, steps, num_samples, random))


def end_and_log_ratio(
    batch: Batch, noise: CategoricalNoise | None, path: Iterable[ReverseStep]
) -> tuple[Tensor, Tensor]:
    """The same for given paths."""
    log_ratio = math.log(2) * batch.sizes.double()[:, None]  # -log q(X_T)
    for taken in path:
        log_reverse = batch.graph_sum(mean_field.log_prob(taken.logits, taken.next_x))
        if noise is not None:
            log_ratio = log_ratio + batch.graph_sum(_log_forward(noise, taken)) - log_reverse
    return taken.next_x, -log_reverse if noise is None else log_ratio


def _log_forward(noise: CategoricalNoise, taken: ReverseStep) -> Tensor:
    """log p(X_t | X_{t-1}) of every variable. [N, S]."""
    flip = noise.flip_probability(torch.tensor(taken.step, dtype=taken.x.dtype, device=taken.x.device))
    return torch.where(taken.x == taken.next_x, torch.log1p(-flip), flip.log())


@dataclass(frozen=True)
class _InDouble:
    """A denoiser with states and logits in float64: in float32, rare states would be rounded to impossible ones."""

    denoiser: Denoiser

    @property
    def num_random_features(self) -> int:
        """R."""
        return self.denoiser.num_random_features

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        return self.denoiser(batch, x.float(), step, features).double()
