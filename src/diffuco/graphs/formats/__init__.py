"""Reading and writing graphs: one function for all formats, which are chosen by suffix or by name.

The suffix decides, once `.gz`, `.bz2` or `.xz` is removed. Two cases need a look at the file: a `.txt` that begins with
a true header `N M` is a Gset file (`rudy.looks_like_rudy`), and `X_A.txt` is a TU collection if its graph indicator is
in the same folder. Any other `.txt` is an edge list.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.formats import (
    collection,
    csv_table,
    dimacs,
    edge_list,
    graphml,
    matrix_market,
    metis,
    networkx_files,
    npz,
    pace,
    qubo,
    rudy,
)
from diffuco.graphs.formats.base import Format
from diffuco.graphs.formats.output import open_for_writing
from diffuco.graphs.formats.source import MAX_NODES, Source, TextSource, without_compression
from diffuco.graphs.graph import Graph

__all__ = [
    "FORMATS",
    "TEXT_FORMATS",
    "Format",
    "parse_graph",
    "read_graph",
    "read_graphs",
    "register_format",
    "write_graph",
]

FORMATS: list[Format] = [
    dimacs.FORMAT,
    pace.FORMAT,
    metis.FORMAT,
    rudy.FORMAT,
    edge_list.FORMAT,
    edge_list.ADJACENCY,
    csv_table.CSV,
    csv_table.TSV,
    matrix_market.FORMAT,
    graphml.FORMAT,
    networkx_files.GEXF,
    networkx_files.GML,
    networkx_files.NODE_LINK,
    networkx_files.GRAPH6,
    npz.FORMAT,
    qubo.SPARSE,
    qubo.QBSOLV,
    collection.DGCNN,
    collection.TU,
]
TEXT_FORMATS = tuple(known for known in FORMATS if known not in (npz.FORMAT, collection.TU))
"""Formats in which one text is the whole input."""


def register_format(format: Format) -> None:
    """Let readers, `write_graph` and the command line find a format; raises InputError if its name or suffix is taken.

    Suffixes are in lower case.
    """
    taken = [part for known in FORMATS for part in (known.name, *known.suffixes)]
    for part in (format.name, *format.suffixes):
        if part in taken:
            raise InputError(f"there is a format '{part}' already; choose another name or suffix")
    FORMATS.append(format)


def read_graph(path: str | Path, format: str | Format | None = None) -> Graph:
    """Read a file that holds one graph; `-` is standard input, which needs `format`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "path.gr"
    ...     _ = path.write_text("p td 3 2\\n1 2\\n2 3\\n")
    ...     read_graph(path)
    Graph(name='path', num_nodes=3, num_edges=2)
    """
    graphs = read_graphs(path, format)
    if len(graphs) != 1:
        raise InputError(f"{path}: the file has {len(graphs)} graphs; give a file with one, or use read_graphs")
    return graphs[0]


def read_graphs(path: str | Path, format: str | Format | None = None) -> list[Graph]:
    """Read all graphs of a file; the graphs of a collection are named `FILE[0]`, `FILE[1]`, ...

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.dgcnn.txt"
    ...     _ = path.write_text("2\\n1 0\\n0 0\\n2 0\\n0 1 1\\n0 1 0\\n")
    ...     read_graphs(path)
    [Graph(name='two.dgcnn[0]', num_nodes=1, num_edges=0), Graph(name='two.dgcnn[1]', num_nodes=2, num_edges=1)]
    """
    chosen = _choose_format(path, format, is_input=True)
    with Source(path) as source:
        if format is None and _plain_name(path).endswith(".txt"):
            chosen = _choose_for_txt(source, chosen)
        return chosen.read(source)


def parse_graph(text: str, name: str, format: str | None = None, *, max_nodes: int = MAX_NODES) -> Graph:
    """Read the one graph in a text, as if it came from a file of this name; no file is opened.

    >>> parse_graph("p td 3 2\\n1 2\\n2 3\\n", "path.gr")
    Graph(name='path', num_nodes=3, num_edges=2)
    """
    chosen = _by_suffix(name) if format is None else _named(name, format, TEXT_FORMATS)
    if chosen is None:
        names = ", ".join(known.name for known in TEXT_FORMATS)
        raise InputError(f"{name}: the name does not tell the format; choose it from {names}")
    if chosen is collection.TU:
        chosen = edge_list.FORMAT
    if chosen not in TEXT_FORMATS:
        raise InputError(f"{name}: the format {chosen.name} cannot be given as text; convert the file")
    with TextSource(text, name, max_nodes=max_nodes) as source:
        if format is None and _plain_name(name).endswith(".txt"):
            chosen = _choose_for_txt(source, chosen)
        graphs = chosen.read(source)
    if len(graphs) != 1:
        raise InputError(f"{name}: the text has {len(graphs)} graphs; give a text with one")
    return graphs[0]


def write_graph(graph: Graph, path: str | Path, format: str | Format | None = None) -> None:
    """Write a graph, compressed if the suffix says so; the file appears whole or not at all.

    Weights and labels that the format cannot hold are left out with a `GraphWarning`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edge.clq.gz"
    ...     write_graph(Graph.from_edges([(0, 1)]), path)
    ...     read_graph(path)
    Graph(name='edge', num_nodes=2, num_edges=1)
    """
    chosen = _choose_format(path, format)
    if chosen.write is None:
        names = ", ".join(known.name for known in FORMATS if known.write)
        raise InputError(f"{path}: {chosen.name} files can only be read; choose one of {names}")
    lost = [part for part in ("edge_weights", "node_weights", "labels") if part not in chosen.holds]
    lost = [part for part in lost if _has(graph, part)]
    with open_for_writing(path) as out:
        chosen.write(graph, out)
    if lost:
        what = " and ".join(part.replace("_", " ") for part in lost)
        warnings.warn(GraphWarning(f"{path}: the format {chosen.name} cannot hold {what}; left out"), stacklevel=2)


def _choose_format(path: str | Path, name: str | Format | None, *, is_input: bool = False) -> Format:
    if isinstance(name, Format):
        return name
    if name is not None:
        return _named(path, name, FORMATS)
    if str(path) == "-":
        raise InputError("<stdin>: a pipe has no suffix; pass --format (format= in Python)")
    found = _by_suffix(path)
    if found is None and is_input:
        _check_is_file(Path(path))
    if found is None:
        suffixes = " ".join(suffix for known in FORMATS for suffix in known.suffixes)
        raise InputError(f"{path}: no format has this suffix; rename it to one of {suffixes}, or pass --format")
    return found


def _check_is_file(path: Path) -> None:
    """Refuse what has no suffix because it is no file."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder; check the path")
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give one of the files in it")


def _named(path: str | Path, name: str, among: Sequence[Format]) -> Format:
    for known in among:
        if known.name == name:
            return known
    raise InputError(f"{path}: no format {name!r}; choose one of {', '.join(known.name for known in among)}")


def _by_suffix(path: str | Path) -> Format | None:
    plain_name = _plain_name(path)
    matches = [(suffix, known) for known in FORMATS for suffix in known.suffixes if plain_name.endswith(suffix)]
    return max(matches, key=lambda match: len(match[0]))[1] if matches else None


def _choose_for_txt(source: Source, by_suffix: Format) -> Format:
    if by_suffix is collection.TU and collection.tu_indicator(source.path) is None:
        by_suffix = edge_list.FORMAT
    if by_suffix is edge_list.FORMAT and rudy.looks_like_rudy(source):
        return rudy.FORMAT
    return by_suffix


def _plain_name(path: str | Path) -> str:
    return without_compression(Path(path).name).lower()


def _has(graph: Graph, part: str) -> bool:
    """Whether leaving this part out loses something; consecutive numbers do not count as labels of the user."""
    return not isinstance(graph.labels, range) if part == "labels" else getattr(graph, part) is not None
