"""GraphML: node ids become labels, data named `weight` becomes weights, and direction is ignored."""

import math
from dataclasses import replace
from typing import BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.formats.base import EdgeRows, Format, as_integers, build_graph, unless_all_one
from diffuco.graphs.formats.numbers import NUMBER
from diffuco.graphs.formats.output import number_texts, text_labels, write_line
from diffuco.graphs.formats.source import Source, quoted
from diffuco.graphs.formats.xml_stream import parse_xml
from diffuco.graphs.graph import Graph

_MAX_TEXT = 1000
"""Longest text that is kept; weights are short, and longer text must not fill the memory."""


def read(source: Source) -> list[Graph]:
    """All graphs of a GraphML file."""
    reader = _Reader(source)
    parse_xml(source, reader.parser)
    if not reader.graphs:
        raise source.error("no <graph> element; check that this is GraphML")
    if len(reader.graphs) == 1:
        return reader.graphs
    return [replace(graph, name=f"{graph.name}[{number}]") for number, graph in enumerate(reader.graphs)]


class _Weights:
    """The weights of the nodes or of the edges of one graph, if the file gives any."""

    def __init__(self, default: float | None) -> None:
        self.default = default
        self.given: dict[int, float] = {}

    def array(self, length: int) -> NDArray[np.float64] | None:
        """One weight per node or edge; missing weights get the default of the file, or 1."""
        if self.default is None and not self.given:
            return None
        values = np.full(length, 1.0 if self.default is None else self.default)
        values[list(self.given.keys())] = list(self.given.values())
        return values


class _Reader:
    """Handlers of the XML stream, and the parts of the current graph that they have collected."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.graphs: list[Graph] = []
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.weight_keys: dict[str, str] = {}
        """Maps the id of a key to the kind of element it is for: node, edge or all."""
        self.defaults: dict[str, float] = {}
        self.key = ""
        self.text: str | None = None
        """Text of the current weight element so far; None outside of one."""
        self.inside = ""
        self.in_graph = False

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if name == "key":
            self.key = self._attribute(name, attributes, "id")
            if attributes.get("attr.name", "").lower() == "weight":
                self.weight_keys[self.key] = attributes.get("for", "all")
        elif name in ("data", "default"):
            self.key = self._attribute(name, attributes, "key") if name == "data" else self.key
            self.text = "" if self.key in self.weight_keys else None
        elif name == "graph":
            self._start_graph()
        elif name in ("node", "edge", "hyperedge") and not self.in_graph:
            raise self._error(f"a <{name}> outside of a <graph>; move it inside")
        elif name == "node":
            self._start_node(attributes)
        elif name == "edge":
            self._start_edge(attributes)
        elif name == "hyperedge":
            raise self._error("a hyperedge; give a graph whose edges have two ends")

    def _start_graph(self) -> None:
        if self.in_graph:
            raise self._error("a graph inside a graph; give a flat graph")
        self.in_graph = True
        self.nodes: dict[str, int] = {}
        self.ends: list[tuple[str, str]] = []
        self.lines: list[int] = []
        self.weights = {kind: _Weights(self.defaults.get(kind)) for kind in ("node", "edge")}

    def _start_node(self, attributes: dict[str, str]) -> None:
        label = self._attribute("node", attributes, "id")
        if label in self.nodes:
            raise self._error(f"node {quoted(label)} appears a second time; keep one")
        self.nodes[label] = len(self.nodes)
        self.source.check_num_nodes(len(self.nodes), self.parser.CurrentLineNumber)
        self.inside = "node"

    def _start_edge(self, attributes: dict[str, str]) -> None:
        self.ends.append((self._attribute("edge", attributes, "source"), self._attribute("edge", attributes, "target")))
        self.lines.append(self.parser.CurrentLineNumber)
        self.inside = "edge"

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text = (self.text + text)[:_MAX_TEXT]

    def _end(self, tag: str) -> None:
        name = tag.rpartition("}")[2]
        if name in ("data", "default") and self.text is not None:
            self._end_weight(name, self._weight(self.text))
            self.text = None
        elif name in ("node", "edge"):
            self.inside = ""
        elif name == "graph":
            self._end_graph()

    def _end_weight(self, name: str, weight: float) -> None:
        kind = self.weight_keys[self.key]
        if name == "default":
            self.defaults.update(dict.fromkeys(("node", "edge") if kind == "all" else (kind,), weight))
        elif self.inside and kind in (self.inside, "all"):
            position = len(self.nodes if self.inside == "node" else self.ends) - 1
            self.weights[self.inside].given[position] = weight

    def _end_graph(self) -> None:
        self.in_graph = False
        pairs = np.empty((len(self.ends), 2), dtype=np.int64)
        for position, ends in enumerate(self.ends):
            for column, label in enumerate(ends):
                if label not in self.nodes:
                    problem = f"an edge to {quoted(label)}, which is not a node; add the node or correct the edge"
                    raise self.source.error(problem, self.lines[position])
                pairs[position, column] = self.nodes[label]
        rows = EdgeRows(pairs, self.weights["edge"].array(len(pairs)), np.array(self.lines, dtype=np.int64))
        node_weights = unless_all_one(self.weights["node"].array(len(self.nodes)))
        labels = list(self.nodes)
        graph = build_graph(
            self.source, rows, len(labels), node_weights=node_weights, labels=as_integers(labels) or labels
        )
        self.graphs.append(graph)

    def _weight(self, text: str) -> float:
        if not NUMBER.fullmatch(text.strip().encode()) or not math.isfinite(float(text)):
            raise self._error(f"weight {quoted(text)}; write a finite number")
        return float(text)

    def _attribute(self, element: str, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            raise self._error(f"a <{element}> without {name}; add it")
        return attributes[name]

    def _error(self, problem: str) -> Exception:
        return self.source.error(problem, self.parser.CurrentLineNumber)


def write(graph: Graph, out: BinaryIO) -> None:
    """Write `graph` with its labels as node ids and its weights as data."""
    labels = [quoteattr(label) for label in text_labels(graph, _fits_xml, "write .npz")]
    write_line(out, '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">')
    for kind in ("node", "edge"):
        write_line(out, f'  <key id="{kind}_weight" for="{kind}" attr.name="weight" attr.type="double"/>')
    write_line(out, '  <graph edgedefault="undirected">')
    for label, weight in zip(labels, _weight_elements("node", graph.node_weights, graph.num_nodes), strict=True):
        write_line(out, f"    <node id={label}>{weight}</node>")
    weights = _weight_elements("edge", graph.edge_weights, graph.num_edges)
    for (u, v), weight in zip(graph.edges.tolist(), weights, strict=True):
        write_line(out, f"    <edge source={labels[u]} target={labels[v]}>{weight}</edge>")
    write_line(out, "  </graph>\n</graphml>")


def _weight_elements(kind: str, weights: NDArray[np.float64] | None, length: int) -> list[str]:
    if weights is None:
        return [""] * length
    return [f'<data key="{kind}_weight">{text}</data>' for text in number_texts(weights)]


def _fits_xml(label: str) -> bool:
    return label.isprintable() and "\ufffe" not in label and "\uffff" not in label


FORMAT = Format(
    "graphml",
    (".graphml",),
    "GraphML: node ids as labels, 'weight' data of nodes and edges; direction is ignored",
    read,
    write,
    frozenset({"edge_weights", "node_weights", "labels"}),
)
