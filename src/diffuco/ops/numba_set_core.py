"""What an independent set has to decide of a graph: compiled loops that take out nodes without losing anything.

A best set is one that weighs most. Without node weights, all nodes weigh 1.

- A node is in a best set if it weighs as much as all its neighbours together, or, if these are all neighbours of each
  other, as much as each.
- If some of the latter weigh more, the node is out if one of these is in, else in. So it can be taken out with the
  neighbours that weigh no more, and each of the others is worth less by its weight (Lamm et al. 2019).
- Of a node and its two neighbours that are not neighbours of each other and weigh no more, but together do, a best set
  has the node or both neighbours. The three are folded into one, whose neighbours are those of both.
- A node is unconfined if some best set does without it (Xiao and Nagamochi 2013, with weights Xiao et al. 2021). Say
  that all best sets have it. Take another node that weighs as much as its neighbours in the set: a best set has more of
  its neighbours, or it could replace them. If there is just one candidate, that is in the set, too, and so on; if there
  is none, it was wrong.

Segments of the adjacency never move. A node into which others are folded has a chain of segments, its own first, and
entries of nodes that are gone leave a segment when it is next read as a whole.

Legend: N nodes, A entries of the adjacency, two per edge, F folds and nodes that depend on heavier ones.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled
from diffuco.ops.numba_waiting import NUMBER, Waiting, all_wait, next_node, wait

Floats = NDArray[np.float64]
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
ROUNDING = 1 + 1e-12
"""Weights that differ by less are the same: what nodes are still worth is a difference."""
STAMP, NUM_LEFT, NUM_FOLDS = range(3)
"""Places in `Rest.counts`."""


class Rest(NamedTuple):
    """What is left of a graph."""

    nodes: ShortInts
    """[N, 8]; what belongs to a node is in one line of the cache."""
    neighbors: ShortInts
    """[A]."""
    weights: Floats
    """Of the nodes, or what they are still worth [N]."""
    inside: Floats
    """Weight of a node's neighbours in the set that is followed [N]."""
    waiting: Waiting
    """Nodes to look at."""
    near: ShortInts
    """The neighbours of a node that is looked at, and of the others in its set [N]."""
    far: ShortInts
    """The neighbours of one of them [N]."""
    chosen: Bools
    """[N]."""
    folds: ShortInts
    """Node, the neighbour that stays as all three, and the other one; or a node, a heavier one on which it depends, and
    `GONE`, after the last of these `GONE` twice [F, 3]."""
    counts: Ints
    gain: Floats
    """What nodes that are taken out add to a set of those that are left [1]."""


def make_rest(indptr: Ints, indices: Ints, weights: Floats | None = None) -> Rest:
    """All of a graph, with every node to look at; the adjacency is symmetric."""
    num_nodes = len(indptr) - 1
    most_folds = num_nodes if weights is None else num_nodes + len(indices) // 2  # a neighbour is an edge less
    numbers = np.arange(num_nodes, dtype=np.int32)
    nodes = np.zeros((num_nodes, 8), np.int32)
    nodes[:, START] = indptr[:-1]
    nodes[:, LENGTH] = nodes[:, DEGREE] = np.diff(indptr)
    nodes[:, STANDS_FOR] = nodes[:, END] = numbers
    nodes[:, NEXT] = GONE
    return Rest(
        nodes=nodes,
        neighbors=indices.astype(np.int32),
        weights=np.ones(num_nodes) if weights is None else weights.astype(np.float64),
        inside=np.zeros(num_nodes),
        waiting=all_wait(num_nodes),
        near=np.zeros(num_nodes, np.int32),
        far=np.zeros(num_nodes, np.int32),
        chosen=np.zeros(num_nodes, np.bool_),
        folds=np.zeros((most_folds, 3), np.int32),
        counts=np.array([0, num_nodes, 0]),
        gain=np.zeros(1),
    )


