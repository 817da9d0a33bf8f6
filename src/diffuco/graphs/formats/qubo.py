"""QUBO problems, min x'Qx over binary x: Biq Mac `.sparse` and qbsolv `.qubo`.

In a QUBO's graph, the weight of node i is Q_ii and the weight of edge (i, j) is the whole coefficient of x_i x_j.
"""

from typing import BinaryIO

import numpy as np

from diffuco.graphs.formats.base import EdgeRows, Format, build_graph, check_num_edges, make_header
from diffuco.graphs.formats.headers import counts_line, problem_words, whole_number
from diffuco.graphs.formats.numbers import LineKinds, edge_rows, read_numbers
from diffuco.graphs.formats.output import edge_columns, write_line, write_rows
from diffuco.graphs.formats.source import Source
from diffuco.graphs.graph import Graph

_QBSOLV_HEADER = "'p qubo 0 NODES DIAGONALS ELEMENTS'"


def read_sparse(source: Source) -> list[Graph]:
    """The one QUBO of a Biq Mac file; Q is symmetric and each pair is given once, so q_ij counts twice."""
    header, table = counts_line(source, read_numbers(source, LineKinds()))
    entries = edge_rows(source, table, header.num_nodes, first=1, widths=(3,))
    check_num_edges(source, header, len(entries.pairs), len(entries.pairs))
    return [_qubo_graph(source, entries, header.num_nodes, first=1, factor=2.0)]


def read_qbsolv(source: Source) -> list[Graph]:
    """The one QUBO of a qbsolv file; every coefficient counts once, nodes are numbered from 0."""
    table = read_numbers(source, LineKinds(comments=b"c", headers=b"p"))
    words, line = problem_words(source, table, _QBSOLV_HEADER)
    if len(words) != 6 or words[1] != b"qubo":
        raise source.error(f"not a qbsolv problem line; write {_QBSOLV_HEADER}", line)
    num_nodes, num_diagonals, num_elements = (whole_number(source, word, line) for word in words[3:])
    header = make_header(source, (num_nodes, num_diagonals + num_elements), line)
    entries = edge_rows(source, table, header.num_nodes, first=0, widths=(3,))
    found_diagonals = np.count_nonzero(entries.pairs[:, 0] == entries.pairs[:, 1])
    found_elements = len(entries.pairs) - found_diagonals
    if num_diagonals != found_diagonals or num_elements != found_elements:
        raise source.error(
            f"diagonals and elements: {num_diagonals:g} and {num_elements:g} declared,"
            f" {found_diagonals} and {found_elements} found; correct the problem line",
            line,
        )
    return [_qubo_graph(source, entries, header.num_nodes, first=0, factor=1.0)]


def _qubo_graph(source: Source, entries: EdgeRows, num_nodes: int, *, first: int, factor: float) -> Graph:
    """The graph of a QUBO; a repeated coefficient is refused, because dropping or adding it changes the problem."""
    assert entries.weights is not None
    ends = np.sort(entries.pairs, axis=1)
    _, kept = np.unique(ends[:, 0] * num_nodes + ends[:, 1], return_index=True)
    if len(kept) < len(ends):
        repeat = int(np.setdiff1d(np.arange(len(ends)), kept)[0])
        i, j = (entries.pairs[repeat] + first).tolist()
        raise source.error(f"the coefficient of {i} and {j} is given twice; give it once", int(entries.lines[repeat]))
    is_diagonal = ends[:, 0] == ends[:, 1]
    diagonal = np.zeros(num_nodes)
    diagonal[ends[is_diagonal, 0]] = entries.weights[is_diagonal]
    off = ~is_diagonal
    rows = EdgeRows(ends[off], factor * entries.weights[off], entries.lines[off])
    return build_graph(source, rows, num_nodes, node_weights=diagonal, labels=range(first, num_nodes + first))


def write_sparse(graph: Graph, out: BinaryIO) -> None:
    """Write Q, nodes from 1, with half of each edge weight off the diagonal."""
    write_line(out, f"{graph.num_nodes} {np.count_nonzero(graph.node_weights_or(0.0)) + graph.num_edges}")
    _write_coefficients(graph, out, first=1, factor=0.5)


def write_qbsolv(graph: Graph, out: BinaryIO) -> None:
    """Write the coefficients of the energy, nodes from 0."""
    write_line(out, f"p qubo 0 {graph.num_nodes} {np.count_nonzero(graph.node_weights_or(0.0))} {graph.num_edges}")
    _write_coefficients(graph, out, first=0, factor=1.0)


def _write_coefficients(graph: Graph, out: BinaryIO, *, first: int, factor: float) -> None:
    diagonal = graph.node_weights_or(0.0)
    nodes = np.flatnonzero(diagonal)
    write_rows(out, [nodes + first, nodes + first, diagonal[nodes]])
    write_rows(out, [*edge_columns(graph, first=first)[:2], factor * graph.edge_weights_or(1.0)])


SPARSE = Format(
    "qubo-sparse",
    (".sparse",),
    "Biq Mac QUBO files: 'N M', then 'i j q' lines from 1; minimise x'Qx with Q symmetric, each pair given once",
    read_sparse,
    write_sparse,
    frozenset({"edge_weights", "node_weights"}),
)
QBSOLV = Format(
    "qbsolv",
    (".qubo",),
    "qbsolv QUBO files: 'p qubo 0 N DIAGONALS ELEMENTS', then 'i j coefficient' lines from 0",
    read_qbsolv,
    write_qbsolv,
    frozenset({"edge_weights", "node_weights"}),
)
