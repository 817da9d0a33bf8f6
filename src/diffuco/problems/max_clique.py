"""Maximum Clique: the largest or heaviest set of nodes that are all adjacent to each other (Table 2).

The sum over non-edges needs no complement graph: it is all pairs minus the edges, and all pairs follow from sum_i x_i.
"""

from dataclasses import dataclass

from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import NodeSetProblem, QuadraticForm, node_costs, weigh


@dataclass(frozen=True)
class MaximumClique(NodeSetProblem):
    """H(X) = -sum_i w_i x_i + penalty * max_i w_i * sum_(i,j not adjacent) x_i x_j."""

    name = "max-clique"
    title = "Maximum Clique"
    sense = "max"

    penalty: float = 1.01
    """Cost of a missing edge inside the set, times the heaviest node; above 1 so that every minimum is feasible."""

    def relative_energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) over the weight of each graph's heaviest node. [N, S] -> [B, S]."""
        return self.penalty * _missing_edges(batch, x) - batch.graph_sum(weigh(batch, x))

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Pairs inside the set that are not adjacent. [N, S] -> [B, S]."""
        return _missing_edges(batch, x)

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear minus the weight, coupling `penalty` between all pairs and its opposite along edges."""
        return QuadraticForm(-node_costs(batch), -self.penalty, self.penalty, unit=batch.heaviest)


def _missing_edges(batch: Batch, x: Tensor) -> Tensor:
    """Sum of x_i x_j over pairs that are not adjacent: ((sum x)^2 - sum x^2) / 2 - sum over edges. [N, S] -> [B, S]."""
    pairs = 0.5 * (batch.graph_sum(x).square() - batch.graph_sum(x.square()))
    return pairs - batch.graph_sum(0.5 * x * batch.neighbor_sum(x))
