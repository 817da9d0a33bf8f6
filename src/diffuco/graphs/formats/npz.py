"""NumPy archives (`.npz`): our own arrays, or a sparse adjacency matrix saved by SciPy.

We extract the arrays ourselves: before anything is allocated, the size that a header declares is compared with the
bytes present, and pickled objects are never loaded. SciPy's own loader would trust the row pointers.
"""

import io
import math
import zipfile
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.graphs.formats.base import EdgeRows, Format, build_graph, make_header, unless_all_one
from diffuco.graphs.formats.directions import merge_directions
from diffuco.graphs.formats.output import text_labels
from diffuco.graphs.formats.source import Source, quoted
from diffuco.graphs.graph import Graph

Arrays = dict[str, NDArray[Any]]


class _TooLargeError(Exception):
    """The arrays take more memory than the file may ask for."""


def read(source: Source) -> list[Graph]:
    """The one graph of an archive."""
    with source.seekable() as stream:
        arrays = _read_arrays(source, stream)
    if "num_nodes" in arrays and "edges" in arrays:
        return [_own_graph(source, arrays)]
    if "format" in arrays and "shape" in arrays and "data" in arrays:
        return [_matrix_graph(source, arrays)]
    names = ", ".join(sorted(map(quoted, arrays))) or "none"
    raise source.error(
        f"the arrays are {names}; expected num_nodes and edges, or a matrix saved by scipy.sparse.save_npz"
    )


def _read_arrays(source: Source, stream: IO[bytes]) -> Arrays:
    arrays: Arrays = {}
    limit, size = source.expansion_limit(stream), 0
    try:
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                arrays[member.filename.removesuffix(".npy")] = array = _read_array(archive, member, limit - size)
                size += array.size * _bytes_each(array.dtype)
            return arrays
    except _TooLargeError:
        raise source.too_large(limit) from None
    except Exception as error:  # zipfile and the header parser raise almost any type on damaged bytes
        reason = " ".join(str(error).split())[:100]
        raise source.error(f"not a readable .npz archive ({reason}); write it again with numpy.savez") from error


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> NDArray[Any]:
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read_header(stream)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds Python objects")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size > member.file_size:
            raise ValueError(f"{member.filename} declares {size} bytes but has fewer")
        if math.prod(shape) * _bytes_each(dtype) > limit:
            raise _TooLargeError
        values = np.frombuffer(stream.read(size), dtype=dtype)
    return values.reshape(shape, order="F" if is_fortran else "C")


def _bytes_each(dtype: np.dtype[Any]) -> int:
    """Bytes of one entry once it is read: numbers are converted to eight bytes, however few the file gives them."""
    return max(8, dtype.itemsize)


def _own_graph(source: Source, arrays: Arrays) -> Graph:
    num_nodes = _integers(source, arrays, "num_nodes", any_shape=True)
    if len(num_nodes) != 1:
        raise source.error(f"num_nodes has {len(num_nodes)} values; save one whole number")
    header = make_header(source, (float(num_nodes[0]), 0), None)
    edges = np.empty((0, 2), dtype=np.int64)
    if arrays["edges"].size:
        if arrays["edges"].shape[1:] != (2,):
            raise source.error(f"edges has shape {arrays['edges'].shape}; save one row of two nodes per edge")
        edges = _integers(source, arrays, "edges", any_shape=True).reshape(-1, 2)
    if "labels" in arrays and (arrays["labels"].ndim != 1 or arrays["labels"].dtype.kind not in "iuU"):
        raise source.error("labels are not a list of strings or whole numbers; save such a list")
    labels = arrays["labels"].tolist() if "labels" in arrays else ()
    if len(set(labels)) < len(labels):
        raise source.error("a label appears twice; give each node its own")
    rows = EdgeRows(edges, _reals(source, arrays, "edge_weights"), np.zeros(len(edges), dtype=np.int64))
    node_weights = unless_all_one(_reals(source, arrays, "node_weights"))
    try:
        return build_graph(source, rows, header.num_nodes, node_weights=node_weights, labels=labels)
    except InputError as error:
        raise source.error(str(error)) from error


