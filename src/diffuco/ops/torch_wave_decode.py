"""Conditional Expectation of large sparse graphs in waves: nodes that do not depend on each other are decided together.

`numba_decode` decides one node after the other, in order of falling probability. A decision depends on earlier nodes
nearby alone, so all nodes whose earlier ones are decided can be decided at once, with the same result. Random orders of
sparse graphs take tens of waves, and every edge is looked at a few times in all, so a GPU needs milliseconds where the
loop takes a second. Tokens hold one node. The reference is `numba_decode`.

States of a mesh may take as many waves as a side of it has nodes: nodes with the same state come in the order of their
rows. Then nothing is decoded here, and the loop is faster.

Legend: N rows of all graphs, S samples per graph, E directed edges. Samples are decoded as copies of the graphs, so
there are N * S nodes; the copy of row i in sample s is node s * N + i.
"""

import torch
from torch import Tensor

from diffuco.ops.adjacency import Copies, CoverCosts, CsrAdjacency, ranges
from diffuco.ops.torch_decode import SMALLEST_FREE, TIE, fixed_point_scale

ENTRIES_AT_ONCE = 2**24
"""Directed edges and nodes, times samples, that are decoded together; more samples are decoded in parts."""
WAVES, COPIES_PER_WAVE = 200, 4000
"""So many waves are worth it, and one more for so many copies: a wave takes a GPU as long as the loop takes for those.
Random orders of a million nodes with hubs take up to 300."""
BYTES_PER_ENTRY = 100
"""What decoding a cover holds of each at its peak: ten numbers of 64 bits, and what sorting needs."""


def decode_quadratic(probs: Tensor, adjacency: CsrAdjacency, linear: Tensor, edge: float) -> Tensor | None:
    """States that minimise a quadratic energy node by node. Reference: `numba_decode`. [N, S] -> [N, S], float64.

    A node waits for its neighbours that come earlier. None: there are too many waves.
    """
    lists = Copies(adjacency, probs.shape[1])
    values = probs.T.double().reshape(-1)
    ranks = _ranks(probs)
    fields_without = linear.double().repeat(probs.shape[1])
    couplings = edge * (torch.ones_like(adjacency.indices) if adjacency.weights is None else adjacency.weights).double()
    everyone = torch.arange(len(values), device=values.device)
    waits_for = torch.zeros_like(everyone)
    owners, neighbors, _ = lists.of(everyone)
    waits_for.index_add_(0, owners, (ranks[neighbors] < ranks[owners]).long())
    wave, num_waves = (waits_for == 0).nonzero()[:, 0], 0
    while len(wave):
        num_waves += 1
        if num_waves > WAVES + len(values) / COPIES_PER_WAVE:
            return None
        owners, neighbors, edges = lists.of(wave)
        sums = torch.zeros(len(wave), dtype=torch.float64, device=values.device)
        sums.index_add_(0, lists.positions(wave), couplings[edges] * values[neighbors])
        values[wave] = (fields_without[wave] + sums < -TIE).double()
        later = neighbors[ranks[neighbors] > ranks[owners]]
        waits_for.index_add_(0, later, torch.full_like(later, -1))
        wave = later[waits_for[later] == 0].unique()  # type: ignore[no-untyped-call]
    return values.view(probs.shape[1], -1).T


def decode_cover(
    probs: Tensor, adjacency: CsrAdjacency, penalty: float, costs: CoverCosts | None = None
) -> Tensor | None:
    """States that minimise a cover energy node by node. Reference: `numba_decode`. [N, S] -> [N, S], float64.

    Each node has a queue of those that can cover it, itself and its neighbours, by rank. A node is decided when it is
    the first in every queue that it stands in, save those of nodes that are covered already. None: there are too many
    waves.
    """
    num_samples, num_rows = probs.shape[1], len(probs)
    lists = Copies(adjacency, num_samples)
    ranks = _ranks(probs)
    everyone = torch.arange(num_rows * num_samples, device=probs.device)
    owners, neighbors, _ = lists.of(everyone)
    queues, members = torch.cat([owners, everyone]), torch.cat([neighbors, everyone])
    order = (queues * len(everyone) + ranks[members]).argsort()
    queues, members = queues[order], members[order]
    del order, owners, neighbors
    lengths = lists.lengths + 1
    ends = lengths.cumsum(0)
    firsts = ends - lengths

    # The chance that nobody later in the queue covers its owner: sums of logarithms as integers, hence exact.
    scale = fixed_point_scale(int(lengths.max()) if len(lengths) else 1)
    values = probs.T.double().reshape(-1)
    log_free = torch.round(scale * torch.clamp(1 - values, min=SMALLEST_FREE).log()).long()
    before = log_free[members].cumsum(0)  # sums may overflow, their differences do not
    after = before[ends[queues] - 1] - before
    chances = torch.exp(after.double() / scale)
    if costs is not None:
        chances *= costs.uncovered.double().repeat(num_samples)[queues]
    own = torch.ones_like(values) if costs is None else costs.chosen.double().repeat(num_samples)

    # Where each node stands: its places in the queues of others and in its own.
    # It stands in as many as its own queue has members, so both lists have the same bounds.
    places = members.argsort(stable=True)
    covered = torch.zeros(len(everyone), dtype=torch.bool, device=probs.device)
    heads = firsts.clone()
    waits_for = lengths.clone()
    opened = members[heads]
    waits_for.index_add_(0, opened, torch.full_like(opened, -1))
    wave, num_waves = (waits_for == 0).nonzero()[:, 0], 0
    while len(wave):
        num_waves += 1
        if num_waves > WAVES + len(values) / COPIES_PER_WAVE:
            return None
        at = ranges(firsts[wave], lengths[wave])
        position = torch.arange(len(wave), device=wave.device).repeat_interleave(lengths[wave], output_size=len(at))
        here = places[at]
        queue = queues[here]
        live = ~covered[queue]
        uncovered = torch.zeros(len(wave), dtype=torch.float64, device=wave.device)
        uncovered.index_add_(0, position[live], chances[here[live]])
        chosen = penalty * uncovered > own[wave] + TIE
        values[wave] = chosen.double()
        # Those who waited for a queue that is now settled stop waiting; in the others the next one moves up.
        settled = queue[live & chosen[position]]
        moved = queue[live & ~chosen[position]]
        covered[settled] = True
        passed = ranges(heads[settled] + 1, ends[settled] - heads[settled] - 1)
        heads[moved] += 1
        moved = moved[heads[moved] < ends[moved]]
        freed = torch.cat([members[passed], members[heads[moved]]])
        waits_for.index_add_(0, freed, torch.full_like(freed, -1))
        wave = freed[waits_for[freed] == 0].unique()  # type: ignore[no-untyped-call]
    return values.view(num_samples, -1).T


def _ranks(probs: Tensor) -> Tensor:
    """Places in the order of falling probability, ties by row. Only nodes of one copy are compared. [N * S]."""
    order = probs.T.double().argsort(dim=1, descending=True, stable=True)  # [S, N]
    ranks = torch.empty_like(order)
    ranks.scatter_(1, order, torch.arange(len(probs), device=probs.device).expand_as(order))
    return ranks.reshape(-1)
