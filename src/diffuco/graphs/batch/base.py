"""The interface through which problems, the diffusion and the network use many graphs at once.

Legend: B graphs, N rows (nodes of all graphs, padding included where dense), P padded nodes per graph,
S samples per graph, F features. States and probabilities are [N, S], features [N, S, F], per-graph values [B, S].
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from diffuco.graphs.graph import Graph
from diffuco.ops.adjacency import NeighborLists

LEAST_PENALTY = 2.0**-10
"""Smallest weight of a node in a penalty, relative to the heaviest node: a node may weigh 0, a penalty may not."""


class Batch(ABC):
    """Many graphs as tensors, with the sums over neighbours, nodes and graphs that all code needs."""

    num_graphs: int
    sizes: Tensor
    """[B] nodes of each graph."""
    degrees: Tensor
    """[N] neighbours of each node, as float."""
    weights: Tensor | None
    """Edge weights; None if every edge weighs 1."""
    node_weights: Tensor | None
    """[N], NaN in graphs without node weights (`node_weights_or` fills these in); None if no graph has any."""
    row_starts: Tensor
    """[B] first row of each graph."""
    extents: Tensor
    """[B] rows of each graph, padding included."""
    largest: int
    """Rows of the largest graph, padding included."""
    wide_lists: NeighborLists | None
    """Lists of neighbours to sum features over on a GPU; None if matrices are faster."""

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
        """The device of all tensors."""
        return self.degrees.device

    @abstractmethod
    def neighbor_sum(self, values: Tensor, *, weighted: bool = False) -> Tensor:
        """Sum over each node's neighbours, times the edge weights if `weighted`. [N, ...] -> [N, ...]."""

    def neighbor_product(self, values: Tensor) -> Tensor:
        """Product over each node's neighbours of values from 0 to 1; 1 for a node without any. [N, ...] -> [N, ...].

        >>> from diffuco.graphs.batch import make_batch
        >>> path = make_batch([Graph.from_edges([(0, 1), (1, 2)])])
        >>> path.neighbor_product(torch.tensor([[0.5], [0.0], [1.0]])).ravel().round(decimals=6).tolist()
        [0.0, 0.5, 0.0]
        """
        return self.neighbor_sum(finite_log(values)).exp()

    @abstractmethod
    def graph_sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph. [N, ...] -> [B, ...]."""

    @abstractmethod
    def spread(self, values: Tensor) -> Tensor:
        """Give every node its graph's value. [B, ...] -> [N, ...]."""

    @abstractmethod
    def from_padded(self, values: Tensor) -> Tensor:
        """Turn values laid out graph by graph, padded to P, into rows of this batch. [B, P, ...] -> [N, ...]."""

    def weight_sum(self) -> Tensor:
        """Sum of the weights of each node's edges. [N], as precise as the degrees."""
        if self.weights is None:
            return self.degrees
        return self.neighbor_sum(torch.ones_like(self.degrees)[:, None], weighted=True)[:, 0]

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
        """The same graphs, with each edge as heavy as the heavier of its two ends. [N] -> Batch."""

    def node_weights_or(self, default: float) -> Tensor:
        """Node weights, with `default` for the nodes of graphs that have none. [N]."""
        if self.node_weights is None:
            return torch.full_like(self.degrees, default)
        return self.node_weights.nan_to_num(default)

    @cached_property
    def heaviest(self) -> Tensor | None:
        """Weight of the heaviest node of each graph, 1 if all weigh 0; None if no graph has weights. [B]."""
        if self.node_weights is None:
            return None
        largest = self.graph_max(self.node_weights_or(1.0))
        return torch.where(largest > 0, largest, 1.0)

    @cached_property
    def relative_weights(self) -> Tensor | None:
        """Node weights divided by the heaviest of the graph; None if no graph has any. [N]."""
        return None if self.heaviest is None else self.node_weights_or(1.0) / self.spread(self.heaviest)

    @cached_property
    def penalty_weights(self) -> Tensor | None:
        """Relative weights, above 0 and rounded up to multiples of 2^-16, so that sums are exact in any order. [N]."""
        if self.relative_weights is None:
            return None
        return ((self.relative_weights * 2**16).ceil() / 2**16).clamp(min=LEAST_PENALTY)

    @cached_property
    def by_heavier_end(self) -> "Batch | None":
        """The graphs, with each edge weighing the larger penalty weight of its ends; None without node weights."""
        return None if self.penalty_weights is None else self.with_edge_weights_of(self.penalty_weights)

    @cached_property
    def heaviest_around(self) -> Tensor | None:
        """Largest penalty weight among each node and its neighbours; None if no graph has node weights. [N]."""
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


def finite_log(values: Tensor) -> Tensor:
    """The logarithm of values from 0 to 1, for sums whose exponentials are products with the right gradient.

    0 counts as a number so small that products with it vanish; its reciprocal is finite, and the gradient of a product
    with one factor 0 is still the product of the others.
    """
    smallest = torch.finfo(values.dtype).tiny ** 0.5
    # Not a plain clamp, whose gradient at 0 is 0.
    return (values + (values.clamp(min=smallest) - values).detach()).log()


def collect_node_weights(graphs: Sequence[Graph], rows: Sequence[int], device: torch.device | str) -> Tensor | None:
    """Node weights, with `rows[i]` rows for graph i; NaN in padding and in graphs without any; None if none has any."""
    if all(graph.node_weights is None for graph in graphs):
        return None
    parts = [np.full(count, np.nan, dtype=np.float32) for count in rows]
    for part, graph in zip(parts, graphs, strict=True):
        if graph.node_weights is not None:
            part[: graph.num_nodes] = graph.node_weights
    return torch.from_numpy(np.concatenate(parts)).to(device)
