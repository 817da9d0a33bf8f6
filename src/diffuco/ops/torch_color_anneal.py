"""Simulated annealing of large sparse graphs in plain torch: nodes of one colour are asked at the same time.

No two neighbours have the same colour, so what one node of a colour does changes no other node's field. A sweep asks
one colour after the other, and gives the states of `numba_anneal` on the graph whose nodes are numbered by colour. This
is the reference for `triton_color_anneal`. Not for energies that couple all pairs, where no two nodes are independent,
nor for covers, where nodes at distance two are not independent either: a hub would need a colour for each neighbour.

Legend: B graphs, N rows of all graphs, n nodes of one graph, S chains per graph, K sweeps.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from diffuco.ops import reference
from diffuco.ops.adjacency import CsrAdjacency
from diffuco.ops.torch_anneal import TIE, chain_keys, exponentials, levels_of


class ColoredGraph(NamedTuple):
    """One graph whose nodes are numbered by colour, in a colour those of high degree first."""

    adjacency: CsrAdjacency
    linear: Tensor
    """[n], float64"""
    edge: float
    starts: list[int]
    """First node of each colour, and the number of nodes."""


class Chains(NamedTuple):
    """What is known of the chains of one graph at the end."""

    best: Tensor
    """The best states at the end of a sweep [n, S]."""
    lowest: Tensor
    """Their energies less those of the start [S], float64."""


def anneal_quadratic(
    states: Tensor, adjacency: CsrAdjacency, linear: Tensor, edge: float, temperatures: Tensor, seed: int
) -> Tensor:
    """Anneal H(X) = sum_i linear_i x_i + edge * sum_(i,j) w_ij x_i x_j. [N, S] -> [N, S].

    `temperatures` [K, B, C] are those of `torch_anneal`.
    """
    return anneal_by_color(states, adjacency, linear, edge, temperatures, seed, anneal_graph)


def anneal_by_color(
    states: Tensor,
    adjacency: CsrAdjacency,
    linear: Tensor,
    edge: float,
    temperatures: Tensor,
    seed: int,
    anneal: Callable[[Tensor, ColoredGraph, Tensor, Tensor], Chains],
) -> Tensor:
    """Run `anneal(states, graph, temperatures [K, C], keys [S])` for one graph after the other. [N, S] -> [N, S]."""
    annealed = states.clone()
    keys = chain_keys(seed, len(adjacency.sizes), states.shape[1], states.device)
    classes = color_classes(adjacency)
    numbered = adjacency.reordered(classes.order)
    for graph, (first, last, starts) in enumerate(classes.spans):
        if last == first or not states.shape[1]:
            continue
        order = classes.order[first:last]
        part = ColoredGraph(_one_graph(numbered, first, last), linear[order].double(), edge, starts)
        chains = anneal(states[order], part, temperatures[:, graph].double(), keys[graph])
        annealed[order] = chains.best.to(states.dtype)
    return annealed


def anneal_graph(states: Tensor, graph: ColoredGraph, temperatures: Tensor, keys: Tensor) -> Chains:
    """Anneal the chains of one graph. [n, S], [K, C], [S] -> [n, S], [S]."""
    x = states.double()
    best, energy = x.clone(), x.new_zeros(x.shape[1])
    lowest, table = energy, exponentials(x.device).double()
    classes = [(slice(*span), _rows(graph.adjacency, *span)) for span in pairwise(graph.starts)]
    for sweep, temperature in enumerate(temperatures):
        thresholds = temperature * table[levels_of(keys[None], sweep, len(x))[0]]
        for part, rows in classes:
            summed = reference.csr_neighbor_sum(x, rows.indptr, rows.indices, rows.weights)
            field = graph.linear[part, None] + graph.edge * summed
            sign = 1 - 2 * x[part]
            change = sign * field
            accepted = change < thresholds[part]
            x[part] += sign * accepted
            energy = energy + change.where(accepted, 0.0).sum(0)
        is_better = energy < lowest - TIE
        best, lowest = best.where(~is_better, x), lowest.where(~is_better, energy)
    return Chains(best, lowest)


class ColorClasses(NamedTuple):
    """Rows by graph, and in a graph by colour."""

    order: Tensor
    """[N]"""
    spans: list[tuple[int, int, list[int]]]
    """For each graph where it begins and ends in `order`, and its colours' starts, counted from its beginning."""

    @property
    def most_colors(self) -> int:
        """Colours of the graph that has the most."""
        return max((len(starts) - 1 for _, _, starts in self.spans), default=0)


_classes: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""What is known of adjacencies in use, by their `indices`: rounds of annealing ask again and again."""


def color_classes(adjacency: CsrAdjacency) -> ColorClasses:
    """The colour classes of all graphs; in a class, rows of high degree come first."""
    if adjacency.indices not in _classes:
        _classes[adjacency.indices] = _find_classes(adjacency)
    classes: ColorClasses = _classes[adjacency.indices]
    return classes


def _find_classes(adjacency: CsrAdjacency) -> ColorClasses:
    # Imported here: numba would double the time the package takes to import.
    from diffuco.ops.numba_coloring import greedy_colors

    colors, sizes = greedy_colors(adjacency), adjacency.sizes.cpu()
    degrees = adjacency.indptr.diff().cpu()
    graphs = torch.arange(len(sizes)).repeat_interleave(sizes)
    order = degrees.argsort(descending=True, stable=True)
    for key in (colors, graphs):  # the last one sorted by counts most
        order = order[key[order].argsort(stable=True)]
    spans, first = [], 0
    for size in sizes.tolist():
        counts = colors[order[first : first + size]].bincount()
        spans.append((first, first + size, [0, *counts.cumsum(0).tolist()]))
        first += size
    return ColorClasses(order.to(adjacency.indices.device), spans)


def _one_graph(adjacency: CsrAdjacency, first: int, last: int) -> CsrAdjacency:
    """The rows of one graph, numbered from 0."""
    row_starts, sizes, indptr, indices, weights = _rows(adjacency, first, last)
    return CsrAdjacency(row_starts, sizes, indptr, indices - first, weights)


def _rows(adjacency: CsrAdjacency, first: int, last: int) -> CsrAdjacency:
    """Some rows, with neighbours as they are numbered."""
    begin, end = adjacency.indptr[first], adjacency.indptr[last]
    weights = None if adjacency.weights is None else adjacency.weights[begin:end]
    sizes = adjacency.sizes.new_tensor([last - first])
    indptr = adjacency.indptr[first : last + 1] - begin
    return CsrAdjacency(sizes.new_zeros(1), sizes, indptr, adjacency.indices[begin:end], weights)
