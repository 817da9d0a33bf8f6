"""Minimum Vertex Cover: the smallest set of nodes that touches every edge (Table 2)."""

from dataclasses import dataclass

from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import Problem, QuadraticForm


@dataclass(frozen=True)
class MinimumVertexCover(Problem):
    """H(X) = sum_i x_i + penalty * sum_(i,j) (1 - x_i) (1 - x_j)."""

    name = "mvc"
    title = "Minimum Vertex Cover"
    sense = "min"

    penalty: float = 1.01
    """Cost of one uncovered edge; above 1 so that every minimum is feasible."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        uncovered_edges = 0.5 * (1 - x) * batch.neighbor_sum(1 - x)
        return batch.graph_sum(x + self.penalty * uncovered_edges)

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Size of the cover. [N, S] -> [B, S]."""
        return batch.graph_sum(x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Uncovered edges. [N, S] -> [B, S]."""
        return batch.graph_sum(0.5 * (1 - x) * batch.neighbor_sum(1 - x))

    def form(self, batch: Batch) -> QuadraticForm:
        """Expanding (1 - x_i)(1 - x_j): linear 1 - penalty * degree, coupling `penalty` along edges."""
        return QuadraticForm(linear=1 - self.penalty * batch.degrees, edge=self.penalty)
