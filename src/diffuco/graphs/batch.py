"""Many graphs as one set of tensors: concatenated sparse rows or padded dense matrices behind one interface.

Legend: B graphs, N rows (nodes of all graphs, padding included where dense), P padded nodes per graph,
S samples per graph, F features. States and probabilities are [N, S], features [N, S, F], per-graph values [B, S].
Padding is masked here and nowhere else.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from diffuco import ops
from diffuco.graphs.graph import Graph
from diffuco.ops.adjacency import NeighborLists

DENSE_ABOVE_DENSITY = 0.05
"""On a CPU a dense product beats the sparse sum above this share of possible edges."""
DENSE_BYTES_PER_GRAPH = 2**28
"""Largest adjacency matrix that is stored densely."""
LISTS_BELOW_DENSITY = 0.03
"""On a GPU sums over neighbour lists beat float32 products below this share of possible edges."""
WIDE_LISTS_BELOW_DENSITY = 0.005
"""They beat even the tensor cores, which take float16 features, below this share."""
LEAST_PENALTY = 2.0**-10
"""What a node weighs at least in a penalty, relative to the heaviest: nodes may weigh nothing, penalties may not."""


class Batch(ABC):
    """What problems, the diffusion and the network see of a set of graphs."""

    num_graphs: int
    sizes: Tensor
    """[B] nodes of each graph."""
    degrees: Tensor
    """[N] neighbours of each node, as float."""
    node_weights: Tensor | None
    """[N], NaN in graphs that have none, which `node_weights_or` fills; None where no graph has any."""
    row_starts: Tensor
    """[B] first row of each graph."""
    extents: Tensor
    """[B] rows of each graph, padding included."""
    largest: int
    """Rows of the largest graph, padding included."""
    wide_lists: NeighborLists | None
    """Lists of neighbours, where a GPU sums features faster over them than with matrices."""

    @classmethod
    @abstractmethod
    def from_graphs(cls, graphs: Sequence[Graph], device: torch.device | str = "cpu") -> Self:
        """Collect graphs on a device."""

    @property
    def num_rows(self) -> int:
        """N: rows of every node tensor."""
        return len(self.degrees)

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.degrees.device

    @abstractmethod
    def neighbor_sum(self, values: Tensor, *, weighted: bool = False) -> Tensor:
        """Sum over each node's neighbours, times the edge weights if asked. [N, ...] -> [N, ...]."""

    @abstractmethod
    def graph_sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph. [N, ...] -> [B, ...]."""

    @abstractmethod
    def spread(self, values: Tensor) -> Tensor:
        """Give every node its graph's value. [B, ...] -> [N, ...]."""

    @abstractmethod
    def from_padded(self, values: Tensor) -> Tensor:
        """Rows of these nodes from values laid out graph by graph, padded to P. [B, P, ...] -> [N, ...]."""

    @abstractmethod
    def squared_weight_sum(self) -> Tensor:
        """Sum of the squared weights of each node's edges. [N]."""

    @abstractmethod
    def graph_max(self, values: Tensor) -> Tensor:
        """Largest value of the nodes of each graph, at least 0. [N] -> [B]."""

    @abstractmethod
    def edge_max(self) -> Tensor:
        """Largest weight of each node's edges, at least 0; the batch must have edge weights. [N]."""

    @abstractmethod
    def with_edge_weights_of(self, nodes: Tensor) -> "Batch":
        """The same graphs, of which an edge weighs what the heavier of its ends does. [N] -> Batch."""

    def node_weights_or(self, default: float) -> Tensor:
        """Node weights, with what a problem takes nodes to weigh in graphs that have none. [N]."""
        if self.node_weights is None:
            return torch.full_like(self.degrees, default)
        return self.node_weights.nan_to_num(default)

    @cached_property
    def heaviest(self) -> Tensor | None:
        """Weight of the heaviest node of each graph, 1 where all weigh 0; None where no graph has weights. [B]."""
        if self.node_weights is None:
            return None
        largest = self.graph_max(self.node_weights_or(1.0))
        return torch.where(largest > 0, largest, 1.0)

    @cached_property
    def relative_weights(self) -> Tensor | None:
        """Node weights over the heaviest of the graph; None where no graph has any. [N]."""
        return None if self.heaviest is None else self.node_weights_or(1.0) / self.spread(self.heaviest)

    @cached_property
    def penalty_weights(self) -> Tensor | None:
        """Relative weights rounded up to multiples of 2^-16, sums of which are exact in any order, and above 0. [N]."""
        if self.relative_weights is None:
            return None
        return ((self.relative_weights * 2**16).ceil() / 2**16).clamp(min=LEAST_PENALTY)

    @cached_property
    def by_heavier_end(self) -> "Batch | None":
        """The graphs with the larger penalty weight of its ends on every edge; None where no graph has node weights."""
        return None if self.penalty_weights is None else self.with_edge_weights_of(self.penalty_weights)

    @cached_property
    def heaviest_around(self) -> Tensor | None:
        """Largest penalty weight of each node and its neighbours; None where no graph has node weights. [N]."""
        if self.penalty_weights is None or self.by_heavier_end is None:
            return None
        return torch.maximum(self.penalty_weights, self.by_heavier_end.edge_max())

    def graph_mean(self, values: Tensor) -> Tensor:
        """Mean over the nodes of each graph; 0 for a graph without nodes. [N, ...] -> [B, ...]."""
        counts = self.sizes.clamp(min=1).to(values.dtype)
        return self.graph_sum(values) / counts.view(-1, *[1] * (values.dim() - 1))

    def split(self, values: Tensor) -> list[Tensor]:
        """Cut a node tensor into one tensor per graph, without padding. [N, ...] -> B times [n, ...]."""
        starts, sizes = self.row_starts.tolist(), self.sizes.tolist()
        return [values[start : start + size] for start, size in zip(starts, sizes, strict=True)]


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
        # One collection with one graph: neighbours are rows already.
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
        indices = np.concatenate(
            [np.empty(0, np.int64), *[csr.indices + start for csr, start in zip(csrs, starts, strict=True)]]
        )
        weights = None
        if any(graph.edge_weights is not None for graph in graphs):
            weights = torch.from_numpy(np.concatenate([csr.weights for csr in csrs])).float().to(device)
        return cls(
            torch.from_numpy(sizes).to(device),
            torch.from_numpy(np.cumsum(counts)).to(device),
            torch.from_numpy(indices).to(device),
            weights,
            _node_weights(graphs, [graph.num_nodes for graph in graphs], device),
            largest=int(sizes.max()),
        )

    def neighbor_sum(self, values: Tensor, *, weighted: bool = False) -> Tensor:
        """Sum over each node's neighbours, times the edge weights if asked. [N, ...] -> [N, ...]."""
        return ops.neighbor_sum(values, self.indptr, self.indices, self.weights if weighted else None)

    def squared_weight_sum(self) -> Tensor:
        """Sum of the squared weights of each node's edges. [N]."""
        if self.weights is None:
            return self.degrees
        ones = torch.ones_like(self.degrees)[:, None]
        return ops.neighbor_sum(ones, self.indptr, self.indices, self.weights.square())[:, 0]

    def graph_max(self, values: Tensor) -> Tensor:
        """Largest value of the nodes of each graph, at least 0. [N] -> [B]."""
        return ops.segment_max(values, self.sizes)

    def edge_max(self) -> Tensor:
        """Largest weight of each node's edges, at least 0; the batch must have edge weights. [N]."""
        assert self.weights is not None
        return ops.segment_max(self.weights, self.indptr.diff())

    def with_edge_weights_of(self, nodes: Tensor) -> "SparseBatch":
        """The same graphs, of which an edge weighs what the heavier of its ends does. [N] -> Batch."""
        own = nodes.repeat_interleave(self.indptr.diff(), output_size=len(self.indices))
        weights = torch.maximum(own, nodes[self.indices])
        return SparseBatch(self.sizes, self.indptr, self.indices, weights, None, self.largest)

    def graph_sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph. [N, ...] -> [B, ...]."""
        return ops.segment_sum(values, self.sizes)

    def spread(self, values: Tensor) -> Tensor:
        """Give every node its graph's value. [B, ...] -> [N, ...]."""
        return values.repeat_interleave(self.sizes, dim=0, output_size=self.num_rows)

    def from_padded(self, values: Tensor) -> Tensor:
        """Rows of these nodes from values laid out graph by graph, padded to P. [B, P, ...] -> [N, ...]."""
        starts = torch.arange(self.num_graphs, device=self.device) * values.shape[1] - self.row_starts
        rows = torch.arange(self.num_rows, device=self.device) + self.spread(starts)
        return values.flatten(0, 1)[rows]


