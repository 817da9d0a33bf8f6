"""Many graphs as concatenated sparse rows."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from diffuco import ops
from diffuco.graphs.batch.base import Batch, collect_node_weights
from diffuco.graphs.graph import Graph
from diffuco.ops import reference
from diffuco.ops.adjacency import NeighborLists


class SparseBatch(Batch):
    """Concatenated CSR rows: memory grows with the edges, so any graph fits."""

    def __init__(
        self,
        sizes: Tensor,
        indptr: Tensor,
        indices: Tensor,
        weights: Tensor | None,
        node_weights: Tensor | None,
        largest: int,
    ) -> None:
        self.num_graphs = len(sizes)
        self.sizes = self.extents = sizes
        self.largest = largest
        self.row_starts = sizes.cumsum(0) - sizes
        self.indptr = indptr
        self.indices = indices
        self.weights = weights
        self.node_weights = node_weights
        self.degrees = indptr.diff().to(torch.float32)
        # All graphs form one list, because the indices of neighbours are already rows of the batch.
        self.wide_lists = NeighborLists(sizes.new_zeros(1), indptr[None], indices, weights, self.num_rows)

    @classmethod
    def from_graphs(cls, graphs: Sequence[Graph], device: torch.device | str = "cpu") -> "SparseBatch":
        """Collect graphs on a device."""
        if not graphs:
            raise ValueError("a batch needs at least one graph")
        sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        csrs = [graph.csr for graph in graphs]
        counts = np.concatenate([[0], *[np.diff(csr.indptr) for csr in csrs]])
        indices = csrs[0].indices  # a single large graph need not be copied
        if len(csrs) > 1:
            indices = np.concatenate([csr.indices + start for csr, start in zip(csrs, starts, strict=True)])
        weights = None
        if any(graph.edge_weights is not None for graph in graphs):
            weights = torch.from_numpy(np.concatenate([csr.weights for csr in csrs])).float().to(device)
        return cls(
            torch.from_numpy(sizes).to(device),
            torch.from_numpy(np.cumsum(counts)).to(device),
            torch.from_numpy(indices).to(device),
            weights,
            collect_node_weights(graphs, [graph.num_nodes for graph in graphs], device),
            largest=int(sizes.max()),
        )

    def neighbor_sum(self, values: Tensor, *, weighted: bool = False) -> Tensor:
        """Sum over each node's neighbours, times the edge weights if `weighted`. [N, ...] -> [N, ...]."""
        return ops.neighbor_sum(values, self.indptr, self.indices, self.weights if weighted else None)

    def squared_weight_sum(self) -> Tensor:
        """Sum of the squared weights of each node's edges. [N]."""
        if self.weights is None:
            return self.degrees
        ones = torch.ones_like(self.degrees)[:, None]
        return ops.neighbor_sum(ones, self.indptr, self.indices, self.weights.square())[:, 0]

    def graph_max(self, values: Tensor) -> Tensor:
        """Largest value of the nodes of each graph, at least 0. [N] -> [B]."""
        return reference.segment_max(values, self.extents)

    def edge_max(self) -> Tensor:
        """Largest weight of each node's edges, at least 0; the batch must have edge weights. [N]."""
        assert self.weights is not None
        return reference.segment_max(self.weights, self.indptr.diff())

    def with_edge_weights_of(self, nodes: Tensor) -> "SparseBatch":
        """The same graphs, with each edge as heavy as the heavier of its two ends. [N] -> Batch."""
        own = nodes.repeat_interleave(self.indptr.diff(), output_size=len(self.indices))
        weights = torch.maximum(own, nodes[self.indices])
        return SparseBatch(self.sizes, self.indptr, self.indices, weights, None, self.largest)

    def graph_sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph. [N, ...] -> [B, ...]."""
        return reference.segment_sum(values, self.extents)

    def spread(self, values: Tensor) -> Tensor:
        """Give every node its graph's value. [B, ...] -> [N, ...]."""
        return values.repeat_interleave(self.extents, dim=0, output_size=self.num_rows)

    def from_padded(self, values: Tensor) -> Tensor:
        """Turn values laid out graph by graph, padded to P, into rows of this batch. [B, P, ...] -> [N, ...]."""
        starts = torch.arange(self.num_graphs, device=self.device) * values.shape[1] - self.row_starts
        rows = torch.arange(self.num_rows, device=self.device) + self.spread(starts)
        return values.flatten(0, 1)[rows]
