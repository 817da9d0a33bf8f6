"""Independent sets of graphs whose nodes have two sides: compiled loops that match as many nodes as possible.

Of two matched nodes a set has at most one, and by Koenig's theorem some set has one of each pair and all the others.
Paths from unmatched nodes, every second edge of which is matched, make a matching larger; all shortest ones that do not
touch each other are found together (Hopcroft and Karp 1973).

Legend: N nodes, A entries of the adjacency, two per edge.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

Ints = NDArray[np.int64]
ShortInts = NDArray[np.int32]
Bools = NDArray[np.bool_]

NONE = -1


class Matching(NamedTuple):
    """Pairs of nodes, and how far each node is from those that are unmatched."""

    indptr: Ints
    indices: Ints
    is_first: Bools
    """Which side a node is on [N]."""
    mates: ShortInts
    """`NONE`: unmatched [N]."""
    levels: ShortInts
    """Edges from an unmatched node of the first side, along a path as above; `NONE`: no such path [N]."""
    turns: Ints
    """The entry of the adjacency that a node tries next [N]."""
    path: ShortInts
    """Nodes of the first side [N]."""


def make_matching(indptr: Ints, indices: Ints, is_first: Bools) -> Matching:
    """Some neighbour for each node of the first side, if one is unmatched."""
    num_nodes = len(is_first)
    nothing = np.full(num_nodes, NONE, np.int32)
    matching = Matching(
        indptr, indices, is_first, nothing, nothing.copy(), indptr[:-1].copy(), np.zeros(num_nodes, np.int32)
    )
    match_neighbors(matching)
    return matching


@compiled
def match_neighbors(matching: Matching) -> None:
    """Match nodes of the first side with unmatched neighbours."""
    indptr, indices, mates = matching.indptr, matching.indices, matching.mates
    for node in range(len(mates)):
        if matching.is_first[node]:
            for place in range(indptr[node], indptr[node + 1]):
                if mates[indices[place]] == NONE:
                    mates[indices[place]], mates[node] = node, indices[place]
                    break


@compiled
def is_largest(matching: Matching) -> bool:
    """Whether no path leads from one unmatched node to another one; sets the levels up to the end of the shortest."""
    indptr, indices, mates, levels = matching.indptr, matching.indices, matching.mates, matching.levels
    waiting, num_waiting, done, most = matching.path, 0, 0, len(mates)
    levels[:] = NONE
    for node in range(len(mates)):
        if matching.is_first[node] and mates[node] == NONE:
            levels[node] = 0
            waiting[num_waiting] = node
            num_waiting += 1
    while done < num_waiting and levels[waiting[done]] < most:
        node = waiting[done]
        done += 1
        for place in range(indptr[node], indptr[node + 1]):
            other = indices[place]
            if levels[other] == NONE:
                levels[other] = levels[node] + 1
                mate = mates[other]
                if mate == NONE:
                    most = levels[other]
                else:
                    levels[mate] = levels[other] + 1
                    waiting[num_waiting] = mate
                    num_waiting += 1
    return most == len(mates)


@compiled
def enlarge(matching: Matching) -> None:
    """Exchange matched and other edges on shortest paths between unmatched nodes that do not touch each other."""
    indptr, indices, mates, levels = matching.indptr, matching.indices, matching.mates, matching.levels
    turns, path = matching.turns, matching.path
    turns[:] = indptr[:-1]
    for start in range(len(mates)):
        if not matching.is_first[start] or mates[start] != NONE:
            continue
        path[0], length = start, 1
        while length:
            node = path[length - 1]
            if turns[node] == indptr[node + 1]:
                length -= 1
                if length:
                    turns[path[length - 1]] += 1
                continue
            other = indices[turns[node]]
            mate = mates[other]
            if mate == NONE:
                for i in range(length):
                    taken = indices[turns[path[i]]]
                    mates[path[i]], mates[taken] = taken, path[i]
                break
            if levels[mate] == levels[node] + 2:
                path[length] = mate
                length += 1
            else:
                turns[node] += 1


def largest_set(matching: Matching) -> Bools:
    """The set that belongs to a matching which `is_largest`. [N]."""
    is_reached: Bools = matching.levels != NONE
    return np.equal(is_reached, matching.is_first)
