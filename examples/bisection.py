"""Minimum bisection, a quadratic problem that diffuco does not ship: halve a graph and cut as few edges as possible."""

from dataclasses import dataclass

from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.graphs.graph import Graph
from diffuco.problems import Annealing, Problem, QuadraticForm, States, Verdict


@dataclass(frozen=True)
class MinimumBisection(Problem):
    """H(X) = sum_(i,j) (x_i + x_j - 2 x_i x_j) + penalty * (sum_i x_i - N/2)^2, written with x_i in place of x_i^2."""

    name, title, noun = "bisection", "Minimum Bisection", "bisection"
    annealing = Annealing(temperature=3.0)

    penalty: float = 5.0
    """What it costs to move a node out of balance: more than the edges which that saves."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        size, chosen = batch.sizes[:, None], batch.graph_sum(x)
        pairs = chosen.square() - batch.graph_sum(x.square())
        imbalance = pairs + (1 - size) * chosen + (size // 2) * ((size + 1) // 2)
        return self.objective(batch, x) + self.penalty * imbalance

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        return batch.graph_sum(x * batch.neighbor_sum(1 - x))

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        return (batch.graph_sum(x) - batch.sizes[:, None] / 2).abs().floor()

    def check(self, graph: Graph, chosen: States) -> Verdict:
        u, v = graph.edges.T
        return Verdict(float((chosen[u] != chosen[v]).sum()), int(abs(chosen.sum() - graph.num_nodes / 2)))

    def form(self, batch: Batch) -> QuadraticForm:
        linear = batch.degrees + self.penalty * (1 - batch.spread(batch.sizes))
        return QuadraticForm(linear.to(batch.degrees), edge=-2.0, pair=2 * self.penalty)
