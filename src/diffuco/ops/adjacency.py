"""Adjacency and costs of the nodes of many graphs as tensors: compressed rows, padded matrices or neighbour lists.

Legend: B graphs, N rows (padding included where dense), E directed edges, P padded nodes per graph.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class CsrAdjacency(NamedTuple):
    """Compressed rows: the neighbours of row i are `indices[indptr[i]:indptr[i + 1]]`, themselves rows."""

    row_starts: Tensor
    """[B] first row of each graph."""
    sizes: Tensor
    """[B] nodes of each graph; rows beyond them are padding."""
    indptr: Tensor
    """[N + 1]"""
    indices: Tensor
    """[E]"""
    weights: Tensor | None
    """[E]; None if every edge weighs 1."""

    def cpu(self) -> "CsrAdjacency":
        """The same in main memory."""
        weights = None if self.weights is None else self.weights.cpu()
        return CsrAdjacency(self.row_starts.cpu(), self.sizes.cpu(), self.indptr.cpu(), self.indices.cpu(), weights)

    def reordered(self, order: Tensor) -> "CsrAdjacency":
        """The same edges between rows that are numbered anew: row i is the one that was `order[i]`. [N].

        A graph whose rows no longer lie together has no first row, so this is for one graph or for sums over
        neighbours.

        >>> path = CsrAdjacency(*map(torch.tensor, ([0], [3], [0, 1, 3, 4], [1, 0, 2, 1])), None)  # 0 - 1 - 2
        >>> path.reordered(torch.tensor([1, 0, 2])).indices.tolist()
        [1, 2, 0, 0]
        """
        degrees = self.indptr.diff()[order]
        indptr = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
        numbers = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        shifts = (self.indptr[order] - indptr[:-1]).repeat_interleave(degrees, output_size=len(self.indices))
        edges = shifts + torch.arange(len(self.indices), device=order.device)
        weights = None if self.weights is None else self.weights[edges]
        return CsrAdjacency(self.row_starts, self.sizes, indptr, numbers[self.indices[edges]], weights)


class DenseAdjacency(NamedTuple):
    """One padded matrix per graph, zero where there is no edge and in the padding."""

    sizes: Tensor
    """[B] nodes of each graph."""
    matrix: Tensor
    """[B, P, P] edge weights, or 0 and 1."""

    @property
    def is_node(self) -> Tensor:
        """Which rows hold nodes: all but padding. [B, P]."""
        return torch.arange(self.matrix.shape[1], device=self.sizes.device) < self.sizes[:, None]

    def to_csr(self) -> CsrAdjacency:
        """The same edges in compressed rows, in main memory; padding rows have no neighbours.

        >>> DenseAdjacency(torch.tensor([2]), torch.tensor([[[0.0, 3.0], [3.0, 0.0]]])).to_csr().indices.tolist()
        [1, 0]
        """
        num_graphs, num_padded, _ = self.matrix.shape
        # On a CPU, numpy finds the edges three times as fast as torch.
        cells = torch.from_numpy(np.flatnonzero((self.matrix != 0).cpu().numpy()))
        row_starts = torch.arange(num_graphs) * num_padded
        indptr = torch.searchsorted(cells, torch.arange(num_graphs * num_padded + 1) * num_padded)
        # A cell's number minus this is the neighbour's row: P cells for each earlier row, less the graph's first row.
        before = torch.arange(num_graphs * num_padded) * num_padded - row_starts.repeat_interleave(num_padded)
        weights = self.matrix.view(-1)[cells.to(self.matrix.device)].cpu()
        return CsrAdjacency(
            row_starts,
            self.sizes.cpu(),
            indptr,
            cells - before.repeat_interleave(indptr.diff(), output_size=len(cells)),
            None if (weights == 1).all() else weights,
        )


class CoverCosts(NamedTuple):
    """Costs of the nodes of a cover problem, if they are not all 1."""

    chosen: Tensor
    """[N] cost of each node if it is chosen."""
    uncovered: Tensor
    """[N] cost of each node if it is uncovered, without the penalty factor; multiples of 2^-16 to make sums exact."""

    def cpu(self) -> "CoverCosts":
        """The same in main memory."""
        return CoverCosts(self.chosen.cpu(), self.uncovered.cpu())


class NeighborLists(NamedTuple):
    """Neighbour lists of B graphs, which refer to a collection of G graphs without copying any of them."""

    graph_ids: Tensor
    """[B] position of each graph in the collection."""
    pointers: Tensor
    """[G, rows + 1] start of the list of each node; the next entry is its end."""
    neighbors: Tensor
    """[E] nodes, counted from 0 in each graph."""
    weights: Tensor | None
    """[E]; None if every edge weighs 1."""
    rows_per_graph: int
    """Rows of each of the B graphs in a node tensor."""

    def select(self, graphs: Tensor, rows_per_graph: int) -> "NeighborLists":
        """The lists of the chosen graphs, for node tensors with `rows_per_graph` rows per graph."""
        return self._replace(graph_ids=self.graph_ids[graphs], rows_per_graph=rows_per_graph)


class Copies:
    """The neighbour lists of every sample's copy of the graphs."""

    def __init__(self, adjacency: CsrAdjacency, num_samples: int) -> None:
        self.adjacency, self.num_rows = adjacency, len(adjacency.indptr) - 1
        self.lengths = adjacency.indptr.diff().repeat(num_samples)

    def of(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The ends of all edges of these nodes, and the edges' positions in the adjacency."""
        row = nodes % self.num_rows
        lengths = self.lengths[nodes]
        edges = ranges(self.adjacency.indptr[row], lengths)
        owners = nodes.repeat_interleave(lengths, output_size=len(edges))
        return owners, self.adjacency.indices[edges] + (owners - owners % self.num_rows), edges

    def positions(self, nodes: Tensor) -> Tensor:
        """For all edges of these nodes, the position of their owner in the list of nodes."""
        return torch.arange(len(nodes), device=nodes.device).repeat_interleave(self.lengths[nodes])


def ranges(firsts: Tensor, lengths: Tensor) -> Tensor:
    """Ranges of numbers, one after the other.

    >>> ranges(torch.tensor([5, 0]), torch.tensor([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = lengths.cumsum(0)
    shifts = (firsts - ends + lengths).repeat_interleave(lengths)
    return shifts + torch.arange(len(shifts), device=firsts.device)
