"""Greedy rules: in each step the node that looks best by its degree and weight, never taken back; ties are random."""

import heapq
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph

States = NDArray[np.bool_]
Rng = np.random.Generator
Ints = Sequence[int] | NDArray[np.int64]
Floats = Sequence[float] | NDArray[np.float64]
Rule = Callable[[Ints, Ints, Floats, Ints], States]
COMPILED_NODES = 10_000
"""Smallest graphs whose loops are compiled: on others, loading them takes longer."""
ALMOST_FREE = 1e-100
"""What a node that weighs nothing counts as, so that of those the most useful comes first."""


def independent_set(graph: Graph, rng: Rng) -> States:
    """Take the node that weighs most for itself and its neighbours left, drop those, repeat."""
    return _chosen(_weighing_most, graph, graph.node_weights_or(1.0), rng)


def vertex_cover(graph: Graph, rng: Rng) -> States:
    """Take the node with the most uncovered edges for its weight until none is left."""
    return _chosen(_covering_most, graph, np.maximum(graph.node_weights_or(1.0), ALMOST_FREE), rng)


def clique(graph: Graph, rng: Rng) -> States:
    """Take the candidate that weighs most with its neighbours among them; candidates are adjacent to all taken."""
    targets, weights = graph.csr.indices, graph.node_weights_or(1.0)
    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    chosen, is_candidate = np.zeros(graph.num_nodes, dtype=np.bool_), np.ones(graph.num_nodes, dtype=np.bool_)
    rank = rng.permutation(graph.num_nodes)
    while is_candidate.any():
        inside = is_candidate[sources] & is_candidate[targets]
        sources, targets = sources[inside], targets[inside]
        around = weights + np.bincount(sources, weights[targets], minlength=graph.num_nodes)
        candidates = np.flatnonzero(is_candidate)
        node = candidates[np.lexsort((rank[candidates], -around[candidates]))[0]]
        chosen[node] = True
        is_candidate[:] = False
        is_candidate[targets[sources == node]] = True
    return chosen


def dominating_set(graph: Graph, rng: Rng) -> States:
    """Take the node that dominates the most nodes not dominated so far for its weight."""
    return _chosen(_dominating_most, graph, np.maximum(graph.node_weights_or(1.0), ALMOST_FREE), rng)


def cut(graph: Graph, rng: Rng) -> States:
    """Place the nodes in order of falling weighted degree, each on the side that cuts more to those placed before."""
    indptr, indices, weights = graph.csr
    total = np.bincount(np.repeat(np.arange(graph.num_nodes), graph.degrees), np.abs(weights), graph.num_nodes)
    side = np.zeros(graph.num_nodes)  # -1, 1, or 0 while not placed
    for node in np.lexsort((rng.permutation(graph.num_nodes), -total)).tolist():
        row = slice(indptr[node], indptr[node + 1])
        side[node] = -1.0 if weights[row] @ side[indices[row]] > 0 else 1.0
    return side > 0


def qubo(graph: Graph, rng: Rng) -> States:
    """From all zeros, flip the variable that lowers the value most, until none does."""
    indptr, indices, weights = graph.csr
    chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
    field = graph.node_weights_or(0.0).copy()
    while True:
        changes = np.where(chosen, -field, field)
        node = int(changes.argmin())
        # Rounding errors of the fields must not look like gains for ever.
        if changes[node] > -1e-9:
            return chosen
        row = slice(indptr[node], indptr[node + 1])
        field[indices[row]] += np.where(chosen[node], -weights[row], weights[row])
        chosen[node] = not chosen[node]


def _chosen(rule: Rule, graph: Graph, weights: NDArray[np.float64], rng: Rng) -> States:
    indptr, indices, _ = graph.csr
    given = (indptr, indices, weights, rng.permutation(graph.num_nodes))
    if graph.num_nodes < COMPILED_NODES:
        return rule(*(values.tolist() for values in given))
    return _compiled(rule)(*given)


@cache
def _compiled(rule: Rule) -> Rule:
    from diffuco.ops.compilation import compiled  # imported here: it takes a second

    return compiled(rule)


# The loops of three rules, which run as they are, on lists, or compiled, on arrays; so they call no function of ours. A
# heap has what each node is worth; entries stay until they come up and are then seen to be out of date. Of two equal
# nodes, that of lower rank is taken. What a node is worth rises in the first rule, and falls in the two others.


def _weighing_most(indptr: Ints, indices: Ints, weights: Floats, rank: Ints) -> States:
    chosen = np.zeros(len(rank), dtype=np.bool_)
    is_left = [True] * len(rank)
    shared_by = [indptr[node + 1] - indptr[node] + 1 for node in range(len(rank))]
    heap = [(-weights[node] / shared_by[node], rank[node], node) for node in range(len(rank))]
    heapq.heapify(heap)
    while heap:
        key, _, node = heapq.heappop(heap)
        if not is_left[node] or key != -weights[node] / shared_by[node]:
            continue
        chosen[node] = True
        is_left[node] = False
        dropped = [other for other in indices[indptr[node] : indptr[node + 1]] if is_left[other]]
        for other in dropped:
            is_left[other] = False
        for other in dropped:
            for third in indices[indptr[other] : indptr[other + 1]]:
                if is_left[third]:
                    shared_by[third] -= 1
                    heapq.heappush(heap, (-weights[third] / shared_by[third], rank[third], third))
    return chosen


def _covering_most(indptr: Ints, indices: Ints, weights: Floats, rank: Ints) -> States:
    chosen = np.zeros(len(rank), dtype=np.bool_)
    is_out = [False] * len(rank)
    uncovered = [indptr[node + 1] - indptr[node] for node in range(len(rank))]
    heap = [(-uncovered[node] / weights[node], rank[node], node) for node in range(len(rank))]
    heapq.heapify(heap)
    while heap:
        key, _, node = heapq.heappop(heap)
        if key != -uncovered[node] / weights[node]:
            heapq.heappush(heap, (-uncovered[node] / weights[node], rank[node], node))
        elif uncovered[node] > 0:
            chosen[node] = True
            is_out[node] = True
            for other in indices[indptr[node] : indptr[node + 1]]:
                if not is_out[other]:
                    uncovered[other] -= 1
    return chosen


def _dominating_most(indptr: Ints, indices: Ints, weights: Floats, rank: Ints) -> States:
    chosen = np.zeros(len(rank), dtype=np.bool_)
    is_dominated = [False] * len(rank)
    gains = [indptr[node + 1] - indptr[node] + 1 for node in range(len(rank))]
    heap = [(-gains[node] / weights[node], rank[node], node) for node in range(len(rank))]
    heapq.heapify(heap)
    while heap:
        key, _, node = heapq.heappop(heap)
        if key != -gains[node] / weights[node]:
            heapq.heappush(heap, (-gains[node] / weights[node], rank[node], node))
        elif gains[node] > 0:
            chosen[node] = True
            dominated = [other for other in indices[indptr[node] : indptr[node + 1]] if not is_dominated[other]]
            if not is_dominated[node]:
                dominated.append(node)
            for other in dominated:
                is_dominated[other] = True
                gains[other] -= 1
                for third in indices[indptr[other] : indptr[other + 1]]:
                    gains[third] -= 1
    return chosen
