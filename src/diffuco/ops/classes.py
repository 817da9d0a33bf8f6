"""Nodes of large sparse graphs in classes: a sweep asks one class after the other, and all of its nodes at once.

Legend: B graphs, N rows of all graphs, n nodes of one graph, S chains per graph, K sweeps.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from diffuco.ops.adjacency import CsrAdjacency
from diffuco.ops.torch_anneal import chain_keys


class ClassedGraph(NamedTuple):
    """One graph whose nodes are numbered by class, in a class those of high degree first."""

    adjacency: CsrAdjacency
    starts: list[int]
    """First node of each class, and the number of nodes."""
    rows: Tensor
    """[n] where its nodes are in the batch."""


class Chains(NamedTuple):
    """What is known of the chains of one graph at the end."""

    best: Tensor
    """The best states at the end of a sweep [n, S]."""
    lowest: Tensor
    """Their energies less those of the start [S], float64."""


class Classes(NamedTuple):
    """Rows by graph, and in a graph by class."""

    order: Tensor
    """[N]"""
    spans: list[tuple[int, int, list[int]]]
    """For each graph where it begins and ends in `order`, and its classes' starts, counted from its beginning."""

    @property
    def most(self) -> int:
        """Classes of the graph that has the most."""
        return max((len(starts) - 1 for _, _, starts in self.spans), default=0)


_known: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""Classes of adjacencies in use, by their `indices`: rounds of annealing ask again and again."""


def known_classes(adjacency: CsrAdjacency, class_of_row: Callable[[CsrAdjacency], Tensor]) -> Classes:
    """The classes that a function tells, which is called once per adjacency."""
    if adjacency.indices not in _known:
        _known[adjacency.indices] = {}
    known: dict[object, Classes] = _known[adjacency.indices]
    if class_of_row not in known:
        known[class_of_row] = classes_of(adjacency, class_of_row(adjacency))
    return known[class_of_row]


def classes_of(adjacency: CsrAdjacency, class_of_row: Tensor) -> Classes:
    """The classes of all graphs, from that of each row [N]; in a class, rows of high degree come first.

    >>> path = CsrAdjacency(*map(torch.tensor, ([0], [3], [0, 1, 3, 4], [1, 0, 2, 1])), None)  # 0 - 1 - 2
    >>> classes_of(path, torch.tensor([1, 0, 1]))
    Classes(order=tensor([1, 0, 2]), spans=[(0, 3, [0, 1, 3])])
    """
    sizes, of_row = adjacency.sizes.cpu(), class_of_row.cpu()
    graphs = torch.arange(len(sizes)).repeat_interleave(sizes)
    order = adjacency.indptr.diff().cpu().argsort(descending=True, stable=True)
    for key in (of_row, graphs):  # the last one sorted by counts most
        order = order[key[order].argsort(stable=True)]
    spans, first = [], 0
    for size in sizes.tolist():
        counts = of_row[order[first : first + size]].bincount()
        spans.append((first, first + size, [0, *counts.cumsum(0).tolist()]))
        first += size
    return Classes(order.to(adjacency.indices.device), spans)


def anneal_by_class(
    states: Tensor,
    adjacency: CsrAdjacency,
    classes: Classes,
    temperatures: Tensor,
    seed: int,
    anneal: Callable[[Tensor, ClassedGraph, Tensor, Tensor], Chains],
) -> Tensor:
    """Run `anneal(states, graph, temperatures [K, C], keys [S])` for one graph after the other. [N, S] -> [N, S]."""
    annealed = states.clone()
    keys = chain_keys(seed, len(adjacency.sizes), states.shape[1], states.device)
    numbered = adjacency.reordered(classes.order)
    for number, (first, last, starts) in enumerate(classes.spans):
        if last == first or not states.shape[1]:
            continue
        rows = classes.order[first:last]
        of_graph = rows_of(numbered, first, last)
        graph = ClassedGraph(of_graph._replace(indices=of_graph.indices - first), starts, rows)
        chains = anneal(states[rows], graph, temperatures[:, number].double(), keys[number])
        annealed[rows] = chains.best.to(states.dtype)
    return annealed


def rows_of(adjacency: CsrAdjacency, first: int, last: int) -> CsrAdjacency:
    """Some rows, with neighbours as they are numbered."""
    begin, end = adjacency.indptr[first], adjacency.indptr[last]
    weights = None if adjacency.weights is None else adjacency.weights[begin:end]
    sizes = adjacency.sizes.new_tensor([last - first])
    indptr = adjacency.indptr[first : last + 1] - begin
    return CsrAdjacency(sizes.new_zeros(1), sizes, indptr, adjacency.indices[begin:end], weights)
