"""Imitation: learn to undo the noise that is added to annealed solutions of the training graphs.

Unlike the paper's bound this is a forward KL divergence, from the noisy paths of examples to the model. With X_0 an
example and X_1, ..., X_T drawn by the forward process,

    KL(p(X_0:T) || q(X_0:T)) = constant + E[ sum_t cost_t ],   cost_t = -E[log q(X_{t-1} | X_t)]

and the inner expectation over X_{t-1} is exact, because its distribution given X_0 and X_t is known. Columns are shared
equally by the steps. There is no rollout and no reward, so a gradient is cheap and has little variance; but the model
gets no better than its examples, and where they differ it learns their mixture. It is a start for the paper's bound.

Legend: B graphs, N rows, S columns, K examples per graph.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from diffuco.diffusion.noise import CategoricalNoise, Noise, Temperature
from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch
from diffuco.problems import Problem
from diffuco.training.objectives.base import Objective


@dataclass(frozen=True)
class Imitation(Objective):
    """KL(p(X_0:T) || q(X_0:T)), up to a constant, of the noisy paths of annealed solutions."""

    name = "imitation"
    needs_flips = True

    num_columns: int = 64
    """Noisy examples per graph, at most, and at least one per step."""
    num_examples: int = 8
    """K: annealed solutions of every training graph, so that more than one optimum is seen."""

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
        """Add the gradient of the divergence; return it, and the share of variables that the model gets wrong."""
        assert examples is not None
        noise = flipping(noise)
        per_step = max(1, self.num_columns // noise.num_steps)
        columns = torch.arange(per_step * noise.num_steps, device=batch.device)
        step = columns % noise.num_steps + 1
        x_0 = examples[:, columns // noise.num_steps % examples.shape[1]].float()
        logits, cost = denoised(denoiser, noise, batch, x_0, step, random)
        scale = 1 / (num_graphs * per_step)
        (cost.sum() * scale).backward()  # type: ignore[no-untyped-call]
        wrong = batch.graph_mean(((logits.detach() > 0) != (x_0 > 0.5)).float())
        return {"loss": cost.detach().sum() * scale, "wrong": wrong.mean(1).sum() / num_graphs}


def flipping(noise: Noise) -> CategoricalNoise:
    """The noise, if it flips the variables of a solution."""
    if not isinstance(noise, CategoricalNoise):
        raise InputError(f"noise '{noise.name}' does not start from a solution; take 'exponential'")
    return noise


def denoised(
    denoiser: Denoiser, noise: CategoricalNoise, batch: Batch, x_0: Tensor, step: Tensor, random: RandomSource
) -> tuple[Tensor, Tensor]:
    """Add noise to states up to a step of each column; the network's logits [N, S] and cost_t [B, S]."""
    changed = random.uniform(batch, len(step)) < noise.change_probability(step)
    x = (x_0 - changed.float()).abs()
    logits = denoiser(batch, x, step, random.normal(batch, len(step), denoiser.num_random_features))
    return logits, cross_entropy(batch, logits, noise.posterior(x_0, x, step))


def cross_entropy(batch: Batch, logits: Tensor, probs: Tensor) -> Tensor:
    """-E[log q(X)] over independent variables with these probabilities. [N, S] -> [B, S]."""
    return batch.graph_sum(F.binary_cross_entropy_with_logits(logits, probs, reduction="none"))
