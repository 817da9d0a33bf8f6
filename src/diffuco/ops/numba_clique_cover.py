"""Few cliques that share out all nodes, on the CPU: an independent set has at most one node of each.

This is a colouring of the complement by iterated greedy (Culberson 1992), in compiled loops. Nodes join, one after the
other, the first clique all of whose members they know. Then the cliques are put in another order, the nodes with them,
and it begins again: as the members of a clique stand together, there are never more cliques than before.

Legend: N nodes, A entries of the adjacency, two per edge.
"""

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

Ints = NDArray[np.int64]

LARGEST_FIRST, LAST_FIRST = 0.5, 0.7
"""Of all rounds, the share that begins with the largest cliques, and that and the share that turns the order round; the
rest takes any order."""


def share_out(indptr: Ints, indices: Ints) -> Ints:
    """The number of every node's clique, from 0 on, in one round: nodes with few neighbours come first. [N].

    >>> share_out(np.array([0, 2, 4, 7, 8]), np.array([1, 2, 0, 2, 0, 1, 3, 2])).tolist()  # a triangle 0 1 2 and 2 - 3
    [1, 1, 0, 0]
    """
    return share_in_order(indptr, indices, np.argsort(np.diff(indptr), kind="stable"))


@compiled
def share_again(indptr: Ints, indices: Ints, cliques: Ints, num_rounds: int, seed: int) -> Ints:
    """The same after further rounds, which are random for a seed."""
    np.random.seed(seed)
    for _ in range(num_rounds):
        sizes = np.bincount(cliques)
        kind = np.random.random()
        if kind < LARGEST_FIRST:
            place = np.random.random(len(sizes)) - sizes
        elif kind < LAST_FIRST:
            place = -np.arange(len(sizes)).astype(np.float64)
        else:
            place = np.random.random(len(sizes))
        cliques = share_in_order(indptr, indices, np.argsort(place[cliques], kind="mergesort"))
    return cliques


@compiled
def share_in_order(indptr: Ints, indices: Ints, order: Ints) -> Ints:
    """One round with the nodes in this order."""
    cliques = np.full(len(order), -1)
    sizes, known = np.zeros((2, len(order)), np.int64)  # of the cliques: their members, and those that a node knows
    number = 0
    for node in order:
        near = indices[indptr[node] : indptr[node + 1]]
        first = number
        for other in near:
            clique = cliques[other]
            if clique >= 0:
                known[clique] += 1
                if known[clique] == sizes[clique]:
                    first = min(first, clique)
        for other in near:
            if cliques[other] >= 0:
                known[cliques[other]] = 0
        cliques[node] = first
        sizes[first] += 1
        number += first == number
    return cliques
