"""Many graphs as one set of tensors: concatenated sparse rows or padded dense matrices behind one interface."""

from collections.abc import Sequence

import torch

from diffuco.graphs.batch.base import Batch
from diffuco.graphs.batch.dense import DenseBatch, neighbor_lists
from diffuco.graphs.batch.sparse import SparseBatch
from diffuco.graphs.graph import Graph

__all__ = ["Batch", "DenseBatch", "SparseBatch", "make_batch", "neighbor_lists"]

DENSE_ABOVE_DENSITY = 0.05
"""On a CPU a dense product beats the sparse sum above this share of possible edges."""
DENSE_BYTES_PER_GRAPH = 2**28
"""Largest adjacency matrix that is stored densely."""


def make_batch(graphs: Sequence[Graph], device: torch.device | str = "cpu") -> Batch:
    """Collect graphs in the kind of batch that is faster for them.

    >>> from diffuco.graphs.graph import Graph
    >>> type(make_batch([Graph.from_edges([(0, 1), (1, 2), (0, 2)])])).__name__
    'DenseBatch'
    """
    largest = max((graph.num_nodes for graph in graphs), default=0)
    cells = len(graphs) * largest**2
    entries = 2 * sum(graph.num_edges for graph in graphs)
    on_gpu = torch.device(device).type == "cuda"
    dense_pays = on_gpu or (cells > 0 and entries / cells >= DENSE_ABOVE_DENSITY)
    kind = DenseBatch if dense_pays and 4 * largest**2 <= DENSE_BYTES_PER_GRAPH else SparseBatch
    return kind.from_graphs(graphs, device)
