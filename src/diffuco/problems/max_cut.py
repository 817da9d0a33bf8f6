"""Maximum Cut: two sides such that the edges between them weigh as much as possible (Table 2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import Problem, QuadraticForm


@dataclass(frozen=True)
class MaximumCut(Problem):
    """H(X) = -sum_(i,j) w_ij (1 - s_i s_j) / 2 with s_i = 2 x_i - 1, that is -sum w_ij (x_i + x_j - 2 x_i x_j)."""

    name = "max-cut"
    title = "Maximum Cut"
    sense = "max"
    uses_edge_weights = True

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return -self.objective(batch, x)

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Weight of the edges between the sides. [N, S] -> [B, S]."""
        return batch.graph_sum(x * batch.neighbor_sum(1 - x, weighted=True))

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """None: every split is a cut. [N, S] -> [B, S]."""
        return batch.graph_sum(torch.zeros_like(x))

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear: minus the weighted degree; coupling twice the weight along edges."""
        weighted_degrees = batch.neighbor_sum(torch.ones_like(batch.degrees)[:, None], weighted=True)[:, 0]
        return QuadraticForm(linear=-weighted_degrees, edge=2.0, edges=batch)
