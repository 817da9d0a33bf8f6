"""Many graphs as padded matrices; padding is masked here and nowhere else."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from diffuco import ops
from diffuco.graphs.batch.base import Batch, collect_node_weights
from diffuco.graphs.graph import Graph
from diffuco.ops import reference
from diffuco.ops.adjacency import NeighborLists

LISTS_BELOW_DENSITY = 0.03
"""On a GPU sums over neighbour lists beat float32 products below this share of possible edges."""
WIDE_LISTS_BELOW_DENSITY = 0.005
"""Below this share, they beat even the tensor cores, which multiply float16 features."""
GRAPHS_AT_ONCE = 256
"""Graphs converted at once, so that edge positions take little memory however many graphs a training set has."""


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
        # A GPU is not asked, as it would have to finish its work first.
        self.may_be_padded = sizes.device.type != "cpu" or not bool(self.mask.all())

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
        has_weights = any(graph.edge_weights is not None for graph in graphs)
        weights = torch.zeros(shape, device=device) if has_weights else None
        for first in range(0, len(graphs), GRAPHS_AT_ONCE):
            part = slice(first, first + GRAPHS_AT_ONCE)
            cells = _edge_cells(graphs[part], num_padded, device)
            adjacency[part].view(-1)[cells] = 1
            if weights is not None:
                given = [np.ones(g.num_edges) if g.edge_weights is None else g.edge_weights for g in graphs[part]]
                weights[part].view(-1)[cells] = torch.from_numpy(np.concatenate(given)).float().to(device)
        density = 2 * sum(graph.num_edges for graph in graphs) / max(1, adjacency.numel())
        lists = None
        if on_gpu and density < LISTS_BELOW_DENSITY and ops.triton_works():
            lists = neighbor_lists(graphs, num_padded, device)
        return cls(
            torch.tensor([graph.num_nodes for graph in graphs], dtype=torch.int64, device=device),
            adjacency,
            weights,
            collect_node_weights(graphs, [num_padded] * len(graphs), device),
            lists,
            lists if density < WIDE_LISTS_BELOW_DENSITY else None,
        )

    def select(self, graphs: Tensor, num_padded: int | None = None) -> "DenseBatch":
        """A batch of the chosen graphs, padded to `num_padded` nodes if given, without leaving the device."""
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
        """Sum over each node's neighbours, times the edge weights if `weighted`. [N, ...] -> [N, ...]."""
        if self.lists is not None:
            return ops.list_neighbor_sum(values, self.lists if weighted else self.lists._replace(weights=None))
        return reference.dense_neighbor_sum(values, self.matrix(values.dtype, weighted=weighted))

    def matrix(self, dtype: torch.dtype, *, weighted: bool = False) -> Tensor:
        """The adjacency, or the edge weights if `weighted` and there are any, as `dtype`. [B, P, P]."""
        # Cached, because every step of the diffusion asks for it.
        if (dtype, weighted) not in self._matrices:
            matrix = self.weights if weighted and self.weights is not None else self.adjacency
            self._matrices[dtype, weighted] = matrix.to(dtype)
        return self._matrices[dtype, weighted]

    def squared_weight_sum(self) -> Tensor:
        """Sum of the squared weights of each node's edges. [N]."""
        return self.degrees if self.weights is None else self.weights.square().sum(2).view(-1)

    def graph_max(self, values: Tensor) -> Tensor:
        """Largest value of the nodes of each graph, at least 0. [N] -> [B]."""
        # The column of zeros serves batches without any nodes.
        padded = torch.where(self.mask, values, 0.0).view(self.num_graphs, self.num_padded)
        return torch.cat([padded, padded.new_zeros(self.num_graphs, 1)], dim=1).amax(1)

    def edge_max(self) -> Tensor:
        """Largest weight of each node's edges, at least 0; the batch must have edge weights. [N]."""
        assert self.weights is not None
        return self.weights.amax(2).view(-1) if self.num_padded else self.degrees

    def with_edge_weights_of(self, nodes: Tensor) -> "DenseBatch":
        """The same graphs, with each edge as heavy as the heavier of its two ends. [N] -> Batch."""
        ends = nodes.view(self.num_graphs, self.num_padded)
        weights = torch.maximum(ends[:, :, None], ends[:, None]) * self.adjacency
        return DenseBatch(self.sizes, self.adjacency, weights, None, degrees=self.degrees)

    def graph_sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph. [N, ...] -> [B, ...]."""
        if self.may_be_padded:
            # Use `where`, not a product: padding may hold anything, even NaN.
            mask = self.mask.view(-1, *[1] * (values.dim() - 1))
            values = torch.where(mask, values, torch.zeros((), dtype=values.dtype, device=values.device))
        return values.view(self.num_graphs, self.num_padded, *values.shape[1:]).sum(1)

    def spread(self, values: Tensor) -> Tensor:
        """Give every node its graph's value. [B, ...] -> [N, ...]."""
        wide = values[:, None].expand(self.num_graphs, self.num_padded, *values.shape[1:])
        return wide.reshape(self.num_rows, *values.shape[1:])

    def from_padded(self, values: Tensor) -> Tensor:
        """Turn values laid out graph by graph, padded to P, into rows of this batch. [B, P, ...] -> [N, ...]."""
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


def _edge_cells(graphs: Sequence[Graph], num_padded: int, device: torch.device | str) -> Tensor:
    """Positions of the edges, in both directions, in the matrices of all graphs laid end to end. [2, E].

    There are far fewer edges than cells, so the edges are sent to the device, in as few bytes as can hold them.
    """
    narrow = np.int16 if num_padded < 2**15 else np.int32
    none = np.empty((0, 2), dtype=narrow)
    edges = np.concatenate([none, *(graph.edges for graph in graphs)], dtype=narrow, casting="unsafe")
    u, v = torch.from_numpy(edges).to(device).long().T
    counts = torch.tensor([graph.num_edges for graph in graphs], dtype=torch.int64, device=device)
    starts = torch.arange(len(graphs), device=device) * num_padded**2
    first = starts.repeat_interleave(counts, output_size=len(edges))
    return torch.stack([first + u * num_padded + v, first + v * num_padded + u])
