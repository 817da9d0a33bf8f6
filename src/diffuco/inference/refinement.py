"""Local search from given states: simulated annealing from a low temperature, then Conditional Expectation once more.

Not part of the paper. Samples of a model are near a minimum of the energy but rarely in it; some sweeps of single flips
at a temperature that keeps most of a sample find what is close by. Each chain returns the best state it has seen, its
start included, and Conditional Expectation never raises an energy, so refined states are never worse.

Legend: B graphs, N rows of all graphs, S states per graph, K sweeps.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from diffuco import ops
from diffuco.diffusion.decoding import without_padding
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch
from diffuco.inference.decoding import adjacency_of, conditional_expectation, with_float64_degrees
from diffuco.problems.base import CoverForm, Problem, energy_and_field


@dataclass(frozen=True)
class Schedule:
    """How long and how hot states are annealed."""

    num_sweeps: int
    """Times that every node may flip."""
    temperature: float
    """Temperature of the first sweep, in the units of `temperature_unit`. It falls to 0."""
    span: tuple[float, float] = field(default=(1.0, 0.0), repr=False)
    """What is left of the cooling before these sweeps and after them, if they are a piece of a longer schedule."""


NUM_GROUPS = 8
"""Groups of nodes that are asked one after the other where only the energy is known."""
COOL_NODES = 500
"""Size from which on samples do better from half of that temperature (docs/log.md): they keep more of themselves."""
NUM_SWEEPS = 1000
NUM_SWEEPS_BY_FIELD = 200
"""The same where only the energy is known, which takes longer."""
MIN_SWEEPS = 100
HUB_NODES = 10_000
"""Size from which on hubs cool faster; on smaller graphs there are sweeps enough for all nodes (docs/log.md)."""
MAX_POWER = 3.0
"""The most for the power with which a temperature falls."""
HOTTER = 1.5
"""The most that chains start hotter because their temperature falls fast."""
LAST_SWEEPS = 0.05
"""Share of the sweeps in which the temperature falls from a floor to 0."""
NODE_SWEEPS = 2**24
"""Nodes times sweeps of a chain: graphs of more than 16,000 nodes get fewer sweeps, down to `MIN_SWEEPS`."""


def schedule_for(problem: Problem, num_nodes: int, num_sweeps: int | None = None) -> Schedule:
    """How random states of a graph of so many nodes are annealed, for the sweeps given or those that suit its size.

    >>> from diffuco.problems import get_problem
    >>> schedule_for(get_problem("mis"), 200), schedule_for(get_problem("max-cut"), 100_000)
    (Schedule(num_sweeps=1000, temperature=0.2), Schedule(num_sweeps=167, temperature=0.4))
    """
    if num_sweeps is None:
        most = NUM_SWEEPS if problem.has_form else NUM_SWEEPS_BY_FIELD
        num_sweeps = max(MIN_SWEEPS, min(most, NODE_SWEEPS // max(1, num_nodes)))
    return Schedule(num_sweeps, problem.annealing.temperature)


def schedule_for_samples(problem: Problem, num_nodes: int, num_sweeps: int | None = None) -> Schedule:
    """The same for samples of a model, which are near a minimum.

    >>> from diffuco.problems import get_problem
    >>> schedule_for_samples(get_problem("mis"), 200), schedule_for_samples(get_problem("mis"), 1000)
    (Schedule(num_sweeps=1000, temperature=0.2), Schedule(num_sweeps=1000, temperature=0.1))
    """
    schedule = schedule_for(problem, num_nodes, num_sweeps)
    return replace(schedule, temperature=schedule.temperature / 2) if num_nodes >= COOL_NODES else schedule


def anneal(
    problem: Problem, batch: Batch, states: Tensor, schedule: Schedule, *, seed: int = 0, heat: Tensor | None = None
) -> Tensor:
    """The best state that a chain from each state sees; padding gets 0. [N, S] -> [N, S].

    The temperature falls as `cooling` and `cooling_power` say. With `heat` [S], chains have so many times the
    temperature.

    >>> from diffuco.graphs.batch import make_batch
    >>> from diffuco.graphs.graph import Graph
    >>> from diffuco.problems import get_problem
    >>> path = make_batch([Graph.from_edges([(0, 1), (1, 2)])])
    >>> middle = torch.tensor([[0.0], [1.0], [0.0]])
    >>> anneal(get_problem("mis"), path, middle, Schedule(20, 0.5)).ravel().tolist()
    [1.0, 0.0, 1.0]
    """
    if schedule.num_sweeps < 0 or not schedule.temperature > 0:
        raise InputError(f"{schedule}; give 0 sweeps or more and a temperature above 0")
    states = without_padding(batch, states)
    if not states.numel() or not schedule.num_sweeps:
        return states
    left = cooling(schedule.num_sweeps, problem.annealing.floor, schedule.span)
    power = cooling_power(problem, batch)
    first = schedule.temperature * temperature_unit(problem, batch) * power.clamp(max=HOTTER)
    temperatures = first * left.to(batch.device)[:, None] ** power  # [K, B]
    temperatures = temperatures[..., None] * (temperatures.new_ones(1) if heat is None else heat)  # [K, B, C]
    form = problem.form(with_float64_degrees(batch))
    if form is None:
        return without_padding(batch, anneal_by_field(problem, batch, states, temperatures, seed=seed))
    if form.unit is not None:
        temperatures = temperatures / form.unit[:, None]
    if isinstance(form, CoverForm):
        adjacency = adjacency_of(batch, weighted=False)
        found = ops.anneal_cover(
            states, adjacency, penalty=form.penalty, temperatures=temperatures, seed=seed, costs=form.costs
        )
    else:
        adjacency = adjacency_of(form.edges or batch, weighted=form.edges is not None)
        found = ops.anneal_quadratic(
            states,
            adjacency,
            linear=form.linear,
            edge=form.edge,
            pair=form.pair,
            temperatures=temperatures,
            seed=seed,
        )
    return without_padding(batch, found).contiguous()


def cooling(num_sweeps: int, floor: float, span: tuple[float, float] = (1.0, 0.0)) -> Tensor:
    """The share of the first temperature that each sweep has. [K].

    It falls linearly to 0, or to a floor from which only the last sweeps go on to 0.

    >>> cooling(4, 0.0).tolist(), cooling(4, 0.5).tolist()
    ([1.0, 0.75, 0.5, 0.25], [1.0, 0.875, 0.75, 0.625])
    >>> cooling(2, 0.0, (0.5, 0.0)).tolist()
    [0.5, 0.25]
    """
    before, after = span
    left = before - (before - after) * torch.arange(num_sweeps, dtype=torch.float64) / num_sweeps
    return left if not floor else (floor + (1 - floor) * left) * (left / LAST_SWEEPS).clamp(max=1)


def anneal_by_field(problem: Problem, batch: Batch, states: Tensor, temperatures: Tensor, *, seed: int) -> Tensor:
    """The best state that a chain from each state sees, for a problem that states no form. [N, S], [K, B, C] -> [N, S].

    In a sweep every node is asked once whether to flip, in random groups of nodes that are asked at the same time; the
    local field says by how much each flip would change the energy.
    """
    generator = torch.Generator(batch.device).manual_seed(seed % 2**63)
    x, best = states, states
    lowest = torch.full_like(problem.energy(batch, states), torch.inf)
    for cooled in temperatures.to(states.dtype):
        temperature = batch.spread(cooled).clamp(min=1e-9)
        groups = torch.randint(NUM_GROUPS, (batch.num_rows, 1), generator=generator, device=batch.device)
        for group in range(NUM_GROUPS):
            energy, field = energy_and_field(problem, batch, x)
            best, lowest = torch.where(batch.spread(energy < lowest), x, best), torch.minimum(energy, lowest)
            chance = torch.sigmoid((2 * x - 1) * field / temperature)
            uniform = torch.rand(x.shape, generator=generator, device=batch.device)
            x = torch.where((groups == group) & (uniform < chance), 1 - x, x)
    return torch.where(batch.spread(problem.energy(batch, x) < lowest), x, best)


def refine(problem: Problem, batch: Batch, states: Tensor, schedule: Schedule, *, seed: int = 0) -> Tensor:
    """Annealed states made feasible, none of higher energy than before. [N, S] -> [N, S]."""
    return conditional_expectation(problem, batch, anneal(problem, batch, states, schedule, seed=seed))


def temperature_unit(problem: Problem, batch: Batch) -> Tensor:
    """The energy that temperatures are given in. [B].

    Where edges have weights, or could have, it is what a node with random neighbours gains by a flip: the root of its
    sum of squared weights, in the mean over ends of edges. So a cut of degrees near 50 starts three times as hot as one
    of degrees near 5, and hubs, which freeze first, count as often as they have neighbours. For other problems it is a
    typical weight, or 1 without weights.
    """
    if not problem.uses_edge_weights:
        return weight_scale(problem, batch)
    squares = _squared_gains(problem, batch)
    sums = batch.graph_sum(torch.cat([squares.square(), squares], dim=1))
    return (sums[:, 0] / sums[:, 1].clamp(min=1e-12)).sqrt().clamp(min=1e-6)


def cooling_power(problem: Problem, batch: Batch) -> Tensor:
    """The power with which temperatures fall: 1, which is linear, or more on large graphs with hubs. [B].

    Hubs set the first temperature and freeze early, so a linear fall leaves little time for all other nodes. With this
    power, the unit of temperature falls to what an average node with neighbours gains by a flip in half of the sweeps.
    """
    if not problem.uses_edge_weights:
        return torch.ones(batch.num_graphs, device=batch.device)
    squares = _squared_gains(problem, batch)
    sums = batch.graph_sum(torch.cat([squares, (squares > 0).to(squares.dtype)], dim=1))
    gain = (sums[:, 0] / sums[:, 1].clamp(min=1)).clamp(min=1e-12).sqrt()
    power = (temperature_unit(problem, batch) / gain).log2().clamp(min=1.0, max=MAX_POWER)
    return torch.where(batch.sizes >= HUB_NODES, power, 1.0)


def _squared_gains(problem: Problem, batch: Batch) -> Tensor:
    """The square of what each node gains by a flip if its neighbours are random. [N, 1]."""
    squares = batch.squared_weight_sum()[:, None]
    return squares + batch.node_weights_or(0.0)[:, None].square() if problem.uses_node_weights else squares


def weight_scale(problem: Problem, batch: Batch) -> Tensor:
    """1, or a typical weight where there are weights. [B].

    A typical weight is the root of the mean square over what the problem weighs: edges, nodes or, for QUBOs, both.
    """
    if problem.uses_edge_weights:
        squares, counts = batch.squared_weight_sum()[:, None] / 2, batch.degrees[:, None] / 2
        if problem.uses_node_weights:
            squares, counts = squares + batch.node_weights_or(0.0)[:, None].square(), counts + 1
        mean = batch.graph_sum(squares) / batch.graph_sum(counts).clamp(min=1)
        return mean.sqrt().clamp(min=1e-6)[:, 0]
    if batch.heaviest is None or batch.relative_weights is None or not problem.uses_node_weights:
        return torch.ones(batch.num_graphs, device=batch.device)
    return batch.heaviest * batch.graph_mean(batch.relative_weights[:, None].square()).sqrt().clamp(min=1e-6)[:, 0]
