"""Small vertex covers on the CPU: a compiled local search that exchanges one node of the cover after the other.

A cover that leaves some edges uncovered gives up a node and gets an end of an uncovered edge. Edges that stay uncovered
grow heavier, so that the search leaves what it cannot improve, and a node may come back only after a neighbour changed.
Once nothing is uncovered, the cover is kept and one node leaves for good (NuMVC, Cai et al. 2013).

A node's score is the weight of the edges that it would cover or, negative, would leave uncovered. An exchange takes the
node with the highest score, and of equals the one that changed first. Both are in one number, its rank

    score * AGES - step of its last change - (OUTSIDE if it is not in the cover)

so that finding the node to give up is one pass over numbers, and so is updating the scores of its neighbours.

Legend: N nodes, A entries of the adjacency, two per edge.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

Ints = NDArray[np.int64]
ShortInts = NDArray[np.int32]

FORGET_AT = 0.5
"""Mean weight of an edge per node at which old weights fade."""
KEPT = 0.3
"""Share of a weight that is left then."""
AGES = 2**32
"""Steps that a rank can tell apart; later changes count as equally late."""
OUTSIDE = 2**62
"""More than twice any score * AGES."""
COVER_SIZE, NUM_UNCOVERED, TOTAL_WEIGHT, STEP, LAST, BEST_SIZE = range(6)
"""Places in `Walk.counts`."""


class Walk(NamedTuple):
    """The state of a search. What concerns an edge is at the first of its two entries; its weight is at both."""

    indptr: Ints
    neighbours: NDArray[np.uint32]
    """[A]."""
    twins: Ints
    """The other entry of the same edge [A]."""
    weights: ShortInts
    """[A]."""
    ranks: Ints
    """[N]."""
    changed: Ints
    """The step of a node's last change [N]."""
    may_join: NDArray[np.bool_]
    """Whether a neighbour changed since the node left [N]."""
    uncovered: Ints
    """The uncovered edges, first in [A]."""
    waiting: Ints
    """Of the uncovered edges, the place in `uncovered` [A]."""
    best: NDArray[np.bool_]
    """The smallest cover yet [N]."""
    counts: Ints
    random: NDArray[np.uint64]


