"""Maximum Independent Set: the largest or heaviest set of nodes no two of which are adjacent (Table 2)."""

from dataclasses import dataclass

from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import NodeSetProblem, QuadraticForm, conflict_sum, node_costs, weigh


@dataclass(frozen=True)
class MaximumIndependentSet(NodeSetProblem):
    """H(X) = -sum_i w_i x_i + penalty * sum_(i,j) max(w_i, w_j) x_i x_j, where w_i is 1 unless nodes have weights."""

    name = "mis"
    title = "Maximum Independent Set"
    sense = "max"

    penalty: float = 1.01
    """Cost of an edge inside the set, times its heavier end; above 1 so that every minimum is feasible."""

    def relative_energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) over the weight of each graph's heaviest node. [N, S] -> [B, S]."""
        edges_inside = 0.5 * x * conflict_sum(batch, x)
        return batch.graph_sum(self.penalty * edges_inside - weigh(batch, x))

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Edges inside the set. [N, S] -> [B, S]."""
        return batch.graph_sum(0.5 * x * batch.neighbor_sum(x))

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear minus the weight, coupling `penalty` times that of the heavier end along edges."""
        return QuadraticForm(-node_costs(batch), self.penalty, edges=batch.by_heavier_end, unit=batch.heaviest)
