"""An order of nodes on the CPU in which each has few later neighbours: compiled loops in time linear in the edges.

Legend: N nodes, E directed edges.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

MOST_GREEDY_LOOKS = 20_000_000
"""Neighbours that are looked at for the first clique: some hundredths of a second."""


class Order(NamedTuple):
    """A graph whose nodes are numbered in order of least degree, with the neighbours that come later, sorted."""

    nodes: Ints
    """[N], the number that a node has in the graph."""
    cores: Ints
    """[N], the largest number of later neighbours of this node and all before it."""
    starts: Ints
    later: Shorts


@compiled
def order_nodes(indptr: Ints, indices: Ints) -> Order:
    """Order the nodes of a graph: again and again, take one of least degree away (Matula and Beck 1983).

    >>> order_nodes(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])).cores.tolist()  # the path 0 - 1 - 2
    [1, 1, 1]
    """
    num_nodes = len(indptr) - 1
    nodes, places, degrees = np.empty(num_nodes, np.int64), np.empty(num_nodes, np.int64), np.empty(num_nodes, np.int64)
    begins = np.zeros(num_nodes + 1, np.int64)  # of the nodes of a degree in `nodes`
    for node in range(num_nodes):
        degrees[node] = indptr[node + 1] - indptr[node]
        begins[degrees[node] + 1] += 1
    for degree in range(num_nodes):
        begins[degree + 1] += begins[degree]
    for node in range(num_nodes):
        places[node] = begins[degrees[node]]
        nodes[places[node]] = node
        begins[degrees[node]] += 1
    for degree in range(num_nodes, 0, -1):
        begins[degree] = begins[degree - 1]
    begins[0] = 0
    cores, starts = np.empty(num_nodes, np.int64), np.zeros(num_nodes + 1, np.int64)
    for place in range(num_nodes):
        node = nodes[place]
        cores[place] = degrees[node]
        starts[place + 1] = starts[place]
        for e in range(indptr[node], indptr[node + 1]):
            other = indices[e]
            starts[place + 1] += places[other] > place
            if degrees[other] > degrees[node]:  # swap it with the first of its degree, which then begins behind it
                at = begins[degrees[other]]
                moved = nodes[at]
                nodes[at], nodes[places[other]] = other, moved
                places[moved], places[other] = places[other], at
                begins[degrees[other]] = at + 1
                degrees[other] -= 1
    later, fill = np.empty(len(indices) // 2, np.int32), starts.copy()
    for place in range(num_nodes):  # in order, so that later neighbours are sorted
        node = nodes[place]
        for e in range(indptr[node], indptr[node + 1]):
            other = places[indices[e]]
            if other < place:
                later[fill[other]] = place
                fill[other] += 1
    return Order(nodes, cores, starts, later)


@compiled
def greedy_clique(order: Order) -> Ints:
    """The largest of the cliques that begin at a node and take the first later neighbour that fits, again and again."""
    room = order.cores[-1] + 1 if len(order.cores) else 0
    best, clique, fit = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
    num_best, looks = 0, 0
    for node in range(len(order.nodes) - 1, -1, -1):
        if order.cores[node] < num_best or looks > MOST_GREEDY_LOOKS:
            break
        clique[0], size = node, 1
        num_fit = order.starts[node + 1] - order.starts[node]
        for i in range(num_fit):
            fit[i] = order.later[order.starts[node] + i]
        while num_fit and size + num_fit > num_best:
            clique[size] = fit[0]
            size += 1
            looks += num_fit
            i, e, end, num_kept = 1, order.starts[fit[0]], order.starts[fit[0] + 1], 0
            while i < num_fit and e < end:
                here, there = fit[i], order.later[e]
                if here == there:
                    fit[num_kept] = here
                    num_kept += 1
                i += here <= there
                e += here >= there
            num_fit = num_kept
        if size > num_best:
            num_best = size
            for i in range(size):
                best[i] = clique[i]
    return best[:num_best]
