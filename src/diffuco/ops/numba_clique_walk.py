"""Large cliques on the CPU: a compiled local search on sets of nodes as bits of 64-bit words.

Nodes join the clique while any fits. Then nodes that miss one neighbour in the clique are swapped with it, until one
fits again or nothing of the old clique is left. Nodes of cliques that were left are penalised, and those with the
lowest penalty go first; after a delay of some cliques, all penalties fall by one. This is dynamic local search (Pullan
and Hoos 2006). Graphs differ in the delay that suits them, so several take turns.

Legend: D nodes, W words for D bits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled
from diffuco.ops.numba_clique import ONE, ZERO, Bits, bit, lowest
from diffuco.ops.numba_degeneracy import Ints

DELAYS = (1, 2, 15)
"""Cliques after which all penalties fall by one; with 1 there are no penalties."""
STEP_WORK = 60
"""Work of a change beside that for the nodes that are told and chosen from, as `numba_clique.advance` counts it."""
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(13), np.uint64(7), np.uint64(17)
FITTING, SWAPPABLE, INSIDE, UNUSED, OLD = range(5)
"""Rows of `Walk.sets`: nodes that fit, nodes that miss one neighbour, the clique, nodes not used since the last clique
was left, the clique before the swaps."""
DELAY, NUM_LEFT, SIZE, BEST, LAST, WORK = range(6)
"""Places in `Walk.counts`: the delay, cliques left since penalties fell, the size of the clique, that of the best one,
the node that joined last, the work done."""


class Walk(NamedTuple):
    """The state of a search with one delay."""

    sets: Bits
    """[5, W]."""
    missing: Ints
    """[D], how many nodes of the clique a node is not adjacent to, itself aside."""
    penalties: Ints
    best: NDArray[np.bool_]
    counts: Ints
    """[6]."""
    random: Bits


def make_walks(adjacent: Bits, seed: int) -> list[Walk]:
    """A search for every delay, from the empty clique."""
    size, words = adjacent.shape
    walks = []
    for delay in DELAYS:
        sets = np.zeros((5, words), np.uint64)
        sets[UNUSED] = ~ZERO
        for node in range(size):
            sets[FITTING, node >> 6] |= ONE << np.uint64(node & 63)
        random = np.random.default_rng((seed, delay)).integers(1, 2**63, 1, dtype=np.uint64)
        missing, penalties = np.zeros(size, np.int64), np.zeros(size, np.int64)
        counts = np.array([delay, 0, 0, 0, 0, 0])
        walks.append(Walk(sets, missing, penalties, np.zeros(size, np.bool_), counts, random))
    return walks


@compiled
def walk(adjacent: Bits, state: Walk, work: int) -> None:
    """Search for about as long as `numba_clique.advance` does with this work."""
    sets, counts = state.sets, state.counts
    size, words = adjacent.shape
    counts[WORK] = 0
    while counts[WORK] < work:
        node = choose(state, FITTING)
        if node >= 0:
            join(adjacent, state, node)
            for w in range(words):
                sets[OLD, w] = sets[INSIDE, w]
            if counts[SIZE] > counts[BEST]:
                counts[BEST] = counts[SIZE]
                for i in range(size):
                    state.best[i] = sets[INSIDE, i >> 6] & bit(i) != ZERO
        else:
            node = choose(state, SWAPPABLE)
            left = ZERO
            for w in range(words):
                left |= sets[OLD, w] & sets[INSIDE, w]
            if node >= 0 and left:
                leave_others(adjacent, state, node)
                join(adjacent, state, node)
            else:
                perturb(adjacent, state)


@compiled
def choose(state: Walk, kind: int) -> int:
    """A node of one of the sets that was not used yet and has the lowest penalty, at random; -1 if there is none."""
    chosen, lowest_penalty, num_ties = -1, 0, 0
    for w in range(state.sets.shape[1]):
        word = state.sets[kind, w] & state.sets[UNUSED, w]
        while word:
            node = (w << 6) + lowest(word)
            word &= word - ONE
            penalty = state.penalties[node]
            state.counts[WORK] += 3
            if chosen < 0 or penalty < lowest_penalty:
                chosen, lowest_penalty, num_ties = node, penalty, 1
            elif penalty == lowest_penalty:
                num_ties += 1
                if draw(state, num_ties) == 0:
                    chosen = node
    return chosen


@compiled
def perturb(adjacent: Bits, state: Walk) -> None:
    """Leave the clique: penalise it and keep only the last node, or, without penalties, force a random node into it."""
    sets, counts, penalties = state.sets, state.counts, state.penalties
    size, words = adjacent.shape
    node = draw(state, size)
    if counts[DELAY] > 1:
        for i in range(size):
            if i != counts[LAST] and sets[INSIDE, i >> 6] & bit(i) != ZERO:
                sets[INSIDE, i >> 6] &= ~bit(i)
                counts[SIZE] -= 1
                penalties[i] += 1
                change(adjacent, state, i, -1)
        penalties[counts[LAST]] += 1
        counts[NUM_LEFT] += 1
        if counts[NUM_LEFT] == counts[DELAY]:
            counts[NUM_LEFT] = 0
            for i in range(size):
                penalties[i] -= penalties[i] > 0
    elif sets[INSIDE, node >> 6] & bit(node) == ZERO:
        leave_others(adjacent, state, node)
        join(adjacent, state, node)
    for w in range(words):
        sets[UNUSED, w] = ~ZERO
        sets[OLD, w] = sets[INSIDE, w]


@compiled
def leave_others(adjacent: Bits, state: Walk, node: int) -> None:
    """Take the nodes that a node is not adjacent to out of the clique."""
    for w in range(adjacent.shape[1]):
        word = state.sets[INSIDE, w] & ~adjacent[node, w]
        while word:
            gone = (w << 6) + lowest(word)
            word &= word - ONE
            state.sets[INSIDE, w] &= ~bit(gone)
            state.counts[SIZE] -= 1
            change(adjacent, state, gone, -1)


@compiled
def join(adjacent: Bits, state: Walk, node: int) -> None:
    """Put a node that fits into the clique."""
    state.sets[INSIDE, node >> 6] |= bit(node)
    state.sets[UNUSED, node >> 6] &= ~bit(node)
    state.counts[SIZE] += 1
    state.counts[LAST] = node
    change(adjacent, state, node, 1)


@compiled
def change(adjacent: Bits, state: Walk, node: int, step: int) -> None:
    """Tell all that are not adjacent to a node that it joined or left the clique."""
    size, words = adjacent.shape
    sets = state.sets
    state.counts[WORK] += STEP_WORK
    for w in range(words):
        word = ~adjacent[node, w]
        if w == words - 1 and size & 63:
            word &= bit(size) - ONE
        while word:
            other = (w << 6) + lowest(word)
            lone = word & ~(word - ONE)
            word &= word - ONE
            if other == node:
                continue
            missing = state.missing[other] + step
            state.missing[other] = missing
            state.counts[WORK] += 2
            if missing == 0:
                sets[FITTING, w] |= lone
                sets[SWAPPABLE, w] &= ~lone
            elif missing == 1:
                sets[FITTING, w] &= ~lone
                sets[SWAPPABLE, w] |= lone
            else:
                sets[SWAPPABLE, w] &= ~lone
    lone = bit(node)
    if step > 0:
        sets[FITTING, node >> 6] &= ~lone
        sets[SWAPPABLE, node >> 6] &= ~lone
    elif state.missing[node] == 0:
        sets[FITTING, node >> 6] |= lone
    elif state.missing[node] == 1:
        sets[SWAPPABLE, node >> 6] |= lone


@compiled
def draw(state: Walk, num_values: int) -> int:
    """A random number below `num_values` (xorshift, Marsaglia 2003)."""
    word = state.random[0]
    word ^= word << SHIFT_1
    word ^= word >> SHIFT_2
    word ^= word << SHIFT_3
    state.random[0] = word
    return int(np.int64((word >> np.uint64(33)) % np.uint64(num_values)))
