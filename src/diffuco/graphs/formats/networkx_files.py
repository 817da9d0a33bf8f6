"""Formats that networkx reads: GML, GEXF, graph6, sparse6 and node-link JSON.

A graph of networkx takes a hundred times the memory of its file, so the files have limits of their own.
"""

import io
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint
from diffuco.graphs.formats.base import EdgeRows, Format, as_integers, attribute_weights, build_graph, unless_counted
from diffuco.graphs.formats.source import Source
from diffuco.graphs.formats.xml_stream import parse_xml
from diffuco.graphs.graph import Graph

MAX_BYTES = 64 * 2**20
MAX_GRAPH6_BYTES = 2 * 2**20
"""Longest line of graph6 or sparse6: a graph of 5,000 nodes, or 600,000 edges."""
MAX_GRAPH6_NODES = 1_000_000


def import_networkx() -> Any:
    """The package, which is an extra."""
    try:
        import networkx
    except ImportError as error:
        raise InputError(f"networkx is not installed; run {install_hint('networkx')}") from error
    return networkx


def read_gml(source: Source) -> list[Graph]:
    """The one graph of a GML file; labels that are missing or not distinct are replaced by ids."""
    text = _text(source)
    return [_graph_of(source, _parsed(source, "GML", lambda: import_networkx().parse_gml(text, label="id")))]


def read_gexf(source: Source) -> list[Graph]:
    """The one graph of a GEXF file."""
    text = _text(source)
    parse_xml(source, expat.ParserCreate())  # networkx would expand entities
    return [_graph_of(source, _parsed(source, "GEXF", lambda: import_networkx().read_gexf(io.BytesIO(text.encode()))))]


def read_node_link(source: Source) -> list[Graph]:
    """The one graph of a JSON file with nodes and links."""
    data = source.from_json(_text(source), "correct the file")
    links = "links" if isinstance(data, dict) and "links" in data else "edges"
    if not (isinstance(data, dict) and isinstance(data.get("nodes"), list) and isinstance(data.get(links), list)):
        raise source.error("no lists 'nodes' and 'links'; give JSON as networkx.node_link_data makes it")
    return [_graph_of(source, _parsed(source, "JSON", lambda: import_networkx().node_link_graph(data, edges=links)))]


def read_graph6(source: Source) -> list[Graph]:
    """The graphs of a file with one graph per line, in graph6 or sparse6."""
    lines = [
        (number, line.strip())
        for block in source.blocks()
        for number, line in enumerate(block.text.split(b"\n"), start=block.first_line)
        if line.strip()
    ]
    found = [_graph6_line(source, line, number) for number, line in lines]
    names = [source.name] if len(found) == 1 else [f"{source.name}[{position}]" for position in range(len(found))]
    return [_graph_of(source, graph, name) for graph, name in zip(found, names, strict=True)]


def _graph6_line(source: Source, line: bytes, number: int) -> Any:
    content = line.removeprefix(b">>graph6<<").removeprefix(b">>sparse6<<")
    is_sparse = content.startswith(b":")
    kind = "sparse6" if is_sparse else "graph6"
    if len(content) > MAX_GRAPH6_BYTES:
        raise source.error(f"more than {MAX_GRAPH6_BYTES // 2**20} MiB of {kind}; write an edge list", number)
    num_nodes = _order([byte - 63 for byte in content[is_sparse : 8 + is_sparse]])
    if num_nodes is None:
        raise source.error(f"this is not {kind}; correct the line or {source.choose_format}", number)
    source.check_num_nodes(num_nodes, number)
    if num_nodes > MAX_GRAPH6_NODES:
        raise source.error(f"{num_nodes} nodes; {kind} may have {MAX_GRAPH6_NODES}, write an edge list", number)
    networkx = import_networkx()
    read = networkx.from_sparse6_bytes if is_sparse else networkx.from_graph6_bytes
    return _parsed(source, kind, lambda: read(content), number)


def _order(values: list[int]) -> int | None:
    """The number of nodes: one value of 6 bits, three after a 63, or six after two of them."""
    if not values or not all(0 <= value <= 63 for value in values):
        return None
    skipped, count = (0, 1) if values[0] < 63 else (1, 3) if values[1:2] != [63] else (2, 6)
    bits = values[skipped : skipped + count]
    return sum(value << 6 * place for place, value in enumerate(reversed(bits))) if len(bits) == count else None


def _text(source: Source) -> str:
    parts: list[bytes] = []
    for block in source.blocks():
        parts.append(block.text)
        if sum(map(len, parts)) > MAX_BYTES:
            raise source.error(f"more than {MAX_BYTES // 2**20} MiB; write the graph as .edges or .graphml")
    return source.decoded(b"".join(parts), "bytes that are not UTF-8; convert the file to UTF-8")


def _parsed(source: Source, kind: str, parse: Callable[[], Any], line: int | None = None) -> Any:
    import_networkx()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse()
    except Exception as error:  # the readers of networkx raise almost any type on damaged files
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise source.error(f"not a readable {kind} graph ({reason}); correct the file", line) from error


def _graph_of(source: Source, found: Any, name: str | None = None) -> Graph:
    """Our graph of one of networkx; direction is ignored."""
    source.check_num_nodes(len(found))
    index = {node: position for position, node in enumerate(found)}
    pairs = np.array([(index[u], index[v]) for u, v in found.edges()], dtype=np.int64).reshape(-1, 2)
    try:
        rows = EdgeRows(pairs, _weights(found.edges(data="weight"), "an edge"), np.zeros(len(pairs), dtype=np.int64))
        node_weights = _weights(found.nodes(data="weight"), "a node")
        return build_graph(source, rows, len(index), node_weights=node_weights, labels=_labels(found), name=name)
    except InputError as error:
        raise source.error(str(error)) from error


def _weights(elements: Any, owner: str) -> NDArray[np.float64] | None:
    return attribute_weights([element[-1] for element in elements], owner)


def _labels(found: Any) -> Sequence[Hashable]:
    """The labels of the nodes if all have one of their own, else their ids; whole numbers become integers."""
    labels = [data.get("label") for _, data in found.nodes(data=True)]
    is_complete = all(isinstance(label, str | int) for label in labels) and len(set(labels)) == len(labels)
    chosen = labels if is_complete else list(found)
    numbers = as_integers(list(map(str, chosen)))
    if numbers is None:
        return chosen
    return unless_counted(numbers)


ALL = frozenset({"edge_weights", "node_weights", "labels"})

GML = Format(
    "gml",
    (".gml",),
    "GML: labels or ids, 'weight' of nodes and edges; direction is ignored",
    read_gml,
    holds=ALL,
)
GEXF = Format(
    "gexf",
    (".gexf",),
    "GEXF of Gephi: labels or ids, 'weight' of nodes and edges; direction is ignored",
    read_gexf,
    holds=ALL,
)
NODE_LINK = Format(
    "node-link",
    (".json",),
    "JSON of networkx.node_link_data and D3: lists 'nodes' with id and 'links' (or 'edges') with source and target",
    read_node_link,
    holds=ALL,
)
GRAPH6 = Format("graph6", (".g6", ".s6"), "graph6 and sparse6 of nauty, one graph per line", read_graph6)
