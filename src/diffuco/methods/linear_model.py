"""Every problem as a mixed-integer linear model, for `highs` and `gurobi`.

One binary variable per node; for cuts and QUBOs one more variable per edge, which is an integer without being told to
be: cut edges and products are at a bound in every optimum for given nodes.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph

MAX_PAIRS = 3_000_000
"""More constraints than this do not fit in memory as a model."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Minimise cost @ x with matrix @ x <= upper and 0 <= x <= 1, the first `num_nodes` entries being integers."""

    cost: NDArray[np.float64]
    matrix: scipy.sparse.csr_array
    upper: NDArray[np.float64]
    num_nodes: int


def linear_model(problem: str, graph: Graph) -> LinearModel:
    """The model of a problem on a graph.

    >>> linear_model("mis", Graph.from_edges([(0, 1), (1, 2)])).matrix.toarray().tolist()
    [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    n, ones = graph.num_nodes, np.ones(graph.num_nodes)
    cost = ones if graph.node_weights is None else graph.node_weights
    if problem == "mis":
        return _over_pairs(-cost, graph.edges, 1.0, 1.0)
    if problem == "mvc":
        return _over_pairs(cost, graph.edges, -1.0, -1.0)
    if problem == "max-clique":
        return _over_pairs(-cost, pairs_without_edge(graph), 1.0, 1.0)
    if problem == "mds":
        u, v = graph.edges.T
        rows, columns = np.concatenate([u, v, np.arange(n)]), np.concatenate([v, u, np.arange(n)])
        matrix = scipy.sparse.csr_array((np.full(len(rows), -1.0), (rows, columns)), shape=(n, n))
        return LinearModel(cost, matrix, -ones, n)
    weights = np.ones(graph.num_edges) if graph.edge_weights is None else graph.edge_weights
    if problem == "max-cut":
        return _with_edges(np.zeros(n), graph, -weights, _CUT_PAYS, _CUT_COSTS)
    if problem == "qubo":
        diagonal = np.zeros(n) if graph.node_weights is None else graph.node_weights
        return _with_edges(diagonal, graph, weights, _BOTH_PAYS, _BOTH_COSTS)
    raise InputError(f"no linear model of '{problem}'")


def pairs_without_edge(graph: Graph) -> NDArray[np.int64]:
    """Pairs of nodes that are not adjacent, [P, 2]; too many for memory are an InputError."""
    num_pairs = graph.num_nodes * (graph.num_nodes - 1) // 2 - graph.num_edges
    if num_pairs > MAX_PAIRS:
        raise InputError(f"{num_pairs} pairs without an edge; this method takes at most {MAX_PAIRS}; try rlsa")
    missing = np.triu(np.ones((graph.num_nodes, graph.num_nodes), dtype=np.bool_), k=1)
    missing[graph.edges[:, 0], graph.edges[:, 1]] = False
    return np.argwhere(missing)


# Rows (a, b, c, d) of constraints a x_u + b x_v + c y <= d for the variable y of an edge (u, v).
_Rows = tuple[tuple[float, float, float, float], ...]
_CUT_PAYS: _Rows = ((-1, -1, 1, 0), (1, 1, 1, 2))
_CUT_COSTS: _Rows = ((1, -1, -1, 0), (-1, 1, -1, 0))
_BOTH_PAYS: _Rows = ((-1, 0, 1, 0), (0, -1, 1, 0))
_BOTH_COSTS: _Rows = ((1, 1, -1, 1),)


def _over_pairs(cost: NDArray[np.float64], pairs: NDArray[np.int64], factor: float, upper: float) -> LinearModel:
    """factor * (x_u + x_v) <= upper for every pair."""
    rows = np.repeat(np.arange(len(pairs)), 2)
    values = np.full(2 * len(pairs), factor)
    matrix = scipy.sparse.csr_array((values, (rows, pairs.ravel())), shape=(len(pairs), len(cost)))
    return LinearModel(cost, matrix, np.full(len(pairs), upper), len(cost))


def _with_edges(
    node_cost: NDArray[np.float64], graph: Graph, edge_cost: NDArray[np.float64], pays: _Rows, costs: _Rows
) -> LinearModel:
    """A variable per edge, held back by `pays` where it lowers the cost and forced by `costs` where it raises it."""
    n, num_edges = graph.num_nodes, graph.num_edges
    blocks, upper = [], []
    for constraints, edges in ((pays, np.flatnonzero(edge_cost < 0)), (costs, np.flatnonzero(edge_cost > 0))):
        for of_u, of_v, of_edge, bound in constraints:
            rows = np.tile(np.arange(len(edges)), 3)
            columns = np.concatenate([graph.edges[edges, 0], graph.edges[edges, 1], n + edges])
            values = np.repeat([of_u, of_v, of_edge], len(edges)).astype(np.float64)
            blocks.append(scipy.sparse.csr_array((values, (rows, columns)), shape=(len(edges), n + num_edges)))
            upper.append(np.full(len(edges), bound))
    matrix = scipy.sparse.csr_array(scipy.sparse.vstack(blocks))
    return LinearModel(np.concatenate([node_cost, edge_cost]), matrix, np.concatenate(upper), n)


def trivial(problem: str, graph: Graph) -> NDArray[np.bool_]:
    """A feasible answer for a solver that ran out of time with nothing: all nodes, or none."""
    return np.full(graph.num_nodes, problem in ("mvc", "mds"))
