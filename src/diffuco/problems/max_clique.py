"""Maximum Clique: the largest set of nodes that are all adjacent to each other (Table 2).

The sum over non-edges needs no complement graph: it is all pairs minus the edges, and all pairs follow from sum_i x_i.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import Problem, QuadraticForm


@dataclass(frozen=True)
class MaximumClique(Problem):
    """H(X) = -sum_i x_i + penalty * sum_(i,j not adjacent) x_i x_j."""

    name = "max-clique"
    title = "Maximum Clique"
    sense = "max"

    penalty: float = 1.01
    """Cost of one missing edge inside the set; above 1 so that every minimum is feasible."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return self.penalty * _missing_edges(batch, x) - batch.graph_sum(x)

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Size of the clique. [N, S] -> [B, S]."""
        return batch.graph_sum(x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Pairs inside the set that are not adjacent. [N, S] -> [B, S]."""
        return _missing_edges(batch, x)

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear -1, coupling `penalty` between all pairs and its opposite along edges."""
        return QuadraticForm(linear=torch.full_like(batch.degrees, -1.0), edge=-self.penalty, pair=self.penalty)


def _missing_edges(batch: Batch, x: Tensor) -> Tensor:
    """Sum of x_i x_j over pairs that are not adjacent: ((sum x)^2 - sum x^2) / 2 - sum over edges. [N, S] -> [B, S]."""
    pairs = 0.5 * (batch.graph_sum(x).square() - batch.graph_sum(x.square()))
    return pairs - batch.graph_sum(0.5 * x * batch.neighbor_sum(x))
