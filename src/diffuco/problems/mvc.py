"""Minimum Vertex Cover: the smallest or lightest set of nodes that touches every edge (Table 2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import NodeSetProblem, QuadraticForm, conflict_sum, node_costs, weigh


@dataclass(frozen=True)
class MinimumVertexCover(NodeSetProblem):
    """H(X) = sum_i w_i x_i + penalty * sum_(i,j) max(w_i, w_j) (1 - x_i) (1 - x_j)."""

    name = "mvc"
    title = "Minimum Vertex Cover"
    sense = "min"

    penalty: float = 1.01
    """Cost of an uncovered edge, times its heavier end; above 1 so that every minimum is feasible."""

    def relative_energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) over the weight of each graph's heaviest node. [N, S] -> [B, S]."""
        uncovered_edges = 0.5 * (1 - x) * conflict_sum(batch, 1 - x)
        return batch.graph_sum(weigh(batch, x) + self.penalty * uncovered_edges)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Uncovered edges. [N, S] -> [B, S]."""
        return batch.graph_sum(0.5 * (1 - x) * batch.neighbor_sum(1 - x))

    def form(self, batch: Batch) -> QuadraticForm:
        """Expanding (1 - x_i)(1 - x_j): linear w_i - penalty * degree, coupling `penalty` along edges, both weighed."""
        degrees = batch.degrees
        if batch.by_heavier_end is not None:
            degrees = conflict_sum(batch, torch.ones_like(degrees)[:, None])[:, 0]
        linear = node_costs(batch) - self.penalty * degrees
        return QuadraticForm(linear, self.penalty, edges=batch.by_heavier_end, unit=batch.heaviest)
