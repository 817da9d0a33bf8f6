"""Minimum total dominating set, which is not quadratic: every node, chosen or not, has a chosen neighbour.

The problem states its energy and its check. Everything else follows from them.
"""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem, States, Verdict


@dataclass(frozen=True)
class MinimumTotalDominatingSet(Problem):
    """H(X) = sum_i x_i + penalty * sum_i prod_(j next to i) (1 - x_j)."""

    name, title, noun = "total-domination", "Minimum Total Dominating Set", "total dominating set"

    penalty: float = 1.01
    """What a node without a chosen neighbour costs; more than choosing one."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        return batch.graph_sum(x + self.penalty * batch.neighbor_product(1 - x))

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        return batch.graph_sum(x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        return batch.graph_sum((batch.neighbor_sum(x) < 0.5).to(x.dtype))

    def check(self, graph: Graph, chosen: States) -> Verdict:
        u, v = graph.edges.T
        is_dominated = np.zeros(graph.num_nodes, dtype=np.bool_)
        is_dominated[u[chosen[v]]] = True
        is_dominated[v[chosen[u]]] = True
        return Verdict(float(chosen.sum()), int((~is_dominated).sum()))
