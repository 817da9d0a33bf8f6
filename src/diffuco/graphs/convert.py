"""Conversion of graphs of other packages, matrices, edges and paths to `Graph`."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.graphs.formats import read_graph
from diffuco.graphs.formats.base import attribute_weights, unless_all_one, unless_counted
from diffuco.graphs.graph import Graph
from diffuco.graphs.pairs import (
    check_is_no_matrix,
    is_edge_list,
    is_frame,
    is_matrix_frame,
    read_array,
    read_coefficients,
    read_frame,
    read_pairs,
)


def as_graph(source: object) -> Graph:
    """Make a `Graph` from a path, an undirected graph of another package, a matrix, or edges in a list, array or frame.

    Edges are pairs of labels, or triples with a weight. The nodes are the labels that occur, as in a file of edges.

    Graphs of networkx and igraph keep their labels and the attribute `weight` of edges and nodes; a PyG `Data` keeps
    `edge_weight` and may list an edge in one direction or in both.

    An integer array with two columns is a list of edges, even if it is 2 by 2. Any other square array, dense or
    `scipy.sparse`, is an adjacency matrix whose entries are the weights, and so is a frame whose index equals its
    columns. Give a 2 by 2 matrix as floats: integers that may be edges or a matrix are refused.

    >>> as_graph([(0, 1), (1, 2)])
    Graph(num_nodes=3, num_edges=2)
    >>> as_graph([("Ann", "Bob"), ("Bob", "Cid")]).labels
    ['Ann', 'Bob', 'Cid']
    >>> as_graph(np.ones((4, 4)) - np.eye(4))
    Graph(num_nodes=4, num_edges=6)
    """
    if isinstance(source, Graph):
        return source
    if isinstance(source, str | Path):
        return read_graph(source)
    if isinstance(source, list | tuple | set | frozenset):
        return read_pairs(list(source)).graph() if source else Graph.from_edges([])
    if scipy.sparse.issparse(source):
        return _from_sparse(source)
    if isinstance(source, np.ndarray):
        return _from_array(source)
    if is_frame(source):
        return _from_frame(source)
    if all(hasattr(source, name) for name in ("nodes", "edges", "is_directed", "is_multigraph")):
        return _from_networkx(source)
    if all(hasattr(source, name) for name in ("vs", "es", "get_edgelist", "is_directed")):
        return _from_igraph(source)
    if all(hasattr(source, name) for name in ("edge_index", "num_nodes")):
        return _from_pyg(source)
    if isinstance(source, Mapping):
        raise InputError("a dictionary {(i, j): value} is a QUBO, for the problem qubo; give a list of triples here")
    raise InputError(
        f"cannot make a graph from a {type(source).__name__}; give a path, a list of pairs, a data frame of edges, a"
        " square numpy or scipy matrix, a networkx or igraph graph or a PyG Data"
    )


def _from_networkx(source: Any) -> Graph:
    """Only methods of the graph are used, so networkx need not be installed."""
    if source.is_directed():
        raise InputError("the networkx graph is directed; give source.to_undirected()")
    if source.is_multigraph():
        raise InputError("the networkx graph is a multigraph; give networkx.Graph(source)")
    labels = list(source.nodes)
    index = {label: position for position, label in enumerate(labels)}
    edges = [(index[u], index[v]) for u, v in source.edges]
    return Graph.from_edges(
        edges,
        len(labels),
        edge_weights=attribute_weights([weight for _, _, weight in source.edges(data="weight")], "an edge"),
        node_weights=attribute_weights([weight for _, weight in source.nodes(data="weight")], "a node"),
        labels=unless_counted(labels),
        name=str(getattr(source, "name", "")),
    )


def _from_igraph(source: Any) -> Graph:
    """Only methods of the graph are used, so igraph need not be installed."""
    if source.is_directed():
        raise InputError("the igraph graph is directed; give source.as_undirected()")
    if source.has_multiple():
        raise InputError("the igraph graph has parallel edges; call source.simplify() on a copy")
    return Graph.from_edges(
        source.get_edgelist(),
        source.vcount(),
        edge_weights=attribute_weights(source.es["weight"], "an edge") if "weight" in source.es.attributes() else None,
        node_weights=attribute_weights(source.vs["weight"], "a node") if "weight" in source.vs.attributes() else None,
        labels=source.vs["name"] if "name" in source.vs.attributes() else [],
    )


def _from_pyg(source: Any) -> Graph:
    """PyG may list an edge once per direction; these are merged. Tensors are only converted to numpy arrays."""
    ends = np.asarray(source.edge_index.cpu()).reshape(2, -1).T.astype(np.int64)
    pairs, first, edge = np.unique(np.sort(ends, axis=1), axis=0, return_index=True, return_inverse=True)
    values = getattr(source, "edge_weight", None)
    weights = None
    if values is not None:
        given = np.asarray(values.detach().cpu(), dtype=np.float64)
        if given.shape != (len(ends),):
            raise InputError(f"edge_weight has shape {given.shape}; give one weight per column of edge_index")
        if not np.array_equal(given, given[first][edge.ravel()], equal_nan=True):
            raise InputError("edge_weight differs between the two directions of an edge; give one weight for both")
        weights = unless_all_one(given[first])
    return Graph.from_edges(pairs, int(source.num_nodes), edge_weights=weights)


def _from_sparse(source: Any) -> Graph:
    entries = source.tocoo()
    _check_matrix(entries.shape, entries.dtype)
    matrix = entries.tocsr().astype(np.float64)
    matrix.eliminate_zeros()
    _check_finite(matrix.data)
    difference = (matrix - matrix.T).tocoo()
    _check_symmetric(difference.row[difference.data != 0], difference.col[difference.data != 0])
    upper = scipy.sparse.triu(matrix).tocoo()
    return _from_entries(upper.row, upper.col, upper.data, entries.shape[0])


def _from_array(source: NDArray[Any]) -> Graph:
    if source.ndim == 2 and source.shape[1] == 2 and np.issubdtype(source.dtype, np.integer):
        check_is_no_matrix(source)
        return read_array(source).graph()
    return _from_matrix(source)


def _from_frame(source: Any) -> Graph:
    if not is_matrix_frame(source):
        return read_frame(source).graph()
    return replace(_from_matrix(source.to_numpy()), labels=unless_counted(source.index.to_list()))


def _from_matrix(source: NDArray[Any]) -> Graph:
    _check_matrix(source.shape, source.dtype)
    matrix = source.astype(np.float64)
    _check_finite(matrix)
    _check_symmetric(*np.nonzero(matrix != matrix.T))
    rows, columns = np.nonzero(np.triu(matrix))
    return _from_entries(rows, columns, matrix[rows, columns], len(matrix))


def qubo_as_graph(source: Any) -> Graph:
    """A QUBO as a graph: a square matrix Q, symmetric or not, coefficients `{(i, j): value}` or triples (i, j, value).

    All stand for the sum of their entries times x_i x_j. Anything else is read by `as_graph`.

    >>> graph = qubo_as_graph(np.array([[-3.0, 4.0], [0.0, -1.0]]))
    >>> graph.node_weights.tolist(), graph.edge_weights.tolist()
    ([-3.0, -1.0], [4.0])
    >>> qubo_as_graph({("a", "a"): -3, ("a", "b"): 4, ("b", "b"): -1}).digest == graph.digest
    True
    """
    if isinstance(source, Mapping):
        pairs = read_coefficients(source)
    elif is_frame(source) and is_matrix_frame(source):
        return _from_qubo_matrix(scipy.sparse.coo_array(source.to_numpy()), unless_counted(source.index.to_list()))
    elif is_frame(source):
        pairs = read_frame(source)
    elif is_edge_list(source):
        pairs = read_pairs(source)
    else:
        is_matrix = scipy.sparse.issparse(source) or (isinstance(source, np.ndarray) and source.ndim == 2)
        is_square = is_matrix and source.shape[0] == source.shape[1]
        return _from_qubo_matrix(scipy.sparse.coo_array(source)) if is_square else as_graph(source)
    return pairs.graph() if pairs.weights is None else _from_qubo_matrix(pairs.matrix(), pairs.labels)


def _from_qubo_matrix(entries: Any, labels: Sequence[Hashable] = ()) -> Graph:
    _check_matrix(entries.shape, entries.dtype)
    matrix = entries.tocsr().astype(np.float64)
    _check_finite(matrix.data)
    upper = scipy.sparse.triu(matrix + matrix.T, k=1).tocoo()
    kept = upper.data != 0
    return Graph.from_edges(
        np.stack([upper.row[kept], upper.col[kept]], axis=1).astype(np.int64),
        num_nodes=entries.shape[0],
        edge_weights=upper.data[kept],
        node_weights=matrix.diagonal(),
        labels=labels,
    )


def _from_entries(rows: NDArray[Any], columns: NDArray[Any], values: NDArray[np.float64], num_nodes: int) -> Graph:
    pairs = np.stack([rows, columns], axis=1).astype(np.int64)
    return Graph.from_edges(pairs, num_nodes, edge_weights=unless_all_one(values))


def _check_matrix(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"the array has shape {shape}; give a square adjacency matrix or integer edges [E, 2]")
    if dtype.kind not in "biuf":
        raise InputError(f"the matrix has type {dtype}; give real numbers")


def _check_finite(values: NDArray[np.float64]) -> None:
    if not np.isfinite(values).all():
        raise InputError("the matrix has an entry that is NaN or infinite; give finite numbers, 0 for no edge")


def _check_symmetric(rows: NDArray[Any], columns: NDArray[Any]) -> None:
    if len(rows):
        i, j = int(rows[0]), int(columns[0])
        raise InputError(f"the matrix differs at ({i}, {j}) and ({j}, {i}); give a symmetric matrix")
