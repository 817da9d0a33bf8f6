"""What a dominating set has to decide of a graph: compiled loops that drop choices and demands without losing anything.

A node is a *candidate* while it may be chosen, and *open* while it has to be dominated. At first, all are both.

- If an open node has one candidate around it, that is chosen, and no node around the candidate is open any more.
- A node is no candidate if another one is around all the open nodes that it is around, and weighs no more. The other
  can be chosen instead.
- A node is not open if all candidates around another open node are around it, too.

*Around* a node are the node itself and its neighbours.

Legend: N nodes, A entries of the adjacency, two per edge.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled
from diffuco.ops.numba_waiting import NUMBER, Waiting, all_wait, next_node, wait

Ints = NDArray[np.int64]
ShortInts = NDArray[np.int32]

CANDIDATE, OPEN = range(2)
"""Kinds of nodes. A node can be of both."""
IS, AROUND = 0, 2
"""Columns of `Rest.nodes`, plus a kind: whether the node is of the kind, and how many around it are."""
NONE = -1
NUM_LEFT = 0
"""Place in `Rest.counts`: candidates and open nodes."""


class Rest(NamedTuple):
    """What is left of a graph."""

    indptr: Ints
    neighbors: ShortInts
    """[A], in ascending order for each node."""
    weights: NDArray[np.float64]
    """[N]."""
    nodes: ShortInts
    """[N, 4]."""
    instead: ShortInts
    """The node itself, or the one that can be chosen instead, or `NONE` if none has to be [N]."""
    waiting: Waiting
    """Nodes to look at."""
    chosen: NDArray[np.bool_]
    """[N]."""
    counts: Ints


def make_rest(indptr: Ints, indices: Ints, weights: NDArray[np.float64]) -> Rest:
    """All of a graph, with every node to look at; the adjacency is symmetric and sorted."""
    num_nodes = len(indptr) - 1
    nodes = np.ones((num_nodes, 4), np.int32)
    nodes[:, AROUND:] += np.diff(indptr)[:, None]
    return Rest(
        indptr=indptr,
        neighbors=indices.astype(np.int32),
        weights=weights,
        nodes=nodes,
        instead=np.arange(num_nodes, dtype=np.int32),
        waiting=all_wait(num_nodes),
        chosen=np.zeros(num_nodes, np.bool_),
        counts=np.array([2 * num_nodes]),
    )


@compiled
def shrink(rest: Rest, num_looks: int) -> None:
    """Look at so many nodes that wait; nodes around those that change wait again."""
    for _ in range(min(num_looks, rest.waiting.counts[NUMBER])):
        node = next_node(rest.waiting)
        if rest.nodes[node, IS + OPEN] and rest.nodes[node, AROUND + CANDIDATE] == 1:
            choose(rest, scarcest(rest.indptr, rest.neighbors, rest.nodes, node, CANDIDATE))
        elif rest.nodes[node, IS + OPEN]:
            drop_implied(rest, node)
        if rest.nodes[node, IS + CANDIDATE]:
            rest.instead[node] = best_choice(rest, node)
            if rest.instead[node] != node:
                drop(rest, node, CANDIDATE)


@compiled
def drop(rest: Rest, node: int, kind: int) -> None:
    """A node is not of a kind any more; nodes of the other kind around it wait."""
    nodes, neighbors, waiting = rest.nodes, rest.neighbors, rest.waiting
    nodes[node, IS + kind] = 0
    rest.counts[NUM_LEFT] -= 1
    begin = rest.indptr[node]
    for e in range(begin - 1, rest.indptr[node + 1]):
        other = node if e < begin else neighbors[e]
        nodes[other, AROUND + kind] -= 1
        if nodes[other, IS + 1 - kind]:
            wait(waiting, other)


@compiled
def choose(rest: Rest, node: int) -> None:
    """Put a candidate into the set."""
    rest.chosen[node] = True
    drop(rest, node, CANDIDATE)
    begin = rest.indptr[node]
    for e in range(begin - 1, rest.indptr[node + 1]):
        other = node if e < begin else rest.neighbors[e]
        if rest.nodes[other, IS + OPEN]:
            drop(rest, other, OPEN)


@compiled
def scarcest(indptr: Ints, neighbors: ShortInts, nodes: ShortInts, node: int, kind: int) -> int:
    """Of the nodes of a kind around a node, one with the fewest of the other kind around it. There must be one."""
    found, fewest = NONE, 0
    begin = indptr[node]
    for e in range(begin - 1, indptr[node + 1]):
        other = node if e < begin else neighbors[e]
        number = nodes[other, AROUND + 1 - kind]
        if nodes[other, IS + kind] and (found == NONE or number < fewest):
            found, fewest = other, number
    return int(found)


@compiled
def best_choice(rest: Rest, node: int) -> int:
    """Another candidate that is around all open nodes that this one is around; else this one, `NONE` without any."""
    indptr, neighbors, nodes, weights = rest.indptr, rest.neighbors, rest.nodes, rest.weights
    if nodes[node, AROUND + OPEN] == 0:
        return NONE
    hardest = scarcest(indptr, neighbors, nodes, node, OPEN)
    begin = indptr[hardest]
    for e in range(begin - 1, indptr[hardest + 1]):
        other = hardest if e < begin else neighbors[e]
        is_rival = other != node and nodes[other, IS + CANDIDATE] and weights[other] <= weights[node]
        if is_rival and are_shared(indptr, neighbors, nodes, node, other, OPEN):
            return int(other)
    return node


@compiled
def drop_implied(rest: Rest, node: int) -> None:
    """Other open nodes that are dominated whatever dominates this one are not open any more."""
    indptr, neighbors, nodes = rest.indptr, rest.neighbors, rest.nodes
    fewest = scarcest(indptr, neighbors, nodes, node, CANDIDATE)
    begin = indptr[fewest]
    for e in range(begin - 1, indptr[fewest + 1]):
        other = fewest if e < begin else neighbors[e]
        is_other = other != node and nodes[other, IS + OPEN]
        if is_other and are_shared(indptr, neighbors, nodes, node, other, CANDIDATE):
            drop(rest, other, OPEN)


@compiled
def are_shared(indptr: Ints, neighbors: ShortInts, nodes: ShortInts, first: int, second: int, kind: int) -> bool:
    """Whether all nodes of a kind around the first are around the second, too."""
    if nodes[first, AROUND + kind] > nodes[second, AROUND + kind]:
        return False
    begin = indptr[first]
    for e in range(begin - 1, indptr[first + 1]):
        other = first if e < begin else neighbors[e]
        if nodes[other, IS + kind] and not is_around(indptr, neighbors, other, second):
            return False
    return True


@compiled
def is_around(indptr: Ints, neighbors: ShortInts, first: int, second: int) -> bool:
    """Whether the first node is the second one or a neighbour of it."""
    low, high = indptr[second], indptr[second + 1]
    while low < high:
        middle = (low + high) // 2
        if neighbors[middle] < first:
            low = middle + 1
        else:
            high = middle
    return first == second or (low < indptr[second + 1] and neighbors[low] == first)


@compiled
def follow(instead: ShortInts) -> None:
    """What can be chosen instead of a node is replaced by what can be chosen instead of that, and so on. [N]."""
    for node in range(len(instead)):
        other = node
        while other != NONE and instead[other] != other:
            other = instead[other]
        instead[node] = other
