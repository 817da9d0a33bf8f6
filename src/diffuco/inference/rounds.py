"""Which of several states to keep, part by part: what a round of noising and denoising ends with, and annealing, too.

Where two states of a graph differ, the nodes that differ fall into connected parts. Parts that share no term of the
energy can be decided one by one, so of each the better version is kept. On a large graph this matters: a round improves
some places and spoils others, and the sum says little. Where the energy connects everything, the graph is one part.

Legend: B graphs, N rows, S states per graph, M vertices.
"""

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch, SparseBatch
from diffuco.inference.decoding import with_float64_degrees
from diffuco.ops.adjacency import Copies, CsrAdjacency
from diffuco.ops.torch_decode import TIE
from diffuco.problems.base import CoverForm, Problem, QuadraticForm

PARTS_NODES = 2000
"""Smallest graphs of which annealing merges the parts of its chains."""


def better_parts(problem: Problem, batch: Batch, old: Tensor, new: Tensor) -> Tensor:
    """The states with the parts of `new` that have no higher energy than in `old`. [N, S] -> [N, S].

    >>> from diffuco.graphs.graph import Graph
    >>> from diffuco.problems import get_problem
    >>> path = SparseBatch.from_graphs([Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])])
    >>> old, new = torch.tensor([[0.0, 1, 0, 0, 1, 0]]).T, torch.tensor([[1.0, 0, 0, 0, 0, 0]]).T
    >>> better_parts(get_problem("mis"), path, old, new).ravel().tolist()
    [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    """
    if torch.equal(old, new):
        return old
    wide = with_float64_degrees(batch)
    form = problem.form(wide)
    if isinstance(batch, SparseBatch) and isinstance(form, CoverForm):
        taken = _better_covers(batch, form, old, new)
    elif isinstance(batch, SparseBatch) and isinstance(form, QuadraticForm) and not form.pair:
        middle = (old.double() + new) / 2  # a quadratic energy changes by the change of x times the field in the middle
        gains = (new - old) * problem.local_field(wide, middle)
        taken = _better_quadratic(batch, gains.T.reshape(-1), (old != new).T.reshape(-1)).view(old.shape[1], -1).T
    else:
        taken = batch.spread(problem.energy(batch, new) <= problem.energy(batch, old) + TIE)
    return torch.where(taken, new, old)


def has_parts(batch: Batch) -> bool:
    """Whether graphs are large enough for parts to matter: chains on small ones find as much as there is."""
    return isinstance(batch, SparseBatch) and batch.largest >= PARTS_NODES


def best_parts(problem: Problem, batch: Batch, states: Tensor) -> Tensor:
    """The states of each graph by their energy, the first with the parts of the others that are better. [N, S].

    Chains of annealing find different places of a large graph with short cycles best; elsewhere it changes nothing.
    """
    order = problem.energy(batch, states).argsort(1)
    states = states.gather(1, batch.spread(order))
    best = states[:, :1]
    for column in range(1, states.shape[1]):
        other = states[:, column : column + 1]
        if problem.sides_are_alike:
            is_far = batch.graph_mean((other != best).to(best.dtype)) > 0.5
            other = torch.where(batch.spread(is_far), 1 - other, other)
        best = better_parts(problem, batch, best, other)
    return torch.cat([best, states[:, 1:]], dim=1)


def _better_quadratic(batch: SparseBatch, gains: Tensor, differs: Tensor) -> Tensor:
    """Which nodes of all copies take their new state: nodes that differ and touch are in one part. [S * N]."""
    nodes = differs.nonzero()[:, 0]
    numbers = torch.zeros_like(differs, dtype=torch.int64)
    numbers[nodes] = torch.arange(len(nodes), device=nodes.device)
    owners, neighbors, _ = _copies(batch, len(differs) // batch.num_rows).of(nodes)
    within = differs[neighbors]
    parts = components(len(nodes), numbers[owners[within]], numbers[neighbors[within]])
    taken = torch.zeros_like(differs)
    taken[nodes] = _sums(gains[nodes], parts)[parts] <= TIE
    return taken


def _better_covers(batch: SparseBatch, form: CoverForm, old: Tensor, new: Tensor) -> Tensor:
    """Which nodes take their new state: nodes that differ and can cover the same node are in one part. [N, S]."""
    num_samples = old.shape[1]
    ones = torch.ones(batch.num_rows, device=batch.device)
    chosen_costs, uncovered_costs = (cost[:, None].double() for cost in form.costs or (ones, ones))

    def uncovered(x: Tensor) -> Tensor:
        return ((x + batch.neighbor_sum(x)) < 0.5).double()

    def flat(values: Tensor) -> Tensor:
        return values.T.reshape(-1)

    chosen_gain = flat(chosen_costs * (new - old))
    cover_gain = flat(form.penalty * uncovered_costs * (uncovered(new) - uncovered(old)))
    differs = flat(old != new)
    nodes = differs.nonzero()[:, 0]
    owners, covered, _ = _copies(batch, num_samples).of(nodes)
    owners, covered = torch.cat([owners, nodes]), torch.cat([covered, nodes])
    # Vertices are the nodes that may be covered and, after them, the nodes that differ.
    parts = components(2 * len(differs), covered, len(differs) + owners)
    touched = torch.zeros_like(differs).index_fill_(0, covered, True)
    gains = torch.cat([torch.where(touched, cover_gain, 0.0), torch.where(differs, chosen_gain, 0.0)])
    taken = differs & (_sums(gains, parts)[parts[len(differs) :]] <= TIE)
    return taken.view(num_samples, -1).T


def _copies(batch: SparseBatch, num_samples: int) -> Copies:
    adjacency = CsrAdjacency(batch.row_starts, batch.sizes, batch.indptr, batch.indices, None)
    return Copies(adjacency, num_samples)


def components(num_vertices: int, first: Tensor, second: Tensor) -> Tensor:
    """The smallest vertex of each vertex's connected component, given both ends of every edge. [M].

    >>> components(5, torch.tensor([3, 4, 1]), torch.tensor([4, 1, 3])).tolist()
    [0, 1, 2, 1, 1]
    """
    if first.device.type != "cpu":
        return spread_labels(num_vertices, first, second)
    # Imported here: numba would double the time the package takes to import.
    from diffuco.ops.numba_components import smallest_connected

    return torch.from_numpy(smallest_connected(num_vertices, first.numpy(), second.numpy()))


def spread_labels(num_vertices: int, first: Tensor, second: Tensor) -> Tensor:
    """The same, for a GPU. [M].

    Of two labels that meet at an edge the higher becomes the lower, and all labels jump to the label of their label, so
    there are few rounds even on long paths.
    """
    labels = torch.arange(num_vertices, device=first.device)
    while True:
        lower, higher = torch.aminmax(torch.stack([labels[first], labels[second]]), dim=0)
        meet = lower != higher  # other edges are done, and many that write to one label would wait for each other
        if not meet.any():
            return labels
        first, second = first[meet], second[meet]
        labels.scatter_reduce_(0, higher[meet], lower[meet], "amin")
        while not torch.equal(labels, jumped := labels[labels]):
            labels = jumped


def _sums(values: Tensor, parts: Tensor) -> Tensor:
    return torch.zeros_like(values).index_add_(0, parts, values)