def _matrix_graph(source: Source, arrays: Arrays) -> Graph:
    """The graph of an adjacency matrix; the file may store either triangle or both."""
    layout = str(arrays["format"].ravel()[:1])
    shape = _integers(source, arrays, "shape").tolist()
    if len(shape) != 2 or shape[0] != shape[1]:
        raise source.error(f"the matrix has shape {tuple(shape)}; give a square adjacency matrix")
    num_nodes = make_header(source, (shape[0], 0), None).num_nodes
    if "csr" in layout or "csc" in layout:
        counts = np.diff(_integers(source, arrays, "indptr"))
        indices = _integers(source, arrays, "indices")
        if len(counts) != num_nodes or np.any(counts < 0) or counts.sum() != len(indices):
            raise source.error("the row pointers do not fit the matrix; save it again")
        ends = [np.repeat(np.arange(num_nodes), counts), indices]
    elif "coo" in layout:
        ends = [_integers(source, arrays, key) for key in ("row", "col")]
    else:
        raise source.error(
            f"the sparse matrix is stored as {quoted(layout)}; convert it with .tocsr() and save it again"
        )
    weights = _reals(source, arrays, "data")
    assert weights is not None
    if not len(ends[0]) == len(ends[1]) == len(weights):
        raise source.error("the arrays of the matrix differ in length; save it again")
    pairs = np.stack(ends, axis=1)
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < num_nodes:
        raise source.error(f"an index outside 0..{num_nodes - 1}; save the matrix again")
    if not np.all(np.isfinite(weights)):
        raise source.error("a value that is NaN or infinite; write finite numbers")
    rows = EdgeRows(pairs, weights, np.zeros(len(pairs), dtype=np.int64))
    return build_graph(source, merge_directions(source, rows, num_nodes, first=0, both=False), num_nodes)


def _integers(source: Source, arrays: Arrays, name: str, *, any_shape: bool = False) -> NDArray[np.int64]:
    """Whole numbers in one row; `any_shape` puts those of other shapes in one."""
    if name not in arrays:
        raise source.error(f"the array {name} is missing; save it too")
    if arrays[name].dtype.kind not in "iu":
        raise source.error(f"{name} has type {arrays[name].dtype}; save whole numbers")
    if not any_shape:
        _check_is_row(source, arrays, name)
    return arrays[name].astype(np.int64).ravel()


def _reals(source: Source, arrays: Arrays, name: str) -> NDArray[np.float64] | None:
    if name not in arrays:
        return None
    if arrays[name].dtype.kind not in "iufb":
        raise source.error(f"{name} has type {arrays[name].dtype}; save real numbers")
    _check_is_row(source, arrays, name)
    return arrays[name].astype(np.float64)


def _check_is_row(source: Source, arrays: Arrays, name: str) -> None:
    if arrays[name].ndim != 1:
        raise source.error(f"{name} has shape {arrays[name].shape}; save a list of numbers")


def write(graph: Graph, out: BinaryIO) -> None:
    """Write the arrays of `graph`; labels only if they are not 0, 1, 2, ..."""
    arrays: Arrays = {"num_nodes": np.array(graph.num_nodes), "edges": graph.edges}
    if graph.edge_weights is not None:
        arrays["edge_weights"] = graph.edge_weights
    if graph.node_weights is not None:
        arrays["node_weights"] = graph.node_weights
    if graph.labels != range(graph.num_nodes):
        arrays["labels"] = _label_array(graph)
    archive = io.BytesIO()  # pipes and compressors need bytes in order, an archive is not written in order
    np.savez_compressed(archive, allow_pickle=False, **arrays)
    out.write(archive.getbuffer())


def _label_array(graph: Graph) -> NDArray[Any]:
    if all(type(label) is int and abs(label) < 2**63 for label in graph.labels):
        return np.array(graph.labels, dtype=np.int64)
    # Strings in numpy lose zero characters at their end.
    return np.array(text_labels(graph, lambda label: not label.endswith("\0"), "rename the node"), dtype=np.str_)


FORMAT = Format(
    "npz",
    (".npz",),
    "NumPy archive of num_nodes, edges and optionally weights and labels, or a matrix saved by scipy.sparse.save_npz",
    read,
    write,
    frozenset({"edge_weights", "node_weights", "labels"}),
)
