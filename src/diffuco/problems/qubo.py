"""Quadratic Unconstrained Binary Optimisation: any quadratic function of binary variables (Eq. 3).

The graph holds it: node weights are the diagonal Q_ii, edge weights the coefficient of x_i x_j, which is Q_ij + Q_ji.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.problems import greedy, linear_model
from diffuco.problems.base import Annealing, Problem, QuadraticForm, States, Verdict

if TYPE_CHECKING:
    from torch import Tensor

    from diffuco.graphs.batch import Batch


@dataclass(frozen=True)
class Qubo(Problem):
    """H(X) = sum_i Q_ii x_i + sum_(i,j) (Q_ij + Q_ji) x_i x_j."""

    name = "qubo"
    title = "Quadratic Unconstrained Binary Optimisation"
    noun = "assignment"
    sense = "min"
    adds_up = True
    uses_edge_weights = True
    uses_node_weights = True
    scales_with_weights = True
    annealing = Annealing(temperature=0.15, parallel_temperature=1.0, parallel_steps=500, parallel_flips=5)

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        diagonal = batch.node_weights_or(0.0)[:, None].to(x.dtype)
        return batch.graph_sum(x * (diagonal + 0.5 * batch.neighbor_sum(x, weighted=True)))

    def check(self, graph: Graph, chosen: States) -> Verdict:
        """Add up the coefficients of the chosen variables; there are no constraints."""
        u, v = graph.edges.T
        quadratic = graph.edge_weights_or(1.0)[chosen[u] & chosen[v]].sum()
        linear = graph.node_weights_or(0.0)[chosen].sum()
        return Verdict(float(linear + quadratic), 0)

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear: the diagonal; coupling: the edge weights."""
        return QuadraticForm(linear=batch.node_weights_or(0.0), edge=1.0, edges=batch)

    def linear_model(self, graph: Graph) -> linear_model.LinearModel:
        """One more variable per edge, which is the product of its ends."""
        return linear_model.over_edges(
            graph.node_weights_or(0.0),
            graph,
            graph.edge_weights_or(1.0),
            pays=linear_model.BOTH_PAYS,
            costs=linear_model.BOTH_COSTS,
        )

    def greedy(self, graph: Graph, rng: np.random.Generator) -> States:
        """From all zeros, flip the variable that lowers the value most, until none does."""
        return greedy.qubo(graph, rng)