def make_walk(indptr: Ints, indices: Ints, seed: int) -> Walk:
    """A search that starts from all nodes but those of a greedy independent set; the adjacency is symmetric."""
    num_nodes, num_entries = len(indptr) - 1, len(indices)
    owners = np.repeat(np.arange(num_nodes), np.diff(indptr))
    by_edge = np.lexsort((np.maximum(owners, indices), np.minimum(owners, indices)))
    twins = np.empty(num_entries, np.int64)
    twins[by_edge[::2]], twins[by_edge[1::2]] = by_edge[1::2], by_edge[::2]
    walk = Walk(
        indptr=indptr.astype(np.int64),
        neighbours=indices.astype(np.uint32),
        twins=twins,
        weights=np.ones(num_entries, np.int32),
        ranks=np.zeros(num_nodes, np.int64),
        changed=np.zeros(num_nodes, np.int64),
        may_join=np.ones(num_nodes, np.bool_),
        uncovered=np.zeros(num_entries, np.int64),
        waiting=np.zeros(num_entries, np.int64),
        best=np.ones(num_nodes, np.bool_),
        counts=np.array([num_nodes, 0, num_entries // 2, 0, 0, num_nodes]),
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
            is_free &= in_cover(walk, int(walk.neighbours[entry]))
        if is_free:
            flip(walk, node)


@compiled
def take_steps(walk: Walk, num_steps: int) -> None:
    """Exchange so many nodes."""
    counts = walk.counts
    for _ in range(num_steps):
        while counts[NUM_UNCOVERED] == 0:
            counts[BEST_SIZE] = counts[COVER_SIZE]
            for node in range(len(walk.best)):
                walk.best[node] = in_cover(walk, node)
            if counts[COVER_SIZE] == 0:
                return
            flip(walk, cheapest(walk))
        counts[STEP] += 1
        if counts[COVER_SIZE]:
            node = cheapest(walk)
            flip(walk, node)
            walk.may_join[node] = False
        entry = walk.uncovered[below(walk, counts[NUM_UNCOVERED])]
        node, other = int(walk.neighbours[entry]), int(walk.neighbours[walk.twins[entry]])
        if not walk.may_join[node] or (walk.may_join[other] and walk.ranks[other] > walk.ranks[node]):
            node = other
        flip(walk, node)
        counts[LAST] = node
        for position in range(counts[NUM_UNCOVERED]):
            entry = walk.uncovered[position]
            twin = walk.twins[entry]
            walk.weights[entry] += 1
            walk.weights[twin] += 1
            walk.ranks[walk.neighbours[entry]] += AGES
            walk.ranks[walk.neighbours[twin]] += AGES
        counts[TOTAL_WEIGHT] += counts[NUM_UNCOVERED]
        if counts[TOTAL_WEIGHT] > FORGET_AT * len(walk.ranks) * (len(walk.weights) // 2):
            forget(walk)


@compiled
def in_cover(walk: Walk, node: int) -> bool:
    """Whether a node is in the cover."""
    return bool(walk.ranks[node] > -OUTSIDE // 2)


@compiled
def score(walk: Walk, node: int) -> int:
    """The weight of the edges that a node would cover or, negative, would leave uncovered."""
    rank = walk.ranks[node] + walk.changed[node]
    return int((rank if in_cover(walk, node) else rank + OUTSIDE) // AGES)


@compiled
def cheapest(walk: Walk) -> int:
    """The node of the cover with the highest rank, except the one that came last."""
    last = walk.counts[LAST]
    hidden = OUTSIDE * (walk.counts[COVER_SIZE] > 1 and in_cover(walk, last))
    walk.ranks[last] -= hidden
    best = highest(walk.ranks)
    walk.ranks[last] += hidden
    return best


@compiled
def highest(ranks: Ints) -> int:
    """The first position of the maximum; in this form the compiler compares several ranks at once."""
    most, position = ranks[0], 0
    for other in range(len(ranks)):
        if ranks[other] > most:
            most = ranks[other]
    while ranks[position] != most:
        position += 1
    return position


@compiled
def flip(walk: Walk, node: int) -> None:
    """Take a node out of the cover, or into it."""
    counts, ranks, may_join = walk.counts, walk.ranks, walk.may_join
    turned, sign = -score(walk, node), -1 if in_cover(walk, node) else 1
    counts[COVER_SIZE] += sign
    walk.changed[node] = min(counts[STEP], AGES - 1)
    ranks[node] = turned * AGES - walk.changed[node] - (OUTSIDE if sign < 0 else 0)
    first, end = walk.indptr[node], walk.indptr[node + 1]
    neighbours, weights = walk.neighbours[first:end], walk.weights[first:end]
    for position in range(len(neighbours)):
        other = neighbours[position]
        may_join[other] = True
        change = sign * AGES * np.int64(weights[position])
        if ranks[other] > -OUTSIDE // 2:
            ranks[other] += change
            continue
        ranks[other] -= change
        edge = min(first + position, walk.twins[first + position])
        if sign < 0:
            walk.waiting[edge] = counts[NUM_UNCOVERED]
            walk.uncovered[counts[NUM_UNCOVERED]] = edge
        counts[NUM_UNCOVERED] -= sign
        if sign > 0:
            place, last = walk.waiting[edge], walk.uncovered[counts[NUM_UNCOVERED]]
            walk.uncovered[place], walk.waiting[last] = last, place


@compiled
def forget(walk: Walk) -> None:
    """Let all weights fade, and sum up the scores again."""
    total = 0
    for entry in range(len(walk.weights)):
        walk.weights[entry] = int(KEPT * walk.weights[entry])
        total += walk.weights[entry]
    walk.counts[TOTAL_WEIGHT] = total // 2
    for node in range(len(walk.ranks)):
        inside, uncovered = in_cover(walk, node), 0
        for entry in range(walk.indptr[node], walk.indptr[node + 1]):
            if not in_cover(walk, int(walk.neighbours[entry])):
                uncovered += walk.weights[entry]
        walk.ranks[node] = (-uncovered if inside else uncovered - OUTSIDE // AGES) * AGES - walk.changed[node]


@compiled
def below(walk: Walk, num_values: int) -> int:
    """A random number below `num_values` (xorshift, Marsaglia 2003)."""
    word = walk.random[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    walk.random[0] = word
    return int(word % np.uint64(num_values))
