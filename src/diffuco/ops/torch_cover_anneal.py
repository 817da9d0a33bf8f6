"""Simulated annealing of covers of large sparse graphs in plain torch: groups of nodes are asked at the same time.

Two nodes that cover the same node depend on each other, and a hub has too many such pairs for colours to help. So nodes
are in a few random groups, and a sweep asks one group after the other. Nodes of a group that want to flip may do harm
together that none does alone: several may all be chosen to cover the same node, or the only two that cover a node may
both be left out. Such a node lets one of them flip, that with the largest random number. A node flips if every node
that it covers lets it. Three nodes may still leave a fourth uncovered at once, which is rare; so energies are computed
anew after every sweep. With one node per group, the states are those of `numba_anneal` on the graph whose nodes are
numbered by group. This is the reference for `triton_cover_anneal`.

Legend: N rows of all graphs, n nodes of one graph, S chains per graph, K sweeps, E pairs of a node of a group and a
node that it covers.
"""

from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from diffuco.ops import reference
from diffuco.ops.adjacency import CoverCosts, CsrAdjacency
from diffuco.ops.classes import Chains, ClassedGraph, Classes, anneal_by_class, known_classes, rows_of
from diffuco.ops.torch_anneal import GOLDEN, LEVEL_BITS, TIE, exponentials, mix, random_bits

NUM_GROUPS = 4
"""With more, a sweep finds more and takes longer: from 2 to 8 groups find about as much in the same time."""
HUB_DEGREE = 128
"""Nodes with more neighbours are a group of their own: on a GPU, each group that has some takes longer."""


def anneal_cover(
    states: Tensor,
    adjacency: CsrAdjacency,
    penalty: float,
    temperatures: Tensor,
    seed: int,
    costs: CoverCosts | None = None,
) -> Tensor:
    """Anneal H(X) = sum_i chosen_i x_i + penalty * sum_i uncovered_i prod_(j in i and its neighbours) (1 - x_j).

    Without `costs`, nodes cost 1. `temperatures` [K, B, C] are those of `torch_anneal`. [N, S] -> [N, S].
    """
    anneal = partial(anneal_graph, penalty, costs)
    return anneal_by_class(states, adjacency, group_classes(adjacency), temperatures, seed, anneal)


def anneal_graph(
    penalty: float,
    costs: CoverCosts | None,
    states: Tensor,
    graph: ClassedGraph,
    temperatures: Tensor,
    keys: Tensor,
) -> Chains:
    """Anneal the chains of one graph. [n, S], [K, C], [S] -> [n, S], [S]."""
    x, covers = states.double(), closed(graph.adjacency)
    ones = x.new_ones(len(x))
    chosen, uncovered = (ones, ones) if costs is None else (cost[graph.rows].double() for cost in costs)
    covering = reference.csr_neighbor_sum(x, covers.indptr, covers.indices, None)
    groups = [(slice(*span), rows_of(covers, *span)) for span in pairwise(graph.starts)]

    def energy() -> Tensor:
        return chosen @ x + penalty * (uncovered @ (covering == 0).double())

    best, start = x.clone(), energy()
    lowest, table = start, exponentials(x.device).double()
    for sweep, temperature in enumerate(temperatures):
        numbers = random_bits(keys[None], sweep, len(x))[0]
        thresholds = temperature * table[numbers >> (32 - LEVEL_BITS)]
        for part, rows in groups:
            lengths = rows.indptr.diff()
            owners = torch.arange(len(lengths), device=x.device).repeat_interleave(lengths)  # [E]
            sign, own, there = 1 - 2 * x[part], x[part][owners], covering[rows.indices]
            is_alone = (there == own) * uncovered[rows.indices, None]
            needs = reference.segment_sum(is_alone, lengths)
            wants = sign * (chosen[part, None] - penalty * needs) < thresholds[part]
            claims = numbers[part][owners].where(wants[owners] & (there == 2 * own), -1)  # [E, S]
            places = rows.indices[:, None].expand_as(claims)
            largest = torch.full_like(numbers, -1).scatter_reduce(0, places, claims, "amax")
            lost = reference.segment_sum(((claims >= 0) & (claims < largest[rows.indices])).double(), lengths)
            flips = sign * (wants & (lost == 0))
            x[part] += flips
            covering.index_add_(0, rows.indices, flips[owners])
        is_better = energy() < lowest - TIE
        best, lowest = best.where(~is_better, x), lowest.where(~is_better, energy())
    return Chains(best, lowest - start)


def closed(adjacency: CsrAdjacency) -> CsrAdjacency:
    """The rows of one graph, each with itself as its first neighbour, and without weights.

    >>> path = CsrAdjacency(*map(torch.tensor, ([0], [3], [0, 1, 3, 4], [1, 0, 2, 1])), None)  # 0 - 1 - 2
    >>> closed(path).indptr.tolist(), closed(path).indices.tolist()
    ([0, 2, 5, 7], [0, 1, 1, 0, 2, 2, 1])
    """
    nodes = torch.arange(len(adjacency.indptr) - 1, device=adjacency.indices.device)
    indptr = adjacency.indptr + torch.arange(len(adjacency.indptr), device=nodes.device)
    indices = torch.empty(int(indptr[-1]), dtype=adjacency.indices.dtype, device=nodes.device)
    is_own = torch.zeros(len(indices), dtype=torch.bool, device=nodes.device)
    is_own[indptr[:-1]] = True
    indices[is_own], indices[~is_own] = nodes.to(indices.dtype), adjacency.indices
    return CsrAdjacency(adjacency.row_starts, adjacency.sizes, indptr, indices, None)


def group_classes(adjacency: CsrAdjacency) -> Classes:
    """The groups of all graphs."""
    return known_classes(adjacency, random_groups)


def random_groups(adjacency: CsrAdjacency) -> Tensor:
    """The group of each row. [N]."""
    degrees = adjacency.indptr.diff().cpu()
    return (mix(torch.arange(len(degrees)) * GOLDEN) % NUM_GROUPS).where(degrees <= HUB_DEGREE, NUM_GROUPS)
