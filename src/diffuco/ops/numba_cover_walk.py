"""Small vertex covers on the CPU: a compiled local search that exchanges one node of the cover after the other.

A cover that leaves some edges uncovered gives up a node and gets an end of an uncovered edge. Edges that stay uncovered
grow heavier, so that the search leaves what it cannot improve, and a node may come back only after a neighbour changed.
Once nothing is uncovered, the cover is kept and one node leaves for good (NuMVC, Cai et al. 2013). From many nodes, the
one to give up is the best of a few (Cai 2015).

Legend: N nodes, E edges, A = 2 E entries of the adjacency.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

Ints = NDArray[np.int64]

SCANNED = 2048
"""Covers up to this size are looked through for the node to give up; of a larger one, so many nodes are drawn:"""
DRAWN = 50
FORGET_AT = 0.5
"""Mean weight of an edge per node at which old weights fade."""
KEPT = 0.3
"""Share of a weight that is left then."""
IN_COVER, SCORE, MAY_JOIN, CHANGED, PLACE, BEST = range(6)
"""Columns of `Walk.nodes`: whether a node is in the cover; the weight of the edges that it would cover or uncover, the
latter negative; whether a neighbour changed since it left; the step of its last change; its place in `cover`; whether
it is in the best cover."""
ENDS, WEIGHT, WAITING = (0, 1), 2, 3
"""Columns of `Walk.edges`: both ends, the weight, the place in `uncovered`, or -1."""
COVER_SIZE, NUM_UNCOVERED, TOTAL_WEIGHT, STEP, LAST, BEST_SIZE = range(6)
"""Places in `Walk.counts`."""


class Walk(NamedTuple):
    """The state of a search."""

    indptr: Ints
    indices: Ints
    """Neighbours [A]."""
    numbers: Ints
    """The edge of every entry [A]."""
    nodes: Ints
    """[N, 6]."""
    edges: Ints
    """[E, 4]."""
    cover: Ints
    """The nodes of the cover, first in [N]."""
    uncovered: Ints
    """The uncovered edges, first in [E]."""
    counts: Ints
    random: NDArray[np.uint64]


def make_walk(indptr: Ints, indices: Ints, seed: int) -> Walk:
    """A search that starts from all nodes but those of a greedy independent set; the adjacency is symmetric."""
    num_nodes, num_edges = len(indptr) - 1, len(indices) // 2
    owners = np.repeat(np.arange(num_nodes), np.diff(indptr))
    lower, higher = np.minimum(owners, indices), np.maximum(owners, indices)
    numbers = np.empty(2 * num_edges, np.int64)
    numbers[np.lexsort((higher, lower))] = np.repeat(np.arange(num_edges), 2)
    edges = np.zeros((num_edges, 4), np.int64)
    edges[numbers, 0], edges[numbers, 1] = lower, higher
    edges[:, WEIGHT], edges[:, WAITING] = 1, -1
    nodes = np.zeros((num_nodes, 6), np.int64)
    nodes[:, IN_COVER] = nodes[:, MAY_JOIN] = nodes[:, BEST] = 1
    nodes[:, PLACE] = np.arange(num_nodes)
    walk = Walk(
        indptr=indptr.astype(np.int64),
        indices=indices.astype(np.int64),
        numbers=numbers,
        nodes=nodes,
        edges=edges,
        cover=np.arange(num_nodes),
        uncovered=np.zeros(num_edges, np.int64),
        counts=np.array([num_nodes, 0, num_edges, 0, -1, num_nodes]),
        random=np.random.default_rng(seed).integers(1, 2**63, 1, dtype=np.uint64),
    )
    leave_out(walk, np.argsort(np.diff(indptr), kind="stable"))
    return walk


@compiled
def leave_out(walk: Walk, order: Ints) -> None:
    """Take nodes out of the cover, in this order, as long as no edge is uncovered."""
    for node in order:
        is_free = True
        for entry in range(walk.indptr[node], walk.indptr[node + 1]):
            is_free &= walk.nodes[walk.indices[entry], IN_COVER] == 1
        if is_free:
            remove(walk, node)


@compiled
def take_steps(walk: Walk, num_steps: int) -> None:
    """Exchange so many nodes; the column `BEST` has the smallest cover yet."""
    nodes, edges, counts = walk.nodes, walk.edges, walk.counts
    for _ in range(num_steps):
        while counts[NUM_UNCOVERED] == 0:
            counts[BEST_SIZE] = counts[COVER_SIZE]
            nodes[:, BEST] = nodes[:, IN_COVER]
            if counts[COVER_SIZE] == 0:
                return
            remove(walk, cheapest(walk))
        counts[STEP] += 1
        if counts[COVER_SIZE]:
            node = cheapest(walk)
            remove(walk, node)
            nodes[node, MAY_JOIN] = 0
            nodes[node, CHANGED] = counts[STEP]
        edge = walk.uncovered[below(walk, counts[NUM_UNCOVERED])]
        node, other = edges[edge, 0], edges[edge, 1]
        if nodes[node, MAY_JOIN] == 0 or (nodes[other, MAY_JOIN] == 1 and is_before(nodes, other, node)):
            node = other
        add(walk, node)
        nodes[node, CHANGED] = counts[STEP]
        counts[LAST] = node
        for position in range(counts[NUM_UNCOVERED]):
            edge = walk.uncovered[position]
            edges[edge, WEIGHT] += 1
            nodes[edges[edge, 0], SCORE] += 1
            nodes[edges[edge, 1], SCORE] += 1
        counts[TOTAL_WEIGHT] += counts[NUM_UNCOVERED]
        if counts[TOTAL_WEIGHT] > FORGET_AT * len(nodes) * len(edges):
            forget(walk)


@compiled
def cheapest(walk: Walk) -> int:
    """The node of the cover whose edges weigh least without it, and of equals the one that changed first."""
    nodes, size = walk.nodes, walk.counts[COVER_SIZE]
    best = -1
    if size <= SCANNED:
        for position in range(size):
            node = walk.cover[position]
            if (best < 0 or is_before(nodes, node, best)) and node != walk.counts[LAST]:
                best = node
    else:
        for _ in range(DRAWN):
            node = walk.cover[below(walk, size)]
            if (best < 0 or is_before(nodes, node, best)) and node != walk.counts[LAST]:
                best = node
    return best if best >= 0 else walk.cover[0]


@compiled
def is_before(nodes: Ints, node: int, other: int) -> bool:
    """Whether a node has the higher score, or the same and changed earlier."""
    if nodes[node, SCORE] != nodes[other, SCORE]:
        return bool(nodes[node, SCORE] > nodes[other, SCORE])
    return bool(nodes[node, CHANGED] < nodes[other, CHANGED])


@compiled
def remove(walk: Walk, node: int) -> None:
    """Take a node out of the cover."""
    nodes, edges, counts = walk.nodes, walk.edges, walk.counts
    counts[COVER_SIZE] -= 1
    place, last = nodes[node, PLACE], walk.cover[counts[COVER_SIZE]]
    walk.cover[place], nodes[last, PLACE] = last, place
    nodes[node, IN_COVER] = 0
    nodes[node, SCORE] = -nodes[node, SCORE]
    for entry in range(walk.indptr[node], walk.indptr[node + 1]):
        other, edge = walk.indices[entry], walk.numbers[entry]
        nodes[other, MAY_JOIN] = 1
        if nodes[other, IN_COVER]:
            nodes[other, SCORE] -= edges[edge, WEIGHT]
        else:
            nodes[other, SCORE] += edges[edge, WEIGHT]
            edges[edge, WAITING] = counts[NUM_UNCOVERED]
            walk.uncovered[counts[NUM_UNCOVERED]] = edge
            counts[NUM_UNCOVERED] += 1


@compiled
def add(walk: Walk, node: int) -> None:
    """Take a node into the cover."""
    nodes, edges, counts = walk.nodes, walk.edges, walk.counts
    walk.cover[counts[COVER_SIZE]], nodes[node, PLACE] = node, counts[COVER_SIZE]
    counts[COVER_SIZE] += 1
    nodes[node, IN_COVER] = 1
    nodes[node, SCORE] = -nodes[node, SCORE]
    for entry in range(walk.indptr[node], walk.indptr[node + 1]):
        other, edge = walk.indices[entry], walk.numbers[entry]
        nodes[other, MAY_JOIN] = 1
        if nodes[other, IN_COVER]:
            nodes[other, SCORE] += edges[edge, WEIGHT]
        else:
            nodes[other, SCORE] -= edges[edge, WEIGHT]
            counts[NUM_UNCOVERED] -= 1
            place, last = edges[edge, WAITING], walk.uncovered[counts[NUM_UNCOVERED]]
            walk.uncovered[place], edges[last, WAITING], edges[edge, WAITING] = last, place, -1


@compiled
def forget(walk: Walk) -> None:
    """Let all weights fade, and sum up the scores again."""
    nodes, edges = walk.nodes, walk.edges
    nodes[:, SCORE] = 0
    walk.counts[TOTAL_WEIGHT] = 0
    for edge in range(len(edges)):
        edges[edge, WEIGHT] = int(KEPT * edges[edge, WEIGHT])
        walk.counts[TOTAL_WEIGHT] += edges[edge, WEIGHT]
        first, second = edges[edge, 0], edges[edge, 1]
        if nodes[first, IN_COVER] + nodes[second, IN_COVER] == 0:
            nodes[first, SCORE] += edges[edge, WEIGHT]
            nodes[second, SCORE] += edges[edge, WEIGHT]
        elif nodes[first, IN_COVER] + nodes[second, IN_COVER] == 1:
            nodes[first if nodes[first, IN_COVER] else second, SCORE] -= edges[edge, WEIGHT]


@compiled
def below(walk: Walk, num_values: int) -> int:
    """A random number below `num_values` (xorshift, Marsaglia 2003)."""
    word = walk.random[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    walk.random[0] = word
    return int(word % np.uint64(num_values))
