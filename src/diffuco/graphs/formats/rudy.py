"""Rudy and Gset MaxCut files: a line `N M`, then `u v [weight]` per edge, nodes from 1.

Gset files are named `G1.txt`, and `.txt` is otherwise an edge list; `looks_like_rudy` tells the two apart.
"""

from typing import BinaryIO

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.graphs.formats.base import Format, build_graph, check_num_edges, warn
from diffuco.graphs.formats.headers import counts_line
from diffuco.graphs.formats.numbers import LineKinds, edge_rows, number_blocks, read_numbers
from diffuco.graphs.formats.output import edge_columns, write_line, write_rows
from diffuco.graphs.formats.source import Source
from diffuco.graphs.graph import Graph


def read(source: Source) -> list[Graph]:
    """The one graph of a rudy file."""
    header, table = counts_line(source, read_numbers(source, LineKinds()))
    rows = edge_rows(source, table, header.num_nodes, first=1)
    graph = build_graph(source, rows, header.num_nodes, labels=range(1, header.num_nodes + 1))
    check_num_edges(source, header, len(rows.pairs), graph.num_edges)
    return [graph]


def looks_like_rudy(source: Source) -> bool:
    """Whether a `.txt` file begins with a header `N M` instead of an edge.

    The very first line must be two whole numbers without a sign, and one of two cases must hold. Either the next line
    has three columns, because an edge list never mixes two and three. Or all lines have two columns and the header is
    true: M lines follow, all with nodes 1 to N. A short edge list can meet the second case by chance, so a warning is
    given unless M exceeds N.
    """
    start = next(source.blocks()).text.split(b"\n", 2)
    if len(start) < 3 or not all(word.isdigit() for word in start[0].split()):
        return False
    widths = [len(line.split()) for line in start[:2]]
    if widths[0] != 2 or widths[1] not in (2, 3):
        return False
    if widths[1] == 3:
        return True
    num_nodes, num_edges = (float(word) for word in start[0].split())
    num_found = 0
    try:
        for position, block in enumerate(number_blocks(source, LineKinds())):
            table = block.without_first() if position == 0 else block
            num_found += len(table.lines)
            # An edge list is no reason to read on: most show within a block that their first line is no header.
            if num_found > num_edges or not np.all(table.counts == 2):
                return False
            if not np.all((table.values >= 1) & (table.values <= num_nodes)):
                return False
    except InputError:
        return False
    if num_found != num_edges:
        return False
    if num_edges <= num_nodes:
        remedy = f"{source.choose_format} edge-list if it is an edge"
        warn(source, f"line 1 is read as the numbers of nodes and edges; {remedy}")
    return True


def write(graph: Graph, out: BinaryIO) -> None:
    """Write `graph` with nodes numbered from 1 and a weight on every line."""
    write_line(out, f"{graph.num_nodes} {graph.num_edges}")
    write_rows(out, [*edge_columns(graph, first=1)[:2], graph.edge_weights_or(1.0)])


FORMAT = Format(
    "rudy",
    (".mc", ".rud", ".rudy"),
    "Gset, rudy and Biq Mac MaxCut files: 'N M', then 'u v weight' lines, nodes from 1 (also Gset's .txt)",
    read,
    write,
    frozenset({"edge_weights"}),
)
