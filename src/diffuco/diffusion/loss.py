"""The Joint Variational Upper Bound and its gradient (Eq. 6 and App. A.3).

temperature * KL(q(X_0:T) || p(X_0:T)) is a sum of one cost per reverse step, each an exact expectation given X_t:

    cost_t = -temperature * S(q(. | X_t)) - temperature * E[log p(X_t | X_{t-1})] + [t = 1] E[H(X_0)]

The states of a path are constants for the gradient, so with the later costs known

    gradient = E[ sum_t  grad cost_t + (sum of costs after t - baseline) * grad log q(X_{t-1} | X_t) ]

and the steps do not depend on each other: roll out once without gradients, keep the states, then differentiate any
number of steps at a time. Memory does not grow with the number of steps.

Legend: B graphs, N rows, S samples, C steps of one chunk.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from diffuco.diffusion import mean_field
from diffuco.diffusion.noise import Noise, Temperature
from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser, ReverseStep, reverse_process
from diffuco.graphs.batch import Batch
from diffuco.problems import Problem


class StepCost(NamedTuple):
    """The terms of cost_t, each [B, S]."""

    entropy: Tensor
    """-temperature * S(q(. | X_t))."""
    noise: Tensor
    """-temperature * E[log p(X_t | X_{t-1})], without constants."""
    energy: Tensor
    """E[H(X_0)] at t = 1, else zero."""

    @property
    def total(self) -> Tensor:
        """cost_t."""
        return self.entropy + self.noise + self.energy


def step_cost(
    problem: Problem, noise: Noise, batch: Batch, x: Tensor, logits: Tensor, step: Tensor, temperature: Temperature
) -> StepCost:
    """The cost of reverse steps given their X_t; `step` is [S], so that samples may stand at different steps."""
    probs = logits.sigmoid()
    energy = problem.energy(batch, probs)
    return StepCost(
        entropy=-temperature * batch.graph_sum(mean_field.entropy(logits)),
        noise=noise.expected_cost(batch, x, probs, energy, step, temperature),
        energy=torch.where(step == 1, energy, 0.0),
    )


def leave_one_out(values: Tensor) -> Tensor:
    """Each sample's value minus the mean of the graph's other samples; the mean over all would bias the gradient.

    >>> leave_one_out(torch.tensor([[1.0, 2.0, 6.0]])).tolist()
    [[-3.0, -1.5, 4.5]]
    """
    num_samples = values.shape[1]
    if num_samples == 1:
        return values
    return (values - values.mean(1, keepdim=True)) * (num_samples / (num_samples - 1))


def surrogate(
    denoiser: Denoiser,
    problem: Problem,
    noise: Noise,
    batch: Batch,
    path: list[ReverseStep],
    advantages: Tensor,
    temperature: Temperature,
) -> Tensor:
    """Per graph, the function of the parameters whose gradient these steps contribute to the loss. [B].

    `advantages` [C, B, S] holds, per step, the later costs minus their baseline.
    """
    num_samples = path[0].x.shape[1]
    x = torch.cat([step.x for step in path], dim=1)  # [N, C * S]
    next_x = torch.cat([step.next_x for step in path], dim=1)
    features = torch.cat([step.features for step in path], dim=1)
    step = torch.cat([torch.full((num_samples,), step.step, device=x.device) for step in path])
    logits = denoiser(batch, x, step, features)
    cost = step_cost(problem, noise, batch, x, logits, step, temperature).total  # [B, C * S]
    log_q = batch.graph_sum(mean_field.log_prob(logits, next_x))
    weights = advantages.transpose(0, 1).reshape(cost.shape)
    return (cost + weights * log_q).sum(1) / num_samples


def backward_joint_bound(
    denoiser: Denoiser,
    problem: Problem,
    noise: Noise,
    batch: Batch,
    *,
    temperature: Temperature,
    num_samples: int,
    random: RandomSource,
    steps_per_chunk: int | None = None,
    num_graphs: int | None = None,
) -> StepCost:
    """Add the gradient of the loss to the denoiser's parameters; return the loss terms, averaged over the graphs.

    `steps_per_chunk` bounds memory: so many steps are differentiated at once (None: all). The gradient is the same.
    `num_graphs` is what sums over graphs are divided by, where this batch is a part of a larger one.
    """
    num_graphs = num_graphs or batch.num_graphs
    with torch.no_grad():
        path, costs = [], []
        for taken in reverse_process(denoiser, batch, range(noise.num_steps, 0, -1), num_samples, random):
            step = torch.full((num_samples,), taken.step, device=batch.device)
            costs.append(step_cost(problem, noise, batch, taken.x, taken.logits, step, temperature))
            path.append(taken)
        advantages = later_costs_advantage(torch.stack([cost.total for cost in costs]))
    for chunk in _chunks(len(path), steps_per_chunk or len(path)):
        contribution = surrogate(denoiser, problem, noise, batch, path[chunk], advantages[chunk], temperature)
        (contribution.sum() / num_graphs).backward()  # type: ignore[no-untyped-call]
    return StepCost(*(torch.stack(terms).sum() / (num_graphs * num_samples) for terms in zip(*costs, strict=True)))


def later_costs_advantage(costs: Tensor) -> Tensor:
    """Per step, the sum of the costs after it minus the leave-one-out baseline. [T, B, S] -> [T, B, S]."""
    after = costs.flip(0).cumsum(0).flip(0) - costs
    return torch.stack([leave_one_out(step) for step in after])


def _chunks(length: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, length, size))
