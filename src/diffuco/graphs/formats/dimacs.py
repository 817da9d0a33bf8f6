"""DIMACS graphs (`.clq`, `.col`, `.mis`): `p edge N M`, `n v weight`, `e u v [weight]`, nodes from 1."""

from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.formats.base import (
    Format,
    build_graph,
    check_finite,
    check_not_negative,
    check_num_edges,
    checked_nodes,
    unless_all_one,
)
from diffuco.graphs.formats.headers import problem_line
from diffuco.graphs.formats.numbers import LineKinds, NumericLines, columns, edge_rows, read_numbers
from diffuco.graphs.formats.output import edge_columns, require_weights_not_negative, write_line, write_rows
from diffuco.graphs.formats.source import Source
from diffuco.graphs.graph import Graph


def read(source: Source) -> list[Graph]:
    """The one graph of a DIMACS file."""
    table = read_numbers(source, LineKinds(comments=b"c", headers=b"p", tags=b"en"))
    header = problem_line(source, table, ("edge", "edges", "col"))
    rows = edge_rows(source, table.select(table.tags == ord("e")), header.num_nodes, first=1)
    node_weights = _node_weights(source, table.select(table.tags == ord("n")), header.num_nodes)
    labels = range(1, header.num_nodes + 1)
    graph = build_graph(source, rows, header.num_nodes, node_weights=node_weights, labels=labels)
    check_num_edges(source, header, len(rows.pairs), graph.num_edges)
    return [graph]


def _node_weights(source: Source, table: NumericLines, num_nodes: int) -> NDArray[np.float64] | None:
    """Weights by node; a node without an `n` line weighs 1, as in unweighted files."""
    if not len(table.lines):
        return None
    cells = columns(source, table, (2,), "n NODE WEIGHT")
    nodes = checked_nodes(source, cells[:, 0], table.lines, num_nodes, first=1)
    check_finite(source, cells[:, 1], table.lines)
    check_not_negative(source, cells[:, 1], table.lines)
    weights = np.ones(num_nodes)
    weights[nodes] = cells[:, 1]
    return unless_all_one(weights)


def write(graph: Graph, out: BinaryIO) -> None:
    """Write `graph` with nodes numbered from 1."""
    write_line(out, f"p edge {graph.num_nodes} {graph.num_edges}")
    if graph.node_weights is not None:
        require_weights_not_negative(graph.node_weights)
        write_rows(out, [np.arange(1, graph.num_nodes + 1), graph.node_weights], prefix="n ")
    write_rows(out, edge_columns(graph, first=1), prefix="e ")


FORMAT = Format(
    "dimacs",
    (".clq", ".col", ".mis", ".dimacs"),
    "DIMACS clique and colouring files: 'p edge N M', then 'e u v' lines, nodes from 1",
    read,
    write,
    frozenset({"edge_weights", "node_weights"}),
)
