"""Problems as integer linear programs, for exact solvers.

One binary variable per node; for cuts and QUBOs one more variable per edge, which is whole without being told to be:
cut edges and products are at a bound in every optimum for given nodes.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph

MAX_PAIRS = 3_000_000
"""A model with more constraints does not fit in memory."""

Values = NDArray[np.float64]
Rows = tuple[tuple[float, float, float, float], ...]
"""Rows (a, b, c, d) of constraints a x_u + b x_v + c y <= d for the variable y of an edge (u, v)."""
CUT_PAYS: Rows = ((-1, -1, 1, 0), (1, 1, 1, 2))
CUT_COSTS: Rows = ((1, -1, -1, 0), (-1, 1, -1, 0))
BOTH_PAYS: Rows = ((-1, 0, 1, 0), (0, -1, 1, 0))
BOTH_COSTS: Rows = ((1, 1, -1, 1),)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Minimise cost @ x with matrix @ x <= upper and x in {0, 1}; the first `num_nodes` entries are the nodes."""

    cost: Values
    matrix: "scipy.sparse.csr_array"
    upper: Values
    num_nodes: int
    is_symmetric: bool = False
    """Whether flipping all nodes changes nothing, so that the first one may be fixed."""


def over_pairs(cost: Values, pairs: NDArray[np.int64], *, factor: float, upper: float) -> LinearModel:
    """Constraints factor * (x_u + x_v) <= upper, one for every pair.

    >>> over_pairs(np.ones(3), np.array([(0, 1), (1, 2)]), factor=1.0, upper=1.0).matrix.toarray().tolist()
    [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    rows = np.repeat(np.arange(len(pairs)), 2)
    values = np.full(2 * len(pairs), factor)
    matrix = scipy.sparse.csr_array((values, (rows, pairs.ravel())), shape=(len(pairs), len(cost)))
    return LinearModel(cost, matrix, np.full(len(pairs), upper), len(cost))


def over_neighborhoods(cost: Values, graph: Graph) -> LinearModel:
    """At least one of every node and its neighbours."""
    n = graph.num_nodes
    u, v = graph.edges.T
    rows, columns = np.concatenate([u, v, np.arange(n)]), np.concatenate([v, u, np.arange(n)])
    matrix = scipy.sparse.csr_array((np.full(len(rows), -1.0), (rows, columns)), shape=(n, n))
    return LinearModel(cost, matrix, -np.ones(n), n)


def over_edges(node_cost: Values, graph: Graph, edge_cost: Values, *, pays: Rows, costs: Rows) -> LinearModel:
    """A variable per edge, held back by `pays` where it lowers the cost and forced by `costs` where it raises it.

    Flipping all nodes does not change a cut: its two sides have no names.
    """
    n, num_edges = graph.num_nodes, graph.num_edges
    blocks, upper = [], []
    for constraints, edges in ((pays, np.flatnonzero(edge_cost < 0)), (costs, np.flatnonzero(edge_cost > 0))):
        for of_u, of_v, of_edge, bound in constraints:
            rows = np.tile(np.arange(len(edges)), 3)
            columns = np.concatenate([graph.edges[edges, 0], graph.edges[edges, 1], n + edges])
            values = np.repeat([of_u, of_v, of_edge], len(edges)).astype(np.float64)
            block = scipy.sparse.csr_array((values, (rows, columns)), shape=(len(edges), n + num_edges))
            block.eliminate_zeros()
            blocks.append(block)
            upper.append(np.full(len(edges), bound))
    matrix = scipy.sparse.csr_array(scipy.sparse.vstack(blocks))
    cost = np.concatenate([node_cost, edge_cost])
    return LinearModel(cost, matrix, np.concatenate(upper), n, is_symmetric=pays is CUT_PAYS)


def pairs_without_edge(graph: Graph) -> NDArray[np.int64]:
    """Pairs of nodes that are not adjacent, [P, 2]; too many for memory are an InputError."""
    num_pairs = graph.num_nodes * (graph.num_nodes - 1) // 2 - graph.num_edges
    if num_pairs > MAX_PAIRS:
        raise InputError(f"{num_pairs} pairs without an edge; this method takes at most {MAX_PAIRS}; try rlsa")
    missing = np.triu(np.ones((graph.num_nodes, graph.num_nodes), dtype=np.bool_), k=1)
    missing[graph.edges[:, 0], graph.edges[:, 1]] = False
    return np.argwhere(missing)
