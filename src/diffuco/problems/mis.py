"""Maximum Independent Set: the largest or heaviest set of nodes no two of which are adjacent (Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.problems import greedy, linear_model
from diffuco.problems.base import Annealing, QuadraticForm, States, Verdict
from diffuco.problems.node_sets import NodeSetProblem, chosen_weight, edge_count, edge_sum, node_costs, node_sum

if TYPE_CHECKING:
    from torch import Tensor

    from diffuco.graphs.batch import Batch


@dataclass(frozen=True)
class MaximumIndependentSet(NodeSetProblem):
    """H(X) = -A sum_i w_i x_i + B sum_(i,j) max(w_i, w_j) x_i x_j, with A = 1 and B = penalty; w_i is 1 by default."""

    name = "mis"
    title = "Maximum Independent Set"
    noun = "independent set"
    sense = "max"
    adds_up = True
    annealing = Annealing(temperature=0.2, parallel_temperature=0.1, parallel_steps=1000, parallel_flips=5)

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return -node_sum(batch, x) + self.penalty * edge_sum(batch, x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Edges inside the set. [N, S] -> [B, S]."""
        return edge_count(batch, x)

    def check(self, graph: Graph, chosen: States) -> Verdict:
        """Count the edges inside the set."""
        u, v = graph.edges.T
        return Verdict(chosen_weight(graph, chosen), int(np.count_nonzero(chosen[u] & chosen[v])))

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear minus the weight, coupling `penalty` times that of the heavier end along edges."""
        return QuadraticForm(-node_costs(batch), self.penalty, edges=batch.by_heavier_end, unit=batch.heaviest)

    def linear_model(self, graph: Graph) -> linear_model.LinearModel:
        """Of two adjacent nodes at most one is chosen."""
        return linear_model.over_pairs(-graph.node_weights_or(1.0), graph.edges, factor=1.0, upper=1.0)

    def greedy(self, graph: Graph, rng: np.random.Generator) -> States:
        """Take the node that weighs most for itself and its neighbours."""
        return greedy.independent_set(graph, rng)
