"""PACE challenge graphs (`.gr`): `p td N M`, then a line `u v` per edge, nodes from 1."""

from typing import BinaryIO

from diffuco.graphs.formats.base import Format, build_graph, check_num_edges
from diffuco.graphs.formats.headers import problem_line
from diffuco.graphs.formats.numbers import LineKinds, edge_rows, read_numbers
from diffuco.graphs.formats.output import edge_columns, write_line, write_rows
from diffuco.graphs.formats.source import Source
from diffuco.graphs.graph import Graph


def read(source: Source) -> list[Graph]:
    """The one graph of a PACE file."""
    table = read_numbers(source, LineKinds(comments=b"c", headers=b"p"))
    header = problem_line(source, table, ("td", "ds", "tw", "vc"))
    rows = edge_rows(source, table, header.num_nodes, first=1, widths=(2,))
    graph = build_graph(source, rows, header.num_nodes, labels=range(1, header.num_nodes + 1))
    check_num_edges(source, header, len(rows.pairs), graph.num_edges)
    return [graph]


def write(graph: Graph, out: BinaryIO) -> None:
    """Write the structure of `graph` with nodes numbered from 1."""
    write_line(out, f"p td {graph.num_nodes} {graph.num_edges}")
    write_rows(out, edge_columns(graph, first=1)[:2])


FORMAT = Format("pace", (".gr",), "PACE challenge files: 'p td N M', then 'u v' lines, nodes from 1", read, write)
