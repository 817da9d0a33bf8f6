"""The parallel annealer RLSA: regularised Langevin dynamics with a falling temperature, nothing learned.

In each step every variable may flip, with probability sigmoid((gain_i - gain_(d)) / temperature), where gain_i is by
how much flipping i alone would lower the energy and gain_(d) the d-th largest of them: the d most promising ones flip
with probability 1/2 or more. The temperature falls linearly to 0, and each chain keeps the best state it has seen (Feng
and Yang 2025). Conditional Expectation makes the last repairs.

Legend: B graphs, N rows, S chains per graph.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.baselines.methods.base import ALL_PROBLEMS, Deadline
from diffuco.baselines.methods.batched import BatchedMethod, finish
from diffuco.graphs.batch import Batch, DenseBatch
from diffuco.problems import Problem, QuadraticForm
from diffuco.refinement import weight_scale

MAX_ROWS = 2**24
"""Nodes times chains of one graph; a graph of more than 80,000 nodes gets fewer chains."""
MIN_CHAINS = 8
NODES_PER_FLIP = 4
"""d is at most a graph's nodes over this, as otherwise small graphs would flip as a whole."""


@dataclass(frozen=True)
class Schedule:
    """How a problem is annealed; chains, steps and d are those of the authors where they report the problem."""

    num_chains: int
    num_steps: int
    num_flips: int
    """d: about how many variables of a graph flip in a step."""
    temperature: float
    """At the start, in units of the energy; for problems with weights, of a typical weight."""


SCHEDULES = {
    "mis": Schedule(200, 300, 5, 0.1),
    "mvc": Schedule(200, 300, 5, 0.1),
    "max-clique": Schedule(200, 300, 2, 0.1),
    "max-cut": Schedule(200, 500, 20, 3.0),
    "mds": Schedule(200, 500, 5, 0.3),
    "qubo": Schedule(200, 500, 5, 1.0),
}


class ParallelAnnealing(BatchedMethod):
    """200 chains of 300 to 500 steps; given a time limit, as many steps as fit while the temperature falls over it."""

    name = "rlsa"
    summary = "parallel annealing on CPU or GPU, 200 chains of 300 to 500 steps unless given a time limit"
    problems = ALL_PROBLEMS
    time_limit = "used"

    def num_columns(self, problem: Problem) -> int:
        """Chains per graph."""
        return SCHEDULES[problem.name].num_chains

    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """The best state that each chain has seen, starting from coin flips. [N, S]."""
        schedule = SCHEDULES[problem.name]
        num_chains = min(schedule.num_chains, max(MIN_CHAINS, MAX_ROWS // max(1, batch.num_rows)))
        temperature = schedule.temperature * batch.spread(weight_scale(problem, batch)[:, None])  # [N, 1]

        def uniform() -> Tensor:
            return torch.rand(batch.num_rows, num_chains, generator=generator, device=batch.device)

        x = (uniform() < 0.5).float()
        best, lowest = x, batch.graph_sum(x[:, :1]).expand(-1, num_chains) + torch.inf
        step = 0
        while (progress := _progress(step, schedule.num_steps, deadline, batch.device)) < 1:
            field = problem.local_field(batch, x)
            energies = _energies(problem, batch, x, field)
            best = torch.where(batch.spread(energies < lowest), x, best)
            lowest = torch.minimum(energies, lowest)
            gain = (2 * x - 1) * field
            excess = gain - batch.spread(kth_largest_gain(batch, gain, schedule.num_flips))
            x = torch.where(uniform() < torch.sigmoid(excess / (temperature * (1 - progress))), 1 - x, x)
            step += 1
        last = _energies(problem, batch, x, problem.local_field(batch, x))
        return torch.where(batch.spread(last < lowest), x, best)


def kth_largest_gain(batch: Batch, gain: Tensor, num_flips: int) -> Tensor:
    """The d-th largest gain of every chain, where d is `num_flips` or less in small graphs. [N, S] -> [B, S]."""
    ranks = (batch.sizes // NODES_PER_FLIP).clamp(1, num_flips) - 1  # [B]
    if isinstance(batch, DenseBatch):
        padded = gain.where(batch.mask[:, None], -torch.inf).view(batch.num_graphs, batch.num_padded, -1)
        largest = padded.topk(min(num_flips, batch.num_padded), dim=1).values  # [B, d, S]
        return largest.gather(1, ranks.view(-1, 1, 1).expand(-1, 1, gain.shape[1]))[:, 0]
    parts = zip(batch.split(gain), ranks.tolist(), strict=True)
    # A graph without nodes has no gains, and none of its rows will ask for this one.
    return torch.stack(
        [part.topk(rank + 1, dim=0).values[-1] if len(part) else gain.new_zeros(gain.shape[1]) for part, rank in parts]
    )


def _energies(problem: Problem, batch: Batch, x: Tensor, field: Tensor) -> Tensor:
    """H(X) up to a constant of each graph, from the fields where that saves a sum over neighbours. [B, S]."""
    form = problem.form(batch)
    if isinstance(form, QuadraticForm):
        return batch.graph_sum(0.5 * x * (form.linear[:, None] + field))
    return problem.energy(batch, x)


def _progress(step: int, num_steps: int, deadline: Deadline, device: torch.device) -> float:
    """Share of the way to temperature 0: of the steps or, given a time limit, of the time."""
    if deadline.limit_s is None:
        return step / num_steps
    finish(device)
    return deadline.elapsed_s / deadline.limit_s if deadline.limit_s else 1.0
