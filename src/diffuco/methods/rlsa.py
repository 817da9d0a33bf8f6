"""The parallel annealer RLSA: regularised Langevin dynamics with a falling temperature, nothing learned.

In each step every variable may flip, with probability sigmoid((gain_i - gain_(d)) / temperature), where gain_i is by
how much flipping i alone would lower the energy and gain_(d) the d-th largest of them: the d most promising ones flip
with probability 1/2 or more. The temperature falls linearly to 0, and each chain keeps the best state it has seen (Feng
and Yang 2025). Each problem says how it is annealed (`Problem.annealing`). Conditional Expectation makes the last
repairs.

Legend: B graphs, N rows, S chains per graph.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from diffuco.foundation.devices import finish
from diffuco.foundation.progress import report
from diffuco.graphs.batch import Batch, DenseBatch
from diffuco.inference.refinement import weight_scale
from diffuco.methods.annealer import Annealer
from diffuco.methods.base import Deadline
from diffuco.ops import triton_works
from diffuco.problems import Problem, QuadraticForm

NUM_CHAINS = 200
MAX_ROWS = 2**24
"""Nodes times chains of one graph; a graph of more than 80,000 nodes gets fewer chains."""
MIN_CHAINS = 8
MAX_PADDED_FOR_KERNEL = 8192
"""Nodes whose gains fit the registers of a program."""
NODES_PER_FLIP = 4
"""d is at most a graph's nodes over this, as otherwise small graphs would flip as a whole."""


class ParallelAnnealing(Annealer):
    """200 chains of 300 to 1,000 steps; given a time limit, as many as fit while the temperature falls over it."""

    name = "rlsa"
    summary = "parallel annealing on CPU or GPU, 200 chains of 300 to 1,000 steps unless given a time limit"
    time_limit = "used"

    def num_columns(self, problem: Problem) -> int:
        """Chains per graph."""
        return NUM_CHAINS

    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """The best state that each chain has seen, starting from coin flips. [N, S]."""
        schedule = problem.annealing
        num_chains = min(NUM_CHAINS, max(MIN_CHAINS, MAX_ROWS // max(1, batch.num_rows)))
        temperatures = schedule.parallel_temperature * weight_scale(problem, batch).float()  # [B]

        def uniform() -> Tensor:
            return torch.rand(batch.num_rows, num_chains, generator=generator, device=batch.device)

        x = (uniform() < 0.5).float()
        chains = Chains(x, x.clone(), batch.graph_sum(x[:, :1]).expand(-1, num_chains) + torch.inf)
        ranks = (batch.sizes // NODES_PER_FLIP).clamp(1, schedule.parallel_flips)
        take = take_step_in_one_kernel if _fits_kernel(batch) else take_step
        step = 0
        while (progress := _progress(step, schedule.parallel_steps, deadline, batch.device)) < 1:
            field = problem.local_field(batch, chains.x)
            cooled = temperatures * (1 - progress)
            chains = take(problem, batch, chains, field, uniform(), cooled, ranks)
            step += 1
            report("annealing, steps", step, schedule.parallel_steps if deadline.limit_s is None else None)
        last = energies_from(problem, batch, chains.x, problem.local_field(batch, chains.x))
        return torch.where(batch.spread(last < chains.lowest), chains.x, chains.best)


class Chains(NamedTuple):
    """Where the chains stand."""

    x: Tensor
    """States [N, S]."""
    best: Tensor
    """The best state that each has seen [N, S]."""
    lowest: Tensor
    """Its energy, up to a constant of the graph [B, S]."""


def take_step(
    problem: Problem,
    batch: Batch,
    chains: Chains,
    field: Tensor,
    uniform: Tensor,
    temperatures: Tensor,
    ranks: Tensor,
) -> Chains:
    """Flip variables, given local fields and uniform numbers [N, S], and each graph's temperature and d [B]."""
    x = chains.x
    energies = energies_from(problem, batch, x, field)
    best = torch.where(batch.spread(energies < chains.lowest), x, chains.best)
    gain = (2 * x - 1) * field
    excess = gain - batch.spread(gain_of_rank(batch, gain, ranks))
    flips = uniform < torch.sigmoid(excess / batch.spread(temperatures[:, None]))
    return Chains(torch.where(flips, 1 - x, x), best, torch.minimum(energies, chains.lowest))


def take_step_in_one_kernel(
    problem: Problem,
    batch: Batch,
    chains: Chains,
    field: Tensor,
    uniform: Tensor,
    temperatures: Tensor,
    ranks: Tensor,
) -> Chains:
    """The same on a GPU, for a dense batch."""
    # Imported here: not every platform has Triton, and importing it takes time.
    from diffuco.methods import triton_rlsa

    form = problem.form(batch)
    is_quadratic = isinstance(form, QuadraticForm)
    x = triton_rlsa.take_step(
        *chains,
        field,
        _linear(batch, form).contiguous() if isinstance(form, QuadraticForm) else None,
        None if is_quadratic else problem.energy(batch, chains.x),
        *(uniform, temperatures, ranks, batch.sizes),
    )
    return Chains(x, chains.best, chains.lowest)


def _fits_kernel(batch: Batch) -> bool:
    is_small = isinstance(batch, DenseBatch) and batch.num_padded <= MAX_PADDED_FOR_KERNEL
    return is_small and batch.device.type == "cuda" and triton_works()


def gain_of_rank(batch: Batch, gain: Tensor, ranks: Tensor) -> Tensor:
    """The d-th largest gain of every chain, where d is `ranks` [B]. [N, S] -> [B, S]."""
    if isinstance(batch, DenseBatch):
        padded = gain.where(batch.mask[:, None], -torch.inf).view(batch.num_graphs, batch.num_padded, -1)
        largest = padded.topk(min(int(ranks.max()), batch.num_padded), dim=1).values  # [B, d, S]
        return largest.gather(1, (ranks - 1).view(-1, 1, 1).expand(-1, 1, gain.shape[1]))[:, 0]
    parts = zip(batch.split(gain), ranks.tolist(), strict=True)
    # A graph without nodes has no gains, and none of its rows will ask for this one.
    return torch.stack(
        [part.topk(rank, dim=0).values[-1] if len(part) else gain.new_zeros(gain.shape[1]) for part, rank in parts]
    )


def energies_from(problem: Problem, batch: Batch, x: Tensor, field: Tensor) -> Tensor:
    """H(X) up to a constant of each graph, from the fields where that saves a sum over neighbours. [B, S]."""
    form = problem.form(batch)
    if isinstance(form, QuadraticForm):
        return batch.graph_sum(0.5 * x * (_linear(batch, form)[:, None] + field))
    return problem.energy(batch, x)


def _linear(batch: Batch, form: QuadraticForm) -> Tensor:
    """The linear terms of the energy itself. [N]."""
    return form.linear if form.unit is None else batch.spread(form.unit) * form.linear


def _progress(step: int, num_steps: int, deadline: Deadline, device: torch.device) -> float:
    """Share of the way to temperature 0: of the steps or, given a time limit, of the time."""
    if deadline.limit_s is None:
        return step / num_steps
    finish(device)
    return deadline.elapsed_s / deadline.limit_s if deadline.limit_s else 1.0
