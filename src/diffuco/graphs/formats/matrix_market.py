"""Matrix Market adjacency matrices (`.mtx`): coordinate form, pattern, integer or real, symmetric or general.

The reader is our own, because arrays must be sized by the entries present and not by the number declared.
"""

from typing import BinaryIO

import numpy as np

from diffuco.foundation.wording import counted
from diffuco.graphs.formats.base import Format, Header, build_graph, check_num_edges, make_header
from diffuco.graphs.formats.directions import merge_directions
from diffuco.graphs.formats.numbers import LineKinds, NumericLines, edge_rows, read_numbers
from diffuco.graphs.formats.output import edge_columns, write_line, write_rows
from diffuco.graphs.formats.source import Source, quoted
from diffuco.graphs.graph import Graph

_FIELDS = {"pattern": 2, "integer": 3, "real": 3, "double": 3}
"""Number of columns of an entry, for each kind of value that the banner can name."""
_BANNER = "'%%MatrixMarket matrix coordinate real symmetric'"


def read(source: Source) -> list[Graph]:
    """The one graph of a matrix: every entry off the diagonal is an edge, in either triangle or in both."""
    width, is_general = _read_banner(source)
    header, table = _read_size(source, read_numbers(source, LineKinds(comments=b"%")))
    entries = edge_rows(source, table, header.num_nodes, first=1, widths=(width,))
    rows = entries
    if is_general:
        rows = merge_directions(source, entries, header.num_nodes, first=1, both=False)
    graph = build_graph(source, rows, header.num_nodes, labels=range(1, header.num_nodes + 1))
    check_num_edges(source, header, len(entries.pairs), graph.num_edges)
    return [graph]


def _read_banner(source: Source) -> tuple[int, bool]:
    """The number of columns of an entry, and whether both triangles are given."""
    first = next(source.blocks()).text.split(b"\n", 1)[0]
    words = first.decode("utf-8", "replace").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket":
        raise source.error(f"{quoted(first)} is not a Matrix Market banner; begin with {_BANNER}", 1)
    _, kind, layout, field, symmetry = words
    if (kind, layout) != ("matrix", "coordinate"):
        raise source.error(f"a {quoted(f'{kind} {layout}')}; only 'matrix coordinate' files hold graphs, convert it", 1)
    if field not in _FIELDS:
        raise source.error(f"the values are of kind {quoted(field)}; expected pattern, integer or real", 1)
    if symmetry not in ("general", "symmetric"):
        raise source.error(f"the symmetry is {quoted(symmetry)}; expected general or symmetric", 1)
    return _FIELDS[field], symmetry == "general"


def _read_size(source: Source, table: NumericLines) -> tuple[Header, NumericLines]:
    if not len(table.lines):
        raise source.error("no size line; write 'ROWS COLUMNS ENTRIES' after the banner")
    line = int(table.lines[0])
    if table.counts[0] != 3:
        raise source.error(
            f"the size line has {counted(table.counts[0], 'number')}; write 'ROWS COLUMNS ENTRIES'", line
        )
    num_rows, num_columns, num_entries = table.values[:3].tolist()
    if num_rows != num_columns:
        raise source.error(f"the matrix is {num_rows:g} by {num_columns:g}; give a square adjacency matrix", line)
    return make_header(source, (num_rows, num_entries), line), table.without_first()


def write(graph: Graph, out: BinaryIO) -> None:
    """Write the lower triangle of the symmetric adjacency matrix."""
    field = "pattern" if graph.edge_weights is None else "real"
    write_line(out, f"%%MatrixMarket matrix coordinate {field} symmetric")
    write_line(out, f"{graph.num_nodes} {graph.num_nodes} {graph.num_edges}")
    columns = edge_columns(graph, first=1)
    order = np.lexsort((columns[0], columns[1]))
    write_rows(out, [column[order] for column in (columns[1], columns[0], *columns[2:])])


FORMAT = Format(
    "matrix-market",
    (".mtx",),
    "Matrix Market coordinate matrices, pattern, integer or real, symmetric or general",
    read,
    write,
    frozenset({"edge_weights"}),
)
