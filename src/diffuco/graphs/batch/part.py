"""The rows of a sparse batch that one of several processes owns; the others own the rest.

It looks like a batch of these rows alone, so networks and energies need not know. Before a sum over neighbours, every
process sends the rows that others have neighbours of; sums over graphs are added up over all processes.

Legend: B graphs, n own rows, H rows of other processes with a neighbour here.
"""

import copy

import torch
from torch import Tensor

from diffuco.foundation.distributed import Group
from diffuco.graphs.batch.sparse import SparseBatch
from diffuco.ops import reference


class PartBatch(SparseBatch):
    """This process's share of the rows of a batch, on the device of its group; `indices` point into n + H rows."""

    def __init__(self, whole: SparseBatch, group: Group) -> None:
        self.group = group
        self.num_all_rows = whole.num_rows
        self.rows = group.share(whole.num_rows)
        first, last = self.rows.start, self.rows.stop
        self.num_graphs = whole.num_graphs
        self.sizes = whole.sizes.to(group.device)  # of whole graphs, for means over them
        ends = whole.row_starts + whole.sizes
        own = (ends.clamp(max=last) - whole.row_starts.clamp(min=first)).clamp(min=0)
        self.extents = own.to(group.device)
        self.row_starts = self.extents.cumsum(0) - self.extents
        self.largest = int(own.max())
        self.wide_lists = None

        indptr = whole.indptr[first : last + 1]
        edges = slice(int(indptr[0]), int(indptr[-1]))
        neighbors = whole.indices[edges]
        is_own = (neighbors >= first) & (neighbors < last)
        remote = torch.unique(neighbors[~is_own])  # sorted, and so by owner
        places = torch.where(is_own, neighbors - first, last - first + torch.searchsorted(remote, neighbors))
        self._plan_exchange(whole, indptr, neighbors, remote)
        self.indptr = (indptr - indptr[0]).to(group.device)
        self.indices = places.to(group.device)
        self.weights = None if whole.weights is None else whole.weights[edges].to(group.device)
        self.node_weights = None if whole.node_weights is None else whole.node_weights[self.rows].to(group.device)
        self.degrees = self.indptr.diff().float()

    def _plan_exchange(self, whole: SparseBatch, indptr: Tensor, neighbors: Tensor, remote: Tensor) -> None:
        """Edges go both ways, so each process sees in its own lists which of its rows the others need."""
        bounds = torch.tensor(self.group.bounds(whole.num_rows))
        num_own = len(indptr) - 1
        owners = torch.searchsorted(bounds, neighbors, right=True) - 1
        rows = torch.arange(num_own).repeat_interleave(indptr.diff())
        wanted = torch.unique((owners * num_own + rows)[owners != self.group.rank])  # by process, then by row
        self.sent_rows = (wanted % max(1, num_own)).to(self.group.device)
        processes = torch.arange(self.group.size + 1)
        self.num_sent = torch.searchsorted(wanted, processes * num_own).diff().tolist()
        self.num_received = torch.searchsorted(remote, bounds).diff().tolist()

    def with_remote(self, values: Tensor) -> Tensor:
        """Own rows, then those of other processes with a neighbour here. [n, ...] -> [n + H, ...]."""
        near = values.new_empty(self.num_rows + sum(self.num_received), *values.shape[1:])
        near[: self.num_rows] = values
        self.group.exchange(values[self.sent_rows], self.num_sent, self.num_received, out=near[self.num_rows :])
        return near

    def neighbor_sum(self, values: Tensor, *, weighted: bool = False) -> Tensor:
        """Sum over each node's neighbours, times the edge weights if `weighted`. [n, ...] -> [n, ...]."""
        near = self.with_remote(values.flatten(1))
        summed = reference.csr_neighbor_sum(near, self.indptr, self.indices, self.weights if weighted else None)
        return summed.view(values.shape)

    def graph_sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph. [n, ...] -> [B, ...]."""
        return self.group.sum(super().graph_sum(values))

    def graph_max(self, values: Tensor) -> Tensor:
        """Largest value of the nodes of each graph, at least 0. [n] -> [B]."""
        return self.group.max(super().graph_max(values))

    def from_padded(self, values: Tensor) -> Tensor:
        """The own rows of values for all rows of the whole batch. [1, P, ...] -> [n, ...]."""
        return values[0, self.rows]

    def squared_weight_sum(self) -> Tensor:
        """Sum of the squared weights of each node's edges, for which other processes are not asked. [n]."""
        if self.weights is None:
            return self.degrees
        return reference.segment_sum(self.weights.square(), self.indptr.diff())

    def with_edge_weights_of(self, nodes: Tensor) -> "PartBatch":
        """The same graphs, with each edge as heavy as the heavier of its two ends. [n] -> Batch."""
        own = nodes.repeat_interleave(self.indptr.diff(), output_size=len(self.indices))
        heavier = copy.copy(self)
        heavier.weights = torch.maximum(own, self.with_remote(nodes)[self.indices])
        heavier.node_weights = None
        return heavier
