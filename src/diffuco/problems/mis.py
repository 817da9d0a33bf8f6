"""Maximum Independent Set: the largest set of nodes no two of which are adjacent (Table 2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import Problem, QuadraticForm


@dataclass(frozen=True)
class MaximumIndependentSet(Problem):
    """H(X) = -sum_i x_i + penalty * sum_(i,j) x_i x_j."""

    name = "mis"
    title = "Maximum Independent Set"
    sense = "max"

    penalty: float = 1.01
    """Cost of one edge inside the set; above 1 so that every minimum is feasible."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        edges_inside = 0.5 * x * batch.neighbor_sum(x)
        return batch.graph_sum(self.penalty * edges_inside - x)

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Size of the set. [N, S] -> [B, S]."""
        return batch.graph_sum(x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Edges inside the set. [N, S] -> [B, S]."""
        return batch.graph_sum(0.5 * x * batch.neighbor_sum(x))

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear -1, coupling `penalty` along edges."""
        return QuadraticForm(linear=torch.full_like(batch.degrees, -1.0), edge=self.penalty)
