"""Discrete simulated bifurcation: all variables move at once, as oscillators that a rising pump drives to two walls.

For quadratic energies (Goto et al. 2021). Where annealing asks one variable after the other, a step moves all of them,
which suits large sparse graphs. A few sweeps of single flips at no temperature end a run in a local minimum, and
Conditional Expectation makes the last repairs.

Legend: B graphs, N rows, S agents per graph, K steps.
"""

import torch
from torch import Tensor

from diffuco import ops
from diffuco.diffusion.decoding import without_padding
from diffuco.graphs.batch import Batch
from diffuco.inference.decoding import adjacency_of
from diffuco.inference.refinement import Schedule, anneal
from diffuco.methods.annealer import Annealer, best_of_rounds
from diffuco.methods.base import Deadline
from diffuco.problems import Problem, QuadraticForm

MAX_AGENTS = 32
MIN_AGENTS = 8
MAX_ROWS = 2**18
"""Nodes times agents of one graph; one of more than 8,000 nodes gets fewer agents."""
NUM_STEPS = 1000
FIRST_STEPS = 50
"""Of the round from which the speed is known."""
MAX_STEPS = 20_000
START = 0.1
"""Positions and momenta start between minus this and this."""
RELATIVE_STRENGTH = 0.5
"""What the root of the mean square of a node's couplings counts for."""
DESCENT = Schedule(num_sweeps=10, temperature=1e-9)
"""At so low a temperature, a flip that raises the energy is never accepted."""


class Bifurcation(Annealer):
    """8 to 32 agents of 1,000 steps; given a time limit, rounds of as many steps as fit."""

    name = "bifurcation"
    summary = "discrete simulated bifurcation on CPU or GPU, 1,000 steps unless given a time limit"
    time_limit = "used"

    def solves(self, problem: Problem) -> bool:
        """Quadratic energies."""
        return problem.is_quadratic

    def num_columns(self, problem: Problem) -> int:
        """Agents per graph."""
        return MAX_AGENTS

    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """The local minimum nearest to where each agent ends. [N, S]."""

        def run(num_steps: int, _: float = 0.0) -> Tensor:
            return bifurcate(problem, batch, num_agents, num_steps, generator)

        num_agents = min(MAX_AGENTS, max(MIN_AGENTS, MAX_ROWS // max(1, batch.largest)))
        if deadline.limit_s is None:
            found = run(NUM_STEPS)
        else:
            found = best_of_rounds(deadline, problem, batch, run, FIRST_STEPS, MAX_STEPS)
        return anneal(problem, batch, found, DESCENT)


def bifurcate(problem: Problem, batch: Batch, num_agents: int, num_steps: int, generator: torch.Generator) -> Tensor:
    """States of agents that start at random, after so many steps. [N, S].

    The pump rises linearly: it is k / K in step k of K.
    """
    form = problem.form(batch)
    assert isinstance(form, QuadraticForm)
    shape = (2, batch.num_rows, num_agents)
    start = START * (2 * torch.rand(shape, generator=generator, device=batch.device) - 1)
    positions, _ = ops.bifurcate_quadratic(
        start[0],
        start[1],
        adjacency_of(form.edges or batch, weighted=form.edges is not None),
        linear=form.linear,
        edge=form.edge,
        pair=form.pair,
        strengths=strengths_of(form, batch, num_agents),
        pumps=torch.arange(num_steps, device=batch.device) / num_steps,
    )
    return without_padding(batch, (positions > 0).float())


def strengths_of(form: QuadraticForm, batch: Batch, num_agents: int) -> Tensor:
    """What each agent multiplies the field by: 0.5 over the root mean square of what acts on a node. [B, S].

    With s_i = 2 x_i - 1 the field of node i is h_i + sum_j J_ij s_j, where J_ij is half the coefficient of x_i x_j. For
    the first agent, h_i counts as one more coupling; for the last one, it does not count. Neither is best everywhere:
    dense graphs need the first, sparse ones the last. For cuts, which have no h_i, all have 0.5 / sqrt(mean degree).
    """
    sums = squares = batch.degrees  # of the w_ij of each node
    if form.edges is not None:
        sums, squares = form.edges.weight_sum(), form.edges.squared_weight_sum()
    others = batch.spread((batch.sizes - 1).to(sums.dtype))
    couplings = (form.edge**2 * squares + 2 * form.edge * form.pair * sums + form.pair**2 * others) / 4
    biases = form.linear + (form.edge * sums + form.pair * others) / 2
    terms = without_padding(batch, torch.stack([couplings, biases.square()], 1).float())
    of_couplings, of_biases = batch.graph_mean(terms)[:, None].unbind(2)  # [B, 1]
    of_couplings = torch.where(of_couplings > 0, of_couplings, of_biases).clamp(min=1e-12)
    share = torch.linspace(1, 0, num_agents, device=batch.device)
    root: Tensor = of_couplings.sqrt() * (1 + of_biases / of_couplings).sqrt() ** share
    return RELATIVE_STRENGTH / root
