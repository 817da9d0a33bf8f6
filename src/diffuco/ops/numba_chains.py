"""Chains of nodes with two neighbours each: compiled loops that find three nodes in a row, and put them back.

Legend: N nodes, A entries of the adjacency, two per edge, T triples, S states.
"""

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@compiled
def find_triples(indptr: Ints, indices: Ints) -> Ints:
    """As many triples of each chain as it has. [T, 5].

    A row has the node before a triple, its three nodes, and the node that comes after all triples of the chain.
    """
    num_nodes, number = len(indptr) - 1, 0
    is_seen, chain = np.zeros(num_nodes, np.bool_), np.empty(num_nodes, np.int64)
    triples = np.empty((num_nodes // 3, 5), np.int64)
    for is_cycle in (False, True):  # a chain without ends begins anywhere
        for end in range(num_nodes):
            if is_cycle == (indptr[end + 1] - indptr[end] == 2) and not is_seen[end]:
                is_seen[end] = True
                for e in range(indptr[end], indptr[end + 1]):
                    length, after = follow(indptr, indices, end, indices[e], is_seen, chain)
                    taken = length - length % 3
                    after = chain[taken] if taken < length else after
                    for place in range(0, taken, 3):
                        triples[number, 0] = chain[place - 1] if place else end
                        triples[number, 1:4] = chain[place : place + 3]
                        triples[number, 4] = after
                        number += 1
    return triples[:number]


@compiled
def follow(indptr: Ints, indices: Ints, end: int, first: int, is_seen: Bools, chain: Ints) -> tuple[int, int]:
    """Write down the nodes of a chain from one end on, unless seen before; their number, and the other end."""
    length, before, node = 0, end, first
    while indptr[node + 1] - indptr[node] == 2 and not is_seen[node]:
        is_seen[node] = True
        chain[length] = node
        length += 1
        start = indptr[node]
        after = indices[start] if indices[start] != before else indices[start + 1]
        before, node = node, after
    return length, node


@compiled
def put_back(chosen: Bools, triples: Ints) -> None:
    """Choose the node of each triple that dominates what the nodes before and after it leave. [N, S] in place."""
    for before, first, middle, last, after in triples:
        for state in range(chosen.shape[1]):
            is_before, is_after = chosen[before, state], chosen[after, state]
            chosen[first, state] = is_after and not is_before
            chosen[middle, state] = is_before == is_after
            chosen[last, state] = is_before and not is_after
