"""Merging of edges that a file lists in both directions, as adjacency lists and matrices do."""

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.formats.base import EdgeRows
from diffuco.graphs.formats.source import Source


def merge_directions(source: Source, rows: EdgeRows, num_nodes: int, *, first: int, both: bool) -> EdgeRows:
    """Keep one of (u, v) and (v, u), which must have the same weight; with `both`, each edge must be listed both ways.

    `first` is the number of the first node in the file, for messages. Exact repeats are kept for `build_graph`.
    """
    u, v = rows.pairs.T
    keys = np.minimum(u, v) * num_nodes + np.maximum(u, v)
    backward = u > v
    order = np.lexsort((backward, keys))
    sorted_keys = keys[order]
    first_of_edge = order[np.searchsorted(sorted_keys, sorted_keys, side="left")]
    last_of_edge = order[np.searchsorted(sorted_keys, sorted_keys, side="right") - 1]
    has_twin = np.empty(len(keys), dtype=bool)
    has_twin[order] = ~backward[first_of_edge] & backward[last_of_edge]

    if rows.weights is not None:
        differs = np.zeros(len(keys), dtype=bool)
        differs[order] = rows.weights[order] != rows.weights[first_of_edge]
        _refuse(source, rows, differs, "has two different weights; give it one weight", first)
    if both:
        _refuse(source, rows, ~has_twin & (u != v), "is listed at one end only; list it at both", first)
    kept = ~(backward & has_twin)
    weights = None if rows.weights is None else rows.weights[kept]
    return EdgeRows(rows.pairs[kept], weights, rows.lines[kept])


def _refuse(source: Source, rows: EdgeRows, bad: NDArray[np.bool_], why: str, first: int) -> None:
    index = np.flatnonzero(bad)
    if len(index):
        u, v = (rows.pairs[index[0]] + first).tolist()
        raise source.error(f"the edge of nodes {u} and {v} {why}", int(rows.lines[index[0]]) or None)
