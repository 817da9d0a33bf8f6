"""A graph that falls apart, in pieces: no edge joins two of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph

SMALL = 200
"""Largest components that share a piece."""
TOGETHER = 1000
"""Nodes of such a piece, or a few more."""


class Piece(NamedTuple):
    """Some nodes of a graph, in ascending order, and the graph on them, without labels."""

    nodes: NDArray[np.int64]
    graph: Graph


def pieces(graph: Graph) -> list[Piece]:
    """Pieces of several small components, then each larger component; from small to large.

    >>> paths = Graph.from_edges([(i, i + 1) for i in range(300) if i != 250])
    >>> [piece.graph for piece in pieces(paths)]
    [Graph(num_nodes=50, num_edges=49), Graph(num_nodes=251, num_edges=250)]
    """
    if graph.num_nodes <= SMALL:
        return [Piece(np.arange(graph.num_nodes), graph)]
    component = component_numbers(graph.num_nodes, graph.edges)
    sizes = np.bincount(component)
    if len(sizes) == 1:
        return [Piece(np.arange(graph.num_nodes), graph)]
    by_size = np.argsort(sizes, kind="stable")
    sizes = sizes[by_size]
    piece = np.cumsum(sizes) // TOGETHER
    is_large = sizes > SMALL
    piece[is_large] = piece[~is_large].max(initial=-1) + 1 + np.arange(np.count_nonzero(is_large))
    of_component = np.empty_like(piece)
    of_component[by_size] = piece
    return split(graph, of_component[component])


def component_numbers(num_nodes: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each node's component. [E, 2] -> [num_nodes].

    >>> component_numbers(4, np.array([(1, 3)])).tolist()
    [0, 1, 2, 1]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    matrix = coo_matrix((np.ones(len(edges), dtype=np.bool_), edges.T), shape=(num_nodes, num_nodes))
    return connected_components(matrix, directed=False)[1].astype(np.int64)


def split(graph: Graph, piece: NDArray[np.int64]) -> list[Piece]:
    """The pieces of a graph whose nodes have these numbers, in the order of the numbers.

    >>> [part.nodes.tolist() for part in split(Graph.from_edges([(0, 2), (1, 3)]), np.array([5, 1, 5, 1]))]
    [[1, 3], [0, 2]]
    """
    numbers, piece = np.unique(piece, return_inverse=True)
    order, ends = np.argsort(piece, kind="stable"), np.cumsum(np.bincount(piece))
    place = np.empty(graph.num_nodes, dtype=np.int64)
    place[order] = np.arange(graph.num_nodes) - np.repeat(ends - np.bincount(piece), np.bincount(piece))
    of_edge = piece[graph.edges[:, 0]]
    edge_order = np.argsort(of_edge, kind="stable")
    edge_ends = np.cumsum(np.bincount(of_edge, minlength=len(numbers)))

    def part(nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> Graph:
        return Graph(
            num_nodes=len(nodes),
            edges=place[graph.edges[edges]],
            edge_weights=None if graph.edge_weights is None else graph.edge_weights[edges],
            node_weights=None if graph.node_weights is None else graph.node_weights[nodes],
            name=graph.name,
        )

    nodes, edges = np.split(order, ends[:-1]), np.split(edge_order, edge_ends[:-1])
    return [Piece(some, part(some, rows)) for some, rows in zip(nodes, edges, strict=True)]
