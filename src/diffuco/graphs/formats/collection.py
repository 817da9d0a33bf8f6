"""Collections of many small graphs, read only: DGCNN text files and the raw files of the TU datasets."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.wording import counted
from diffuco.graphs.formats.base import Format, checked_nodes, make_header, warn
from diffuco.graphs.formats.numbers import LineKinds, NumericLines, columns, read_numbers
from diffuco.graphs.formats.source import COMPRESSIONS, Source, without_compression
from diffuco.graphs.graph import Graph

TU_COMPANIONS = (
    "_graph_indicator",
    *(f"_{part}_{kind}" for part in ("graph", "node", "edge") for kind in ("labels", "attributes")),
)
"""Endings of the names of the other files of a TU collection."""


def read_dgcnn(source: Source) -> list[Graph]:
    """The graphs of a DGCNN file: their number, then per graph `N label` and per node `tag degree neighbours...`."""
    table = read_numbers(source, LineKinds())
    if not len(table.lines) or table.counts[0] != 1:
        raise source.error("no number of graphs; begin with a line that holds only this number", 1)
    num_graphs = make_header(source, (table.values[0], 0), int(table.lines[0])).num_nodes
    starts = np.cumsum(table.counts) - table.counts
    graphs: list[Graph] = []
    num_loops, row = 0, 1
    while row < len(table.lines):
        if len(graphs) == num_graphs:
            raise source.error(
                f"data after {counted(num_graphs, 'graph')}; correct the first line", int(table.lines[row])
            )
        num_nodes = make_header(source, (table.values[starts[row]], 0), int(table.lines[row])).num_nodes
        if row + num_nodes >= len(table.lines):
            raise source.error(
                f"the file ends before {counted(num_nodes, 'node line')}; restore its end", int(table.lines[row])
            )
        pairs = _dgcnn_edges(source, table, starts, slice(row + 1, row + 1 + num_nodes))
        graph, loops = _simple_graph(pairs, num_nodes, f"{source.name}[{len(graphs)}]")
        graphs.append(graph)
        num_loops += loops
        row += 1 + num_nodes
    if len(graphs) != num_graphs:
        raise source.error(f"{counted(num_graphs, 'graph')} declared, {len(graphs)} found; correct the first line", 1)
    _warn_of_loops(source, num_loops)
    return graphs


def _dgcnn_edges(source: Source, table: NumericLines, starts: NDArray[np.int64], rows: slice) -> NDArray[np.int64]:
    """The edges on the node lines `rows`; numbers after the neighbours are node features and are not read."""
    counts, lines = table.counts[rows], table.lines[rows]
    short = np.flatnonzero(counts < 2)
    if len(short):
        raise source.error("a node line with only one number; write 'tag degree neighbours...'", int(lines[short[0]]))
    degrees = table.values[starts[rows] + 1]
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~((degrees >= 0) & (degrees <= counts - 2) & (degrees == np.floor(degrees))))
    if len(bad):
        raise source.error(
            f"degree {degrees[bad[0]]:g} is followed by {counted(counts[bad[0]] - 2, 'number')}; correct it",
            int(lines[bad[0]]),
        )
    num_neighbours = degrees.astype(np.int64)
    nodes = np.repeat(np.arange(len(lines)), num_neighbours)
    position = np.arange(len(nodes)) - np.repeat(np.cumsum(num_neighbours) - num_neighbours, num_neighbours)
    values = table.values[(starts[rows] + 2)[nodes] + position]
    return np.stack([nodes, checked_nodes(source, values, lines[nodes], len(lines), first=0)], axis=1)


def read_tu(source: Source) -> list[Graph]:
    """The graphs of `X_A.txt`; `X_graph_indicator.txt` in the same folder assigns its nodes to graphs."""
    indicator_path = tu_indicator(source.path)
    if indicator_path is None:
        raise source.error("no graph indicator in the same folder; put a file X_graph_indicator.txt beside X_A.txt")
    nodes = _read_indicator(indicator_path)
    table = read_numbers(source, LineKinds(separators=b","))
    cells = columns(source, table, (2,), "node, node")
    ends = checked_nodes(source, cells, table.lines, len(nodes.graph), first=1)
    graph_of_edge = nodes.graph[ends]
    bad = np.flatnonzero(graph_of_edge[:, 0] != graph_of_edge[:, 1])
    if len(bad):
        raise source.error("an edge between two graphs; correct it or the graph indicator", int(table.lines[bad[0]]))
    order = np.argsort(graph_of_edge[:, 0], kind="stable")
    bounds = np.searchsorted(graph_of_edge[order, 0], np.arange(len(nodes.sizes) + 1))
    local = nodes.position[ends[order]]
    name = source.name.removesuffix("_A")
    graphs, num_loops = [], 0
    for number, size in enumerate(nodes.sizes.tolist()):
        graph, loops = _simple_graph(local[bounds[number] : bounds[number + 1]], size, f"{name}[{number}]")
        graphs.append(graph)
        num_loops += loops
    _warn_of_loops(source, num_loops)
    return graphs


def tu_indicator(path: Path) -> Path | None:
    """The graph indicator in the folder of a TU adjacency file, compressed or not; None if there is none."""
    stem = Path(without_compression(path.name)).stem
    if not stem.endswith("_A"):
        return None
    names = [f"{stem.removesuffix('_A')}_graph_indicator.txt{suffix}" for suffix in ("", *COMPRESSIONS)]
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def is_tu_companion(path: Path) -> bool:
    """Whether a file belongs to a TU collection in the same folder, as `X_node_labels.txt` belongs to `X_A.txt`."""
    stem = Path(without_compression(path.name)).stem
    for ending in TU_COMPANIONS:
        if stem.endswith(ending):
            names = [f"{stem.removesuffix(ending)}_A.txt{suffix}" for suffix in ("", *COMPRESSIONS)]
            return any(path.with_name(name).is_file() for name in names)
    return False


class _NodesOfGraphs(NamedTuple):
    graph: NDArray[np.int64]
    """The graph of each node, counted from 0."""
    position: NDArray[np.int64]
    """Position of each node in its graph."""
    sizes: NDArray[np.int64]
    """Number of nodes of each graph."""


def _read_indicator(path: Path) -> _NodesOfGraphs:
    with Source(path) as source:
        table = read_numbers(source, LineKinds())
        numbers = columns(source, table, (1,), "the number of one graph")[:, 0]
        graph = checked_nodes(source, numbers, table.lines, min(len(numbers), source.max_nodes), first=1)
    sizes = np.bincount(graph)
    order = np.argsort(graph, kind="stable")
    position = np.empty(len(graph), dtype=np.int64)
    position[order] = np.arange(len(graph)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return _NodesOfGraphs(graph, position, sizes)


def _simple_graph(pairs: NDArray[np.int64], num_nodes: int, name: str) -> tuple[Graph, int]:
    """A graph from edges that may be listed in both directions, and the number of self-loops left out."""
    is_loop = pairs[:, 0] == pairs[:, 1]
    distinct = np.unique(np.sort(pairs[~is_loop], axis=1), axis=0)
    return Graph.from_edges(distinct, num_nodes, name=name), int(is_loop.sum())


def _warn_of_loops(source: Source, num_loops: int) -> None:
    if num_loops:
        warn(source, f"dropped {counted(num_loops, 'self-loop')}")


DGCNN = Format(
    "dgcnn",
    (".dgcnn.txt", ".dgcnn"),
    "DGCNN collections: number of graphs; per graph 'N label', then 'tag degree neighbours...' lines from 0",
    read_dgcnn,
)
TU = Format("tu", ("_a.txt",), "TU collections: X_A.txt with X_graph_indicator.txt beside it", read_tu)