class DenseBatch(Batch):
    """Padded adjacency matrices: the neighbour sum is one batched matrix product, the fast path on a GPU."""

    def __init__(
        self,
        sizes: Tensor,
        adjacency: Tensor,
        weights: Tensor | None,
        node_weights: Tensor | None,
        lists: NeighborLists | None = None,
        wide_lists: NeighborLists | None = None,
        degrees: Tensor | None = None,
    ) -> None:
        self.num_graphs, self.num_padded, _ = adjacency.shape
        self.sizes = sizes
        self.extents = torch.full_like(sizes, self.num_padded)
        self.largest = self.num_padded
        self.lists = lists
        self.wide_lists = wide_lists
        self._matrices: dict[tuple[torch.dtype, bool], Tensor] = {}
        self.row_starts = torch.arange(self.num_graphs, device=sizes.device) * self.num_padded
        self.adjacency = adjacency
        self.weights = weights
        self.node_weights = node_weights
        self.degrees = adjacency.sum(2, dtype=torch.float32).view(-1) if degrees is None else degrees
        self.mask = (torch.arange(self.num_padded, device=sizes.device) < sizes[:, None]).view(-1)

    @classmethod
    def from_graphs(
        cls, graphs: Sequence[Graph], device: torch.device | str = "cpu", pad_to: int | None = None
    ) -> "DenseBatch":
        """Collect graphs on a device, padded to the largest or to `pad_to` nodes."""
        num_padded = pad_to or max((graph.num_nodes for graph in graphs), default=0)
        shape = (len(graphs), num_padded, num_padded)
        on_gpu = torch.device(device).type == "cuda"
        # 0 and 1 are exact in float16, which the tensor cores multiply at full speed.
        adjacency = torch.zeros(shape, dtype=torch.float16 if on_gpu else torch.float32, device=device)
        cells = _edge_cells(graphs, num_padded, device)
        adjacency.view(-1)[cells] = 1
        weights = None
        if any(graph.edge_weights is not None for graph in graphs):
            weights = torch.zeros(shape, device=device)
            given = [np.ones(g.num_edges) if g.edge_weights is None else g.edge_weights for g in graphs]
            weights.view(-1)[cells] = torch.from_numpy(np.concatenate(given)).float().to(device)
        density = cells.numel() / max(1, adjacency.numel())
        lists = None
        if on_gpu and density < LISTS_BELOW_DENSITY and ops.triton_works():
            lists = neighbor_lists(graphs, num_padded, device)
        return cls(
            torch.tensor([graph.num_nodes for graph in graphs], dtype=torch.int64, device=device),
            adjacency,
            weights,
            _node_weights(graphs, [num_padded] * len(graphs), device),
            lists,
            lists if density < WIDE_LISTS_BELOW_DENSITY else None,
        )

    def select(self, graphs: Tensor, num_padded: int | None = None) -> "DenseBatch":
        """The batch of some of these graphs, padded to fewer nodes if they allow it, without leaving the device."""
        num_padded = num_padded or self.num_padded

        def rows(values: Tensor) -> Tensor:
            return values.view(self.num_graphs, -1)[graphs, :num_padded].flatten()

        lists = None if self.lists is None else self.lists.select(graphs, num_padded)
        return DenseBatch(
            self.sizes[graphs],
            self.adjacency[graphs, :num_padded, :num_padded],
            None if self.weights is None else self.weights[graphs, :num_padded, :num_padded],
            None if self.node_weights is None else rows(self.node_weights),
            lists,
            None if self.wide_lists is None else lists,
            rows(self.degrees),
        )

    def neighbor_sum(self, values: Tensor, *, weighted: bool = False) -> Tensor:
        """Sum over each node's neighbours, times the edge weights if asked. [N, ...] -> [N, ...]."""
        if self.lists is not None:
            return ops.list_neighbor_sum(values, self.lists if weighted else self.lists._replace(weights=None))
        return ops.dense_neighbor_sum(values, self.matrix(values.dtype, weighted=weighted))

    def matrix(self, dtype: torch.dtype, *, weighted: bool = False) -> Tensor:
        """The adjacency, or the edge weights if asked and there are any, in a type of numbers. [B, P, P]."""
        # Kept: the steps of a process ask again and again.
        if (dtype, weighted) not in self._matrices:
            matrix = self.weights if weighted and self.weights is not None else self.adjacency
            self._matrices[dtype, weighted] = matrix.to(dtype)
        return self._matrices[dtype, weighted]

    def squared_weight_sum(self) -> Tensor:
        """Sum of the squared weights of each node's edges. [N]."""
        return self.degrees if self.weights is None else self.weights.square().sum(2).view(-1)

    def graph_max(self, values: Tensor) -> Tensor:
        """Largest value of the nodes of each graph, at least 0. [N] -> [B]."""
        # With a column of zeros, as there may be no other.
        padded = torch.where(self.mask, values, 0.0).view(self.num_graphs, self.num_padded)
        return torch.cat([padded, padded.new_zeros(self.num_graphs, 1)], dim=1).amax(1)

    def edge_max(self) -> Tensor:
        """Largest weight of each node's edges, at least 0; the batch must have edge weights. [N]."""
        assert self.weights is not None
        return self.weights.amax(2).view(-1) if self.num_padded else self.degrees

    def with_edge_weights_of(self, nodes: Tensor) -> "DenseBatch":
        """The same graphs, of which an edge weighs what the heavier of its ends does. [N] -> Batch."""
        ends = nodes.view(self.num_graphs, self.num_padded)
        weights = torch.maximum(ends[:, :, None], ends[:, None]) * self.adjacency
        return DenseBatch(self.sizes, self.adjacency, weights, None, degrees=self.degrees)

    def graph_sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph. [N, ...] -> [B, ...]."""
        # `where`, not a product: padding may hold anything, even NaN.
        mask = self.mask.view(-1, *[1] * (values.dim() - 1))
        masked = torch.where(mask, values, torch.zeros((), dtype=values.dtype, device=values.device))
        return masked.view(self.num_graphs, self.num_padded, *values.shape[1:]).sum(1)

    def spread(self, values: Tensor) -> Tensor:
        """Give every node its graph's value. [B, ...] -> [N, ...]."""
        wide = values[:, None].expand(self.num_graphs, self.num_padded, *values.shape[1:])
        return wide.reshape(self.num_rows, *values.shape[1:])

    def from_padded(self, values: Tensor) -> Tensor:
        """Rows of these nodes from values laid out graph by graph, padded to P. [B, P, ...] -> [N, ...]."""
        return values[:, : self.num_padded].flatten(0, 1)


