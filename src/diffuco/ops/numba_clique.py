"""Maximum cliques on the CPU: compiled branch and bound on sets of nodes as bits of 64-bit words.

Nodes are taken in an order of least degree (degeneracy), so that each has few later neighbours. A small graph is
searched as a whole, a large one as many small graphs: the later neighbours of one node after the other. A set of nodes
in k colours holds no clique of more than k (Tomita and Seki 2003), so only nodes beyond the colours that are allowed
are branched on; the sets of bits are those of San Segundo et al. (2011). A node beyond them is not branched on either
if another node makes room for it in its colour (Tomita et al. 2010), or if unit propagation shows that no clique has
both the node and one of each of some colours (Li and Quan 2010).

All state is in arrays: `advance` does a limited amount of work and goes on where it stopped.

Legend: N nodes, E directed edges, D nodes of the largest graph that is searched at once, W words for D bits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled
from diffuco.ops.numba_degeneracy import Ints, Order, Shorts

Bits = NDArray[np.uint64]

WHOLE_NODES = 4096
"""Largest graphs, after nodes of low degree are removed, that are searched as a whole: 2 MB of bits."""
MOST_LOOKS = 20_000_000
"""Colours that are looked at to prune the branches of a depth: about a tenth of a second."""
POSITION, DEPTH, SIZE, BASE, BEST, BOUND, LOOKS = range(7)
"""Places in `Space.progress`: the node whose later neighbours are searched, the depth of the search or -1, the number
of nodes searched, that of nodes outside them in the clique, the size of the best clique, a bound on all cliques that
are not searched yet, and the colours looked at while branches are listed."""
UNCOLORED, AVAILABLE, ALIVE, REST = range(4)
"""Rows of `Space.sets`: nodes without a colour, those of them that fit the colour at hand, neighbours of all nodes that
are set, and nodes of a colour that are not accounted for."""
CLIQUE, STARTS, ENDS, UNITS, UNIT_COLORS, NEEDED, STATES = range(7)
"""Rows of `Space.numbers`. By depth: the node of the clique, where the branches begin and end. By number of a node that
is set: the node, its colour, whether a contradiction needs it. By colour: its state."""
UNLISTED = -1
"""The end of branches that are not listed yet."""
FREE, TAKEN, UNIT = range(3)
"""States of a colour: free, part of an earlier contradiction, down to one node in this one."""
ZERO, ONE = np.uint64(0), np.uint64(1)
PAIRS, FOURS, EIGHTS, BYTES = (np.uint64(2**64 // n) for n in (3, 5, 17, 255))
TWO, FOUR, TOP = np.uint64(2), np.uint64(4), np.uint64(56)


class Space(NamedTuple):
    """The state of a search and its scratch memory, in few arrays because each takes time to compile."""

    progress: Ints
    best: Ints
    """[D + 1], nodes of the best clique in the order."""
    members: Ints
    """[D], nodes of the order that are searched, the last one first: it has bit 0."""
    adjacent: Bits
    """[D, W]."""
    candidates: Bits
    """[D + 1, W], nodes that may join the clique at a depth."""
    classes: Bits
    """[D + 1, W], the nodes of a colour."""
    sets: Bits
    """[4, W]."""
    numbers: Ints
    """[7, D + 2]."""
    branches: Shorts
    """[2, ...], nodes to branch on and their colours, depth after depth, the last one first."""


def make_space(order: Order, best: Ints) -> Space:
    """Memory for the search of a graph of which a clique is known."""
    num_nodes = len(order.nodes)
    first = int(np.searchsorted(order.cores, len(best)))  # nodes before it are in no larger clique
    num_left = num_nodes - first
    whole = num_left <= WHOLE_NODES
    size = num_left if whole else int(order.cores[-1])
    words = (size + 63) // 64
    bound = int(order.cores[-1]) + 1 if num_nodes else 0
    room = size + min(size * size, 2 * len(order.later))  # a branch at every depth for each neighbour of its node
    space = Space(
        progress=np.array([num_nodes, -1, 0, 0, len(best), bound, 0]),
        best=np.concatenate([best, np.zeros(size + 1, np.int64)]),
        members=np.zeros(size, np.int64),
        adjacent=np.zeros((size, words), np.uint64),
        candidates=np.empty((size + 1, words), np.uint64),
        classes=np.empty((size + 1, words), np.uint64),
        sets=np.empty((4, words), np.uint64),
        numbers=np.zeros((7, size + 2), np.int64),
        branches=np.empty((2, room), np.int32),
    )
    if whole and size:
        load(order, space, np.arange(first, num_nodes, dtype=np.int32), 0)
    return space


def is_whole(space: Space) -> bool:
    """Whether all nodes that may be in a larger clique are searched at once, before the first `advance`."""
    return bool(space.progress[SIZE] > 0)


def best_clique(space: Space) -> Ints:
    """The nodes of the best clique so far, in the order."""
    return space.best[: space.progress[BEST]]


def adopt(space: Space, chosen: NDArray[np.bool_]) -> None:
    """Take over a clique of the nodes that are searched as a whole if it is larger than the best so far."""
    size = np.count_nonzero(chosen)
    if size > space.progress[BEST]:
        space.progress[BEST] = size
        space.best[:size] = space.members[chosen]


@compiled
def advance(order: Order, space: Space, work: int) -> bool:
    """Search until all is proven or about `work` words were looked at; whether all is proven."""
    progress = space.progress
    while True:
        if progress[DEPTH] >= 0:
            work = branch(space, work)
            if progress[DEPTH] >= 0:
                return False
            if not progress[BASE]:
                return True
        progress[POSITION] -= 1
        node = progress[POSITION]
        progress[BOUND] = order.cores[node] + 1 if node >= 0 else 0
        if progress[BOUND] <= progress[BEST]:
            return True
        num_later = order.starts[node + 1] - order.starts[node]
        if num_later >= progress[BEST]:
            load(order, space, order.later[order.starts[node] : order.starts[node + 1]], 1)
            work -= num_later**2
        work -= num_later


@compiled
def load(order: Order, space: Space, nodes: Shorts, base: int) -> None:
    """Begin the search of some nodes, the last one first, as part of cliques with `base` nodes beside them."""
    size = len(nodes)
    words = (size + 63) // 64
    for w in range(words):
        space.candidates[0, w] = ZERO
        for i in range(size):
            space.adjacent[i, w] = ZERO
    for i in range(size):
        space.members[i] = nodes[size - 1 - i]
        space.candidates[0, i >> 6] |= bit(i)
        e, end = order.starts[space.members[i]], order.starts[space.members[i] + 1]
        j = i - 1
        while j >= 0 and e < end:
            here, there = space.members[j], order.later[e]
            if here == there:
                space.adjacent[i, j >> 6] |= bit(j)
                space.adjacent[j, i >> 6] |= bit(i)
            j -= here <= there
            e += here >= there
    progress = space.progress
    progress[SIZE], progress[BASE], progress[DEPTH] = size, base, 0
    space.numbers[ENDS, 0] = UNLISTED


@compiled
def branch(space: Space, work: int) -> int:
    """Branch and bound from where it stopped until the depth is -1 or the work is done; the work that is left."""
    progress, starts, ends = space.progress, space.numbers[STARTS], space.numbers[ENDS]
    depth, base = progress[DEPTH], progress[BASE]
    words = (progress[SIZE] + 63) // 64
    while depth >= 0 and work >= 0:
        enough = progress[BEST] - base - depth
        if ends[depth] == UNLISTED:
            ends[depth] = list_branches(space, depth, enough, starts[depth])
            work -= 4 * progress[LOOKS] + 3 * words * (max(enough, 0) + 4)  # a few words tell whether to go on
        end = ends[depth] - 1
        if end < starts[depth] or space.branches[1, end] <= enough:
            depth -= 1
            continue
        if depth == 0:
            progress[BOUND] = min(progress[BOUND], base + space.branches[1, end])  # the colours below are no higher
        node = space.branches[0, end]
        space.candidates[depth, node >> 6] &= ~bit(node)
        for w in range(words):
            space.candidates[depth + 1, w] = space.candidates[depth, w] & space.adjacent[node, w]
        space.numbers[CLIQUE, depth] = node
        ends[depth] = end
        depth += 1
        if base + depth > progress[BEST]:
            keep(space, depth)
        starts[depth], ends[depth] = end, UNLISTED
        work -= words
    progress[DEPTH] = depth
    return work


@compiled
def keep(space: Space, depth: int) -> None:
    """The clique of this depth is the best so far."""
    base = space.progress[BASE]
    for i in range(depth):
        space.best[i] = space.members[space.numbers[CLIQUE, i]]
    if base:
        space.best[depth] = space.progress[POSITION]
    space.progress[BEST] = base + depth


@compiled
def list_branches(space: Space, depth: int, enough: int, first: int) -> int:
    """Colour the candidates of a depth one colour after the other; those beyond colour `enough` become branches.

    They are put at `first` and behind; where they end is returned.
    """
    words = (space.progress[SIZE] + 63) // 64
    uncolored, available, adjacent = space.sets[UNCOLORED], space.sets[AVAILABLE], space.adjacent
    start = 0
    for w in range(words):
        uncolored[w] = space.candidates[depth, w]
    for c in range(enough):
        space.numbers[STATES, c] = FREE
    space.progress[LOOKS] = 0
    color, end = 1, first
    while True:
        while start < words and not uncolored[start]:
            start += 1
        if start == words:
            return end
        for w in range(start, words):
            available[w] = uncolored[w]
        if color <= enough:
            for w in range(words):
                space.classes[color - 1, w] = ZERO
        is_empty = True
        for w in range(start, words):
            while available[w]:
                node = (w << 6) + lowest(available[w])
                lone = bit(node)
                uncolored[w] &= ~lone
                available[w] &= ~lone
                if color <= enough:
                    space.classes[color - 1, w] |= lone
                elif is_pruned(space, node, enough, words):
                    continue
                else:
                    space.branches[0, end], space.branches[1, end] = node, color
                    end += 1
                is_empty = False
                for i in range(w, words):
                    available[i] &= ~adjacent[node, i]
        if not is_empty:
            color += 1


@compiled
def is_pruned(space: Space, node: int, num_colors: int, words: int) -> bool:
    """Whether the coloured nodes and another one hold no larger clique than the colours allow."""
    if num_colors <= 0 or space.progress[LOOKS] > MOST_LOOKS:
        return False
    return is_recolored(space, node, num_colors, words) or contradicts(space, node, num_colors, words)


@compiled
def is_recolored(space: Space, node: int, num_colors: int, words: int) -> bool:
    """Give a node a colour in which it has no neighbour, or one that can take another colour instead."""
    space.progress[LOOKS] += num_colors
    for c in range(num_colors):
        if space.numbers[STATES, c] != FREE:
            continue
        num_met, met = 0, 0
        for w in range(words):
            word = space.classes[c, w] & space.adjacent[node, w]
            if word:
                num_met += 1 if num_met or word & (word - ONE) == ZERO else 2
                met = (w << 6) + lowest(word)
                if num_met > 1:
                    break
        if num_met > 1:
            continue
        if num_met == 1:
            other = color_without(space, met, c, num_colors, words)
            if other < 0:
                continue
            space.classes[c, met >> 6] &= ~bit(met)
            space.classes[other, met >> 6] |= bit(met)
        space.classes[c, node >> 6] |= bit(node)
        return True
    return False


@compiled
def color_without(space: Space, node: int, own: int, num_colors: int, words: int) -> int:
    """A free colour other than its own in which a node has no neighbour, or -1."""
    space.progress[LOOKS] += num_colors
    for c in range(num_colors):
        if c != own and space.numbers[STATES, c] == FREE:
            word = ZERO
            for w in range(words):
                word |= space.classes[c, w] & space.adjacent[node, w]
            if not word:
                return c
    return -1


@compiled
def contradicts(space: Space, node: int, num_colors: int, words: int) -> bool:
    """Whether a clique with a node cannot have a node of every free colour; the colours that say so are then taken."""
    numbers = space.numbers
    conflict, num_units = propagate(space, node, num_colors, words)
    space.progress[LOOKS] += num_units * num_colors
    if conflict >= 0:
        numbers[STATES, conflict] = TAKEN
        blame(space, conflict, num_units, words)
    for u in range(num_units - 1, 0, -1):
        color = numbers[UNIT_COLORS, u]
        if numbers[NEEDED, u]:
            numbers[STATES, color] = TAKEN
            blame(space, color, u, words)
        else:
            numbers[STATES, color] = FREE
    return conflict >= 0


@compiled
def propagate(space: Space, node: int, num_colors: int, words: int) -> tuple[int, int]:
    """Set a node, then the last that is left of a colour, again and again, until a colour has none.

    Only neighbours of all nodes that are set are left. Returns this colour, or -1, and the number of nodes set.
    """
    numbers, alive = space.numbers, space.sets[ALIVE]
    numbers[UNITS, 0] = node
    numbers[NEEDED, 0] = 0
    for w in range(words):
        alive[w] = space.adjacent[node, w]
    num_units, c, num_quiet = 1, 0, 0
    while num_quiet < num_colors:
        if numbers[STATES, c] == FREE:
            count, last = 0, 0
            for w in range(words):
                word = space.classes[c, w] & alive[w]
                if word:
                    count += 1 if word & (word - ONE) == ZERO else 2
                    last = (w << 6) + lowest(word)
                    if count > 1:
                        break
            if count == 0:
                return c, num_units
            if count == 1:
                numbers[STATES, c] = UNIT
                numbers[UNITS, num_units] = last
                numbers[UNIT_COLORS, num_units] = c
                numbers[NEEDED, num_units] = 0
                for w in range(words):
                    alive[w] &= space.adjacent[last, w]
                num_units += 1
                num_quiet = 0
        num_quiet += 1
        c = c + 1 if c + 1 < num_colors else 0
    return -1, num_units


@compiled
def blame(space: Space, color: int, num_units: int, words: int) -> None:
    """Mark which of the nodes set first took nodes of a colour away as needed."""
    for w in range(words):
        space.sets[REST, w] = space.classes[color, w]
    for u in range(num_units):
        taken, left = ZERO, ZERO
        for w in range(words):
            kept = space.sets[REST, w] & space.adjacent[space.numbers[UNITS, u], w]
            taken |= space.sets[REST, w] ^ kept
            space.sets[REST, w] = kept
            left |= kept
        if taken:
            space.numbers[NEEDED, u] = 1
        if not left:
            return


@compiled
def bit(node: int) -> np.uint64:
    """The word with the bit of a node."""
    return ONE << np.uint64(node & 63)


@compiled
def lowest(word: np.uint64) -> int:
    """The place of the lowest bit that is set."""
    return count_bits(~word & (word - ONE))


@compiled
def count_bits(word: np.uint64) -> int:
    """How many bits are set."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & FOURS) + ((word >> TWO) & FOURS)
    word = (word + (word >> FOUR)) & EIGHTS
    return int(np.int64((word * BYTES) >> TOP))
