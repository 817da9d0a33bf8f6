"""Files that keep generated graphs: written atomically, verified when read.

A file is a line naming the format, the SHA-256 of the rest, and the graphs' arrays laid end to end as safetensors.
Edges are stored as one count per lower node and one small integer per upper node, which takes an eighth of the memory.
"""

import hashlib
import logging
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from diffuco.foundation.errors import GraphWarning
from diffuco.foundation.files import replacing
from diffuco.graphs.graph import Graph

FORMAT = b"diffuco graphs 1\n"
DIGEST_SIZE = hashlib.sha256().digest_size

_log = logging.getLogger(__name__)


def cache_directory() -> Path:
    """`$DIFFUCO_CACHE` if set, else `diffuco` in the user's cache directory."""
    if chosen := os.environ.get("DIFFUCO_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diffuco"


def write_graphs(path: Path, graphs: Sequence[Graph]) -> None:
    """Write the graphs to a file, completely or not at all; do nothing if the directory cannot be written.

    Names and labels are not stored. Either all graphs have weights or none does.
    """
    payload = _encode(graphs)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(FORMAT + hashlib.sha256(payload).digest())
            file.write(payload)
    except OSError as error:
        _log.debug("graphs not cached: %s", error)


def read_graphs(path: Path) -> list[Graph] | None:
    """The graphs of a file, or None if it is missing or damaged; a `GraphWarning` reports damage."""
    try:
        with path.open("rb") as file:
            header = file.read(len(FORMAT) + DIGEST_SIZE)
            payload = file.read()
    except OSError as error:
        _log.debug("no cached graphs: %s", error)
        return None
    if header != FORMAT + hashlib.sha256(payload).digest():
        warnings.warn(GraphWarning(f"the cache file {path} is damaged; its graphs are generated again"), stacklevel=3)
        return None
    return _decode(payload)


def _encode(graphs: Sequence[Graph]) -> bytes:
    largest = max((graph.num_nodes for graph in graphs), default=0)
    node_type = np.uint16 if largest <= 2**16 else np.uint32
    arrays: dict[str, NDArray[Any]] = {
        "num_nodes": np.array([graph.num_nodes for graph in graphs], dtype=np.int64),
        "num_edges": np.array([graph.num_edges for graph in graphs], dtype=np.int64),
        "num_upper": _join([np.bincount(graph.edges[:, 0], minlength=graph.num_nodes) for graph in graphs], np.uint32),
        "upper": _join([graph.edges[:, 1].astype(node_type) for graph in graphs], node_type),
    }
    for name in ("edge_weights", "node_weights"):
        weights = [values for graph in graphs if (values := getattr(graph, name)) is not None]
        assert len(weights) in (0, len(graphs))
        if weights:
            arrays[name] = _join(weights, np.float64)
    return safetensors.numpy.save(arrays)


def _join(parts: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=dtype), *parts], dtype=dtype, casting="unsafe")


def _decode(payload: bytes) -> list[Graph]:
    """Decode graphs as views of arrays that they share, which is faster than many small allocations."""
    arrays = safetensors.numpy.load(payload)
    num_nodes, num_edges = arrays["num_nodes"], arrays["num_edges"]
    node_ends, edge_ends = np.cumsum(num_nodes), np.cumsum(num_edges)
    node_of_graph = np.arange(num_nodes.sum()) - np.repeat(node_ends - num_nodes, num_nodes)
    arrays["edges"] = np.empty((len(arrays["upper"]), 2), dtype=np.int64)
    arrays["edges"][:, 0] = np.repeat(node_of_graph, arrays["num_upper"])
    arrays["edges"][:, 1] = arrays["upper"]
    parts: dict[str, list[NDArray[Any]]] = {
        name: np.split(arrays[name], node_ends if name == "node_weights" else edge_ends)[:-1]
        for name in ("edges", "edge_weights", "node_weights")
        if name in arrays
    }
    columns = [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
    return [Graph(num_nodes=size, **column) for size, column in zip(num_nodes.tolist(), columns, strict=True)]