def neighbor_lists(graphs: Sequence[Graph], num_padded: int, device: torch.device | str = "cpu") -> NeighborLists:
    """Lists of neighbours for node tensors with `num_padded` rows per graph."""
    csrs = [graph.csr for graph in graphs]
    first = np.cumsum([0, *(len(csr.indices) for csr in csrs)])
    pointers = np.stack([np.pad(csr.indptr, (0, num_padded + 1 - len(csr.indptr)), mode="edge") for csr in csrs])
    has_weights = any(graph.edge_weights is not None for graph in graphs)
    weights = (
        torch.from_numpy(np.concatenate([csr.weights for csr in csrs])).float().to(device) if has_weights else None
    )
    return NeighborLists(
        torch.arange(len(graphs), device=device),
        torch.from_numpy(pointers + first[:-1, None]).to(device),
        torch.from_numpy(np.concatenate([csr.indices for csr in csrs]).astype(np.int32)).to(device),
        weights,
        num_padded,
    )


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


def _edge_cells(graphs: Sequence[Graph], num_padded: int, device: torch.device | str) -> Tensor:
    """Where the matrices of graphs, one after the other, have their edges and these turned round. [2, E].

    Edges are far fewer than cells, so it is they that travel to the device.
    """
    edges = np.concatenate([np.empty((0, 2), dtype=np.int64), *(graph.edges for graph in graphs)])
    u, v = torch.from_numpy(edges.astype(np.int32)).to(device).long().T
    counts = torch.tensor([graph.num_edges for graph in graphs], dtype=torch.int64, device=device)
    starts = torch.arange(len(graphs), device=device) * num_padded**2
    first = starts.repeat_interleave(counts, output_size=len(edges))
    return torch.stack([first + u * num_padded + v, first + v * num_padded + u])


def _node_weights(graphs: Sequence[Graph], rows: Sequence[int], device: torch.device | str) -> Tensor | None:
    """Node weights of graphs that take so many rows each, NaN where there are none."""
    if all(graph.node_weights is None for graph in graphs):
        return None
    parts = [np.full(count, np.nan, dtype=np.float32) for count in rows]
    for part, graph in zip(parts, graphs, strict=True):
        if graph.node_weights is not None:
            part[: graph.num_nodes] = graph.node_weights
    return torch.from_numpy(np.concatenate(parts)).to(device)
