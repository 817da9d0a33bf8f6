"""Greedy rules: in each step the node that looks best by its degree and weight, never taken back; ties are random."""

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph
from diffuco.problems.linear_model import node_costs

States = NDArray[np.bool_]
Rng = np.random.Generator
FREE = 1e100
"""How much a node that weighs nothing is preferred."""


def independent_set(graph: Graph, rng: Rng) -> States:
    """Take the node that weighs most for itself and its neighbours left, drop those, repeat."""
    neighbors, weights = _neighbors(graph), node_costs(graph).tolist()
    degrees: list[int] = graph.degrees.tolist()
    chosen, is_left = np.zeros(graph.num_nodes, dtype=np.bool_), [True] * graph.num_nodes

    def key(node: int) -> float:
        return -float(weights[node]) / (degrees[node] + 1)

    queue = _Queue([key(node) for node in range(graph.num_nodes)], rng)
    while (node := queue.pop(lambda node: key(node) if is_left[node] else None)) is not None:
        chosen[node], is_left[node] = True, False
        dropped = [other for other in neighbors[node] if is_left[other]]
        for other in dropped:
            is_left[other] = False
        for other in dropped:
            for third in neighbors[other]:
                if is_left[third]:
                    degrees[third] -= 1
                    queue.push(third, key(third))
    return chosen


def vertex_cover(graph: Graph, rng: Rng) -> States:
    """Take the node with the most uncovered edges for its weight until none is left."""
    neighbors, uncovered, weights = _neighbors(graph), graph.degrees.tolist(), node_costs(graph).tolist()
    chosen = np.zeros(graph.num_nodes, dtype=np.bool_)

    def key(node: int) -> float:
        return -_per_weight(uncovered[node], weights[node])

    queue = _Queue([key(node) for node in range(graph.num_nodes)], rng)
    while (node := queue.pop(lambda node: None if chosen[node] or not uncovered[node] else key(node))) is not None:
        chosen[node] = True
        for other in neighbors[node]:
            if not chosen[other]:
                uncovered[other] -= 1
                queue.push(other, key(other))
    return chosen


def clique(graph: Graph, rng: Rng) -> States:
    """Take the candidate that weighs most with its neighbours among them; candidates are adjacent to all taken."""
    targets, weights = graph.csr.indices, node_costs(graph)
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
    neighbors, gains, weights = _neighbors(graph), (graph.degrees + 1).tolist(), node_costs(graph).tolist()
    chosen, is_dominated = np.zeros(graph.num_nodes, dtype=np.bool_), [False] * graph.num_nodes

    def key(node: int) -> float:
        return -_per_weight(gains[node], weights[node])

    queue = _Queue([key(node) for node in range(graph.num_nodes)], rng)
    while (node := queue.pop(lambda node: key(node) if gains[node] else None)) is not None:
        chosen[node] = True
        for other in (node, *neighbors[node]):
            if not is_dominated[other]:
                is_dominated[other] = True
                for third in (other, *neighbors[other]):
                    gains[third] -= 1
                    queue.push(third, key(third))
    return chosen


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
    field = np.zeros(graph.num_nodes) if graph.node_weights is None else graph.node_weights.copy()
    while True:
        changes = np.where(chosen, -field, field)
        node = int(changes.argmin())
        # Rounding errors of the fields must not look like gains for ever.
        if changes[node] > -1e-9:
            return chosen
        row = slice(indptr[node], indptr[node + 1])
        field[indices[row]] += np.where(chosen[node], -weights[row], weights[row])
        chosen[node] = not chosen[node]


class _Queue:
    """Nodes by rising key; old entries stay until they come up and are then seen to be out of date."""

    def __init__(self, keys: list[float], rng: Rng) -> None:
        self.rank: list[int] = rng.permutation(len(keys)).tolist()
        self.entries = [(key, self.rank[node], node) for node, key in enumerate(keys)]
        heapq.heapify(self.entries)

    def push(self, node: int, key: float) -> None:
        heapq.heappush(self.entries, (key, self.rank[node], node))

    def pop(self, key_of: Callable[[int], float | None]) -> int | None:
        """The node of lowest key; `key_of` gives a node's key now, None for one that is out."""
        while self.entries:
            key, _, node = heapq.heappop(self.entries)
            if key_of(node) == key:
                return node
        return None


def _per_weight(count: int, weight: float) -> float:
    """How much a node gains for its weight; of those that weigh nothing, the most useful come first."""
    return count / weight if weight else count * FREE


def _neighbors(graph: Graph) -> list[list[int]]:
    indptr, indices, _ = graph.csr
    return [part.tolist() for part in np.split(indices, indptr[1:-1])] if graph.num_nodes else []