@compiled
def shrink(rest: Rest, num_looks: int) -> None:
    """Look at so many nodes that wait; nodes near those that are taken out wait again."""
    for _ in range(min(num_looks, rest.waiting.counts[NUMBER])):
        node = next_node(rest.waiting)
        if rest.nodes[node, STANDS_FOR] != node:
            continue
        degree = gather(rest, node, rest.near)
        weight, total, largest = rest.weights[node] * ROUNDING, 0.0, 0.0
        for i in range(degree):
            total += rest.weights[rest.near[i]]
            largest = max(largest, rest.weights[rest.near[i]])
        is_in_corner = is_corner(rest, degree)
        if weight >= total or (is_in_corner and weight >= largest):
            choose(rest, node, degree)
        elif is_in_corner:
            depend(rest, node, degree)
        elif degree == 2 and weight >= largest:
            fold(rest, node)
        elif is_unconfined(rest, node, degree):
            remove(rest, node)


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
    rest.gain[0] += rest.weights[node]
    rest.counts[NUM_LEFT] -= 1 + degree
    for i in range(degree):
        rest.nodes[rest.near[i], STANDS_FOR] = GONE
    for i in range(degree):
        for j in range(gather(rest, rest.near[i], rest.far)):
            rest.nodes[rest.far[j], DEGREE] -= 1
            wait(rest.waiting, rest.far[j])


@compiled
def remove(rest: Rest, node: int) -> None:
    """Take a node out that is left out of the set or depends on others."""
    rest.nodes[node, STANDS_FOR] = GONE
    rest.counts[NUM_LEFT] -= 1
    for i in range(gather(rest, node, rest.far)):
        rest.nodes[rest.far[i], DEGREE] -= 1
        wait(rest.waiting, rest.far[i])


@compiled
def note(rest: Rest, node: int, first: int, second: int) -> None:
    """Write down how it is decided later whether a node is in the set."""
    place = rest.counts[NUM_FOLDS]
    rest.folds[place, 0], rest.folds[place, 1], rest.folds[place, 2] = node, first, second
    rest.counts[NUM_FOLDS] += 1


@compiled
def look_around(rest: Rest, node: int) -> None:
    """A node and its neighbours wait, unless these are many."""
    wait(rest.waiting, node)
    if rest.nodes[node, DEGREE] <= MOST_NEAR:
        for i in range(gather(rest, node, rest.far)):
            wait(rest.waiting, rest.far[i])


@compiled
def depend(rest: Rest, node: int, degree: int) -> None:
    """Take out a node and the `near` ones that weigh no more; it depends on the others, which become worth less."""
    weight = rest.weights[node]
    rest.gain[0] += weight
    remove(rest, node)
    for i in range(degree):
        other = rest.near[i]
        if rest.weights[other] <= weight * ROUNDING:
            remove(rest, other)
        else:
            rest.weights[other] -= weight
            note(rest, node, other, GONE)
    note(rest, node, GONE, GONE)
    for i in range(degree):
        if rest.nodes[rest.near[i], STANDS_FOR] != GONE:
            look_around(rest, rest.near[i])


@compiled
def fold(rest: Rest, node: int) -> None:
    """Fold a node and the two `near` ones into that of them with more neighbours."""
    nodes = rest.nodes
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
    note(rest, node, stays, goes)
    rest.counts[NUM_LEFT] -= 2
    rest.gain[0] += rest.weights[node]
    rest.weights[stays] += rest.weights[goes] - rest.weights[node]
    look_around(rest, stays)


@compiled
def is_unconfined(rest: Rest, node: int, degree: int) -> bool:
    """Whether some best set does without a node, whose neighbours are the `near` ones."""
    nodes, near, weights, inside = rest.nodes, rest.near, rest.weights, rest.inside
    members, num_members, num_near = np.empty(MOST_MEMBERS, np.int32), 1, degree
    members[0], nodes[node, INSIDE] = node, -1
    for i in range(degree):
        nodes[near[i], INSIDE], inside[near[i]] = 1, weights[node]
    is_wrong, follows = False, node
    while not is_wrong and follows != GONE:
        follows = GONE
        for i in range(num_near):
            # others have two candidates or more
            may_be_wrong = nodes[near[i], DEGREE] <= num_near + nodes[near[i], INSIDE]
            if may_be_wrong and inside[near[i]] <= weights[near[i]] * ROUNDING:
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
            inside[other] += weights[follows]
    for i in range(num_near):
        nodes[near[i], INSIDE], inside[near[i]] = 0, 0.0
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
        if stays == GONE:
            chosen[node] = True
        elif goes == GONE:
            chosen[node] &= ~chosen[stays]
        else:
            chosen[goes] = chosen[stays]
            chosen[node] = ~chosen[stays]
