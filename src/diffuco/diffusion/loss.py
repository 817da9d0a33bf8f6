"""The Joint Variational Upper Bound and its gradient (Eq. 6 and App. A.3).

temperature * KL(q(X_0:T) || p(X_0:T)) is a sum of one cost per reverse step, each an exact expectation given X_t:

    cost_t = -temperature * S(q(. | X_t)) - temperature * E[log p(X_t | X_{t-1})] + [t = 1] E[H(X_0)]

The sum is exact up to a constant: temperature * log Z of the Boltzmann distribution, the normalisers of annealed noise
and temperature * log q(X_T) are left out. Annealed noise is independent from step to step, so step t has the factor
p(X_{t-1}) in place of p(X_t | X_{t-1}).

The gradient treats the states of a path as constants, so once the later costs are known,

    gradient = E[ sum_t  grad cost_t + (sum of costs after t - baseline) * grad log q(X_{t-1} | X_t) ]

and the steps do not depend on each other. So we roll out once and then differentiate all steps at once. Alternatively,
we differentiate some at a time, computing the network again from the states of the path, so that memory does not grow
with the number of steps.

Legend: B graphs, N rows, S samples, C steps of one chunk.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from diffuco.diffusion import mean_field
from diffuco.diffusion.noise import Noise, Temperature
from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser, Steps, predict, reverse_process
from diffuco.graphs.batch import Batch
from diffuco.problems import Problem


class StepCost(NamedTuple):
    """The terms of cost_t, each [B, S]."""

    entropy: Tensor
    """-temperature * S(q(. | X_t))."""
    noise: Tensor
    """`Noise.expected_cost`: minus temperature * E[log p] of the factor that the noise gives the step."""
    energy: Tensor
    """E[H(X_0)] at t = 1, else zero."""

    @property
    def total(self) -> Tensor:
        """cost_t."""
        return self.entropy + self.noise + self.energy


def step_cost(problem: Problem, noise: Noise, batch: Batch, steps: Steps, temperature: Temperature) -> StepCost:
    """The cost of reverse steps given their X_t; each term is [B, C * S]."""
    probs = steps.logits.sigmoid()
    energy = problem.energy(batch, probs)
    return StepCost(
        entropy=-temperature * batch.graph_sum(mean_field.entropy(steps.logits)),
        noise=noise.expected_cost(batch, steps.x, probs, energy, steps.step, temperature),
        energy=torch.where(steps.step == 1, energy, 0.0),
    )


def leave_one_out(values: Tensor) -> Tensor:
    """Each sample's value minus the mean of the graph's other samples; the mean of all samples would bias the gradient.

    A single sample has no others, and so no baseline. [..., S] -> [..., S].

    >>> leave_one_out(torch.tensor([[1.0, 2.0, 6.0]])).tolist()
    [[-3.0, -1.5, 4.5]]
    """
    num_samples = values.shape[-1]
    if num_samples == 1:
        return values
    return (values - values.mean(-1, keepdim=True)) * (num_samples / (num_samples - 1))


def surrogate(batch: Batch, steps: Steps, cost: Tensor, advantages: Tensor) -> Tensor:
    """Per graph, a function of the parameters; its gradient is the part of the loss gradient due to these steps. [B].

    `cost` is cost_t [B, C * S], and `advantages` [C, B, S] holds, per step, the later costs minus their baseline.
    """
    log_q = batch.graph_sum(mean_field.log_prob(steps.logits, steps.next_x))
    weights = advantages.transpose(0, 1).reshape(cost.shape)
    return (cost + weights * log_q).sum(1) / advantages.shape[2]


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

    `steps_per_chunk` limits memory: this many steps are differentiated at once (None: all). The gradient is the same,
    but the network has to be computed again for every chunk. `num_graphs` is the number of graphs to divide by, if this
    batch is a part of a larger one.
    """
    num_graphs = num_graphs or batch.num_graphs
    chunks = list(_chunks(noise.num_steps, steps_per_chunk or noise.num_steps))
    in_one = len(chunks) == 1
    with torch.set_grad_enabled(in_one):
        path = list(reverse_process(denoiser, batch, range(noise.num_steps, 0, -1), num_samples, random))
        parts = [Steps.join(path[chunk]) for chunk in chunks]
        costs = [step_cost(problem, noise, batch, steps, temperature) for steps in parts]
    by_step = torch.cat(
        [cost.total.detach().view(batch.num_graphs, -1, num_samples) for cost in costs], dim=1
    )  # [B, T, S]
    advantages = later_costs_advantage(by_step.transpose(0, 1))
    for chunk, steps, cost in zip(chunks, parts, costs, strict=True):
        if not in_one:
            again = (predict(denoiser, batch, taken.x, taken.step, taken.features) for taken in path[chunk])
            steps = steps._replace(logits=torch.cat(list(again), dim=1))
            cost = step_cost(problem, noise, batch, steps, temperature)
        contribution = surrogate(batch, steps, cost.total, advantages[chunk])
        (contribution.sum() / num_graphs).backward()  # type: ignore[no-untyped-call]
    terms = zip(*costs, strict=True)
    return StepCost(*(torch.cat(parts, dim=1).detach().sum() / (num_graphs * num_samples) for parts in terms))


def later_costs_advantage(costs: Tensor) -> Tensor:
    """Per step, the sum of the costs after it minus the leave-one-out baseline. [T, B, S] -> [T, B, S]."""
    after = costs.flip(0).cumsum(0).flip(0) - costs
    return leave_one_out(after)


def _chunks(length: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, length, size))
