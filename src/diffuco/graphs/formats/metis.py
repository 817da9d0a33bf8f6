"""METIS graphs (`.graph`): a header `N M [fmt [ncon]]`, then the neighbours of one node per line, nodes from 1.

The digits of `fmt` say what a line holds besides neighbours: 100 a vertex size, 10 a node weight, 1 an edge weight
after every neighbour. Shapes: N nodes, A neighbours of all nodes together.
"""

from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.wording import counted
from diffuco.graphs.formats.base import (
    EdgeRows,
    Format,
    Header,
    build_graph,
    check_finite,
    check_not_negative,
    check_num_edges,
    checked_nodes,
    make_header,
    unless_all_one,
    warn,
)
from diffuco.graphs.formats.directions import merge_directions
from diffuco.graphs.formats.numbers import LineKinds, NumericLines, read_numbers
from diffuco.graphs.formats.output import number_texts, require_weights_not_negative, write_line
from diffuco.graphs.formats.source import Source
from diffuco.graphs.graph import Graph

_FORMATS = {float(code) for code in ("0", "1", "10", "11", "100", "101", "110", "111")}


class _Flags(NamedTuple):
    sizes: bool
    node_weights: bool
    edge_weights: bool


def read(source: Source) -> list[Graph]:
    """The one graph of a METIS file; each edge must be listed at both of its ends."""
    header, flags, table = _read_header(source, read_numbers(source, LineKinds(comments=b"%", keep_blank=True)))
    num_nodes = header.num_nodes
    table = _node_lines(source, header, table)
    node_weights, table = _split_node_columns(source, table, flags)
    mentions = _neighbour_rows(source, table, flags)
    rows = merge_directions(source, mentions, num_nodes, first=1, both=True)
    labels = range(1, num_nodes + 1)
    graph = build_graph(source, rows, num_nodes, node_weights=unless_all_one(node_weights), labels=labels)
    check_num_edges(source, header, len(mentions.pairs), graph.num_edges)
    if flags.sizes:
        warn(source, "vertex sizes are ignored")
    return [graph]


def _node_lines(source: Source, header: Header, table: NumericLines) -> NumericLines:
    """The node lines; there must be as many as declared, and only empty lines may follow."""
    filled = np.flatnonzero(table.counts)
    num_lines = max(header.num_nodes, int(filled[-1]) + 1 if len(filled) else 0)
    if num_lines > header.num_nodes or len(table.lines) < header.num_nodes:
        found = counted(min(num_lines, len(table.lines)), "line")
        raise source.error(
            f"{counted(header.num_nodes, 'node')} declared, {found} of neighbours found;"
            " write one line per node, an empty one for a node without neighbours",
            header.line,
        )
    return table.select(np.arange(len(table.lines)) < header.num_nodes)


def _read_header(source: Source, table: NumericLines) -> tuple[Header, _Flags, NumericLines]:
    while len(table.lines) and not table.counts[0]:
        table = table.without_first()
    if not len(table.lines):
        raise source.error("no header line; begin with the numbers of nodes and edges")
    line, width = int(table.lines[0]), int(table.counts[0])
    if not 2 <= width <= 4:
        raise source.error(
            f"the header has {counted(width, 'number')}; write 'NODES EDGES [fmt [ncon]]', or {source.choose_format}",
            line,
        )
    numbers = table.values[:width].tolist()
    header = make_header(source, numbers[:2], line)
    code = numbers[2] if width > 2 else 0.0
    if code not in _FORMATS:
        raise source.error(f"fmt {code:g}; write three digits that are 0 or 1, as in 011", line)
    if width == 4 and numbers[3] not in (0, 1):
        raise source.error(f"{numbers[3]:g} weights per node; keep one weight per node and write 1", line)
    digits = int(code)
    has_weights = digits // 10 % 10 == 1 and not (width == 4 and numbers[3] == 0)
    return header, _Flags(digits >= 100, has_weights, digits % 10 == 1), table.without_first()


def _split_node_columns(
    source: Source, table: NumericLines, flags: _Flags
) -> tuple[NDArray[np.float64] | None, NumericLines]:
    """Take the vertex size and the node weight off the front of every line."""
    num_columns = flags.sizes + flags.node_weights
    short = np.flatnonzero(table.counts < num_columns)
    if len(short):
        raise source.error(
            f"{counted(num_columns, 'number')} must come before the neighbours; write the vertex size and weight",
            int(table.lines[short[0]]),
        )
    if not num_columns:
        return None, table
    starts = np.cumsum(table.counts) - table.counts
    weights = table.values[starts + num_columns - 1] if flags.node_weights else None
    if weights is not None:
        check_finite(source, weights, table.lines)
        check_not_negative(source, weights, table.lines)
    is_neighbour = np.ones(len(table.values), dtype=bool)
    for column in range(num_columns):
        is_neighbour[starts + column] = False
    counts = table.counts - num_columns
    return weights, NumericLines(table.lines, counts, table.values[is_neighbour], table.tags, table.headers)


def _neighbour_rows(source: Source, table: NumericLines, flags: _Flags) -> EdgeRows:  # A rows
    """Every mention of a neighbour as a directed edge."""
    width = 2 if flags.edge_weights else 1
    odd = np.flatnonzero(table.counts % width)
    if len(odd):
        raise source.error("a neighbour without a weight; write 'neighbour weight' pairs", int(table.lines[odd[0]]))
    nodes = np.repeat(np.arange(len(table.lines)), table.counts // width)
    lines = table.lines[nodes]
    neighbours = checked_nodes(source, table.values[::width], lines, len(table.lines), first=1)
    weights = table.values[1::2] if flags.edge_weights else None
    if weights is not None:
        check_finite(source, weights, lines)
    return EdgeRows(np.stack([nodes, neighbours], axis=1), weights, lines)


def write(graph: Graph, out: BinaryIO) -> None:
    """Write `graph` with one line of neighbours per node."""
    has_node_weights, has_edge_weights = graph.node_weights is not None, graph.edge_weights is not None
    code = f" 0{int(has_node_weights)}{int(has_edge_weights)}" if has_node_weights or has_edge_weights else ""
    write_line(out, f"{graph.num_nodes} {graph.num_edges}{code}")
    cells = number_texts(graph.csr.indices + 1)
    if has_edge_weights:
        cells = [f"{node} {weight}" for node, weight in zip(cells, number_texts(graph.csr.weights), strict=True)]
    fronts = [""] * graph.num_nodes
    if graph.node_weights is not None:
        require_weights_not_negative(graph.node_weights)
        fronts = [f"{weight} " for weight in number_texts(graph.node_weights)]
    bounds = graph.csr.indptr.tolist()
    for front, start, end in zip(fronts, bounds[:-1], bounds[1:], strict=True):
        write_line(out, (front + " ".join(cells[start:end])).rstrip())


FORMAT = Format(
    "metis",
    (".graph", ".metis"),
    "METIS and Chaco files: 'N M [fmt]', then one line of neighbours per node, nodes from 1",
    read,
    write,
    frozenset({"edge_weights", "node_weights"}),
)
