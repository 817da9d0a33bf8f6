"""What an independent set has to decide of a graph: compiled loops that take out nodes without losing anything.

- A node whose neighbours are all neighbours of each other is in a largest set. So is one without neighbours.
- Of a node and its two neighbours that are not neighbours of each other, a largest set has the node or both neighbours.
  The three are folded into one, whose neighbours are those of both.
- A node is unconfined if some largest set does without it (Xiao and Nagamochi 2013). Say that all sets of largest size
  have it. Then such a set has two neighbours or more of each node that has only this one neighbour in it; if there is
  just one candidate for the second, that is in the set, too, and so on; if there is none, it was wrong.

Segments of the adjacency never move. A node into which others are folded has a chain of segments, its own first, and
entries of nodes that are gone leave a segment when it is next read as a whole.

Legend: N nodes, A entries of the adjacency, two per edge, F folds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled
from diffuco.ops.numba_waiting import NUMBER, Waiting, all_wait, next_node, wait

Ints = NDArray[np.int64]
ShortInts = NDArray[np.int32]
Bools = NDArray[np.bool_]

MOST_CORNERS = 16
"""Neighbours of a node for which it is asked whether all are neighbours of each other."""
MOST_MEMBERS, MOST_NEAR = 16, 64
"""Members of a set, and their neighbours, up to which it is followed what else a largest set would have."""
START, LENGTH, DEGREE, STANDS_FOR, NEXT, END, MARK, INSIDE = range(8)
"""Columns of `Rest.nodes`: the node's own segment of the adjacency; neighbours that are left; the node itself, the one
into which it was folded, or `GONE`; the node whose segment is next in the chain, or `GONE`, and the last one; when it
was last written down; neighbours that it has in the set that is followed, or -1 for members."""
GONE = -1
STAMP, NUM_LEFT, NUM_FOLDS, GAIN = range(4)
"""Places in `Rest.counts`."""


class Rest(NamedTuple):
    """What is left of a graph."""

    nodes: ShortInts
    """[N, 8]; what belongs to a node is in one line of the cache."""
    neighbors: ShortInts
    """[A]."""
    waiting: Waiting
    """Nodes to look at."""
    near: ShortInts
    """The neighbours of a node that is looked at, and of the others in its set [N]."""
    far: ShortInts
    """The neighbours of one of them [N]."""
    chosen: Bools
    """[N]."""
    folds: ShortInts
    """Node, the neighbour that stays as all three, and the other one [N, 3]."""
    counts: Ints


def make_rest(indptr: Ints, indices: Ints) -> Rest:
    """All of a graph, with every node to look at; the adjacency is symmetric."""
    num_nodes = len(indptr) - 1
    numbers = np.arange(num_nodes, dtype=np.int32)
    nodes = np.zeros((num_nodes, 8), np.int32)
    nodes[:, START] = indptr[:-1]
    nodes[:, LENGTH] = nodes[:, DEGREE] = np.diff(indptr)
    nodes[:, STANDS_FOR] = nodes[:, END] = numbers
    nodes[:, NEXT] = GONE
    return Rest(
        nodes=nodes,
        neighbors=indices.astype(np.int32),
        waiting=all_wait(num_nodes),
        near=np.zeros(num_nodes, np.int32),
        far=np.zeros(num_nodes, np.int32),
        chosen=np.zeros(num_nodes, np.bool_),
        folds=np.zeros((num_nodes, 3), np.int32),
        counts=np.array([0, num_nodes, 0, 0]),
    )


@compiled
def shrink(rest: Rest, num_looks: int) -> None:
    """Look at so many nodes that wait; nodes near those that are taken out wait again."""
    for _ in range(min(num_looks, rest.waiting.counts[NUMBER])):
        node = next_node(rest.waiting)
        if rest.nodes[node, STANDS_FOR] != node:
            continue
        degree = gather(rest, node, rest.near)
        if is_corner(rest, degree):
            choose(rest, node, degree)
        elif degree == 2:
            fold(rest, node)
        elif is_unconfined(rest, node, degree):
            remove(rest, node, degree)


@compiled
def left_as(nodes: ShortInts, node: int) -> int:
    """The node itself, or what it was folded into, if that is left; else `GONE`."""
    stands_for = nodes[node, STANDS_FOR]
    while stands_for != node and stands_for != GONE:
        node, stands_for = stands_for, nodes[stands_for, STANDS_FOR]
    return int(stands_for)


@compiled
def gather(rest: Rest, node: int, found: ShortInts) -> int:
    """Write down the neighbours that are left; their number."""
    nodes, neighbors = rest.nodes, rest.neighbors
    rest.counts[STAMP] += 1
    stamp, number, link = rest.counts[STAMP], 0, node
    while link != GONE:
        start, kept = nodes[link, START], 0
        for place in range(start, start + nodes[link, LENGTH]):
            other = left_as(nodes, neighbors[place])
            if other != GONE and nodes[other, MARK] != stamp:
                nodes[other, MARK] = stamp
                neighbors[start + kept] = other
                found[number] = other
                kept, number = kept + 1, number + 1
        nodes[link, LENGTH] = kept
        link = nodes[link, NEXT]
    return number


@compiled
def are_neighbors(nodes: ShortInts, neighbors: ShortInts, first: int, second: int) -> bool:
    """Whether an edge joins two nodes that are left."""
    if nodes[first, DEGREE] > nodes[second, DEGREE]:
        first, second = second, first
    link = first
    while link != GONE:
        start = nodes[link, START]
        for place in range(start, start + nodes[link, LENGTH]):
            if left_as(nodes, neighbors[place]) == second:
                return True
        link = nodes[link, NEXT]
    return False


@compiled
def is_corner(rest: Rest, degree: int) -> bool:
    """Whether all the `near` ones are neighbours of each other."""
    if degree > MOST_CORNERS:
        return False
    for i in range(degree):
        if rest.nodes[rest.near[i], DEGREE] < degree:
            return False
    for i in range(degree):
        for j in range(i):
            if not are_neighbors(rest.nodes, rest.neighbors, rest.near[i], rest.near[j]):
                return False
    return True


@compiled
def choose(rest: Rest, node: int, degree: int) -> None:
    """Put a node into the set, which takes it out with all the `near` ones."""
    rest.chosen[node] = True
    rest.nodes[node, STANDS_FOR] = GONE
    rest.counts[GAIN] += 1
    rest.counts[NUM_LEFT] -= 1 + degree
    for i in range(degree):
        rest.nodes[rest.near[i], STANDS_FOR] = GONE
    for i in range(degree):
        for j in range(gather(rest, rest.near[i], rest.far)):
            rest.nodes[rest.far[j], DEGREE] -= 1
            wait(rest.waiting, rest.far[j])


@compiled
def remove(rest: Rest, node: int, degree: int) -> None:
    """Leave a node out of the set."""
    rest.nodes[node, STANDS_FOR] = GONE
    rest.counts[NUM_LEFT] -= 1
    for i in range(degree):
        rest.nodes[rest.near[i], DEGREE] -= 1
        wait(rest.waiting, rest.near[i])


@compiled
def fold(rest: Rest, node: int) -> None:
    """Fold a node and the two `near` ones into that of them with more neighbours."""
    nodes, counts = rest.nodes, rest.counts
    stays, goes = rest.near[0], rest.near[1]
    if nodes[stays, DEGREE] < nodes[goes, DEGREE]:
        stays, goes = goes, stays
    nodes[node, STANDS_FOR] = GONE
    nodes[stays, DEGREE] -= 1
    for i in range(gather(rest, goes, rest.far)):
        other = rest.far[i]
        if are_neighbors(nodes, rest.neighbors, other, stays):
            nodes[other, DEGREE] -= 1
        else:
            nodes[stays, DEGREE] += 1
        wait(rest.waiting, other)
    nodes[goes, STANDS_FOR] = stays
    nodes[nodes[stays, END], NEXT] = goes
    nodes[stays, END] = nodes[goes, END]
    rest.folds[counts[NUM_FOLDS], 0] = node
    rest.folds[counts[NUM_FOLDS], 1] = stays
    rest.folds[counts[NUM_FOLDS], 2] = goes
    counts[NUM_FOLDS] += 1
    counts[NUM_LEFT] -= 2
    counts[GAIN] += 1
    wait(rest.waiting, stays)
    if nodes[stays, DEGREE] <= MOST_NEAR:
        for i in range(gather(rest, stays, rest.far)):
            wait(rest.waiting, rest.far[i])


@compiled
def is_unconfined(rest: Rest, node: int, degree: int) -> bool:
    """Whether some largest set does without a node, whose neighbours are the `near` ones."""
    nodes, near = rest.nodes, rest.near
    members, num_members, num_near = np.empty(MOST_MEMBERS, np.int32), 1, degree
    members[0], nodes[node, INSIDE] = node, -1
    for i in range(degree):
        nodes[near[i], INSIDE] = 1
    is_wrong, follows = False, node
    while not is_wrong and follows != GONE:
        follows = GONE
        for i in range(num_near):
            may_be_wrong = nodes[near[i], DEGREE] <= num_near + 1  # others have two candidates or more
            if may_be_wrong and nodes[near[i], INSIDE] == 1:
                number, candidate = candidates(nodes, rest.neighbors, near[i])
                is_wrong |= number == 0
                if number == 1:
                    follows = candidate
        if follows == GONE or num_members == MOST_MEMBERS or num_near + nodes[follows, DEGREE] > MOST_NEAR:
            break
        members[num_members], nodes[follows, INSIDE] = follows, -1
        num_members += 1
        for i in range(gather(rest, follows, rest.far)):
            other = rest.far[i]
            if nodes[other, INSIDE] == 0:
                near[num_near] = other
                num_near += 1
            nodes[other, INSIDE] += 1
    for i in range(num_near):
        nodes[near[i], INSIDE] = 0
    for i in range(num_members):
        nodes[members[i], INSIDE] = 0
    return is_wrong


@compiled
def candidates(nodes: ShortInts, neighbors: ShortInts, node: int) -> tuple[int, int]:
    """How many neighbours of a node may be a second one in the set, 2 also if there are more; and one of them."""
    only, link = GONE, node
    while link != GONE:
        start = nodes[link, START]
        for place in range(start, start + nodes[link, LENGTH]):
            other = left_as(nodes, neighbors[place])
            if other != GONE and other != only and nodes[other, INSIDE] == 0:
                if only != GONE:
                    return 2, only
                only = other
        link = nodes[link, NEXT]
    return int(only != GONE), only


@compiled
def edges_left(rest: Rest) -> Ints:
    """Edges between nodes that are left, as these are numbered in the graph. [edges, 2]."""
    nodes, number = rest.nodes, 0
    for node in range(len(nodes)):
        number += nodes[node, DEGREE] if nodes[node, STANDS_FOR] == node else 0
    edges = np.empty((number // 2, 2), np.int64)
    number = 0
    for node in range(len(nodes)):
        if nodes[node, STANDS_FOR] == node:
            for i in range(gather(rest, node, rest.far)):
                if rest.far[i] > node:
                    edges[number, 0], edges[number, 1] = node, rest.far[i]
                    number += 1
    return edges


@compiled
def unfold(chosen: Bools, folds: ShortInts) -> None:
    """Sets of the graph from sets of what was left. [N, S] in place, [F, 3]."""
    for i in range(len(folds) - 1, -1, -1):
        node, stays, goes = folds[i]
        chosen[goes] = chosen[stays]
        chosen[node] = ~chosen[stays]
