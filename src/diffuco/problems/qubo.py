"""Quadratic Unconstrained Binary Optimisation: any quadratic function of binary variables (Eq. 3).

The graph holds it: node weights are the diagonal Q_ii, edge weights the coefficient of x_i x_j, which is Q_ij + Q_ji.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import Problem, QuadraticForm


@dataclass(frozen=True)
class Qubo(Problem):
    """H(X) = sum_i Q_ii x_i + sum_(i,j) (Q_ij + Q_ji) x_i x_j."""

    name = "qubo"
    title = "Quadratic Unconstrained Binary Optimisation"
    sense = "min"
    uses_edge_weights = True
    uses_node_weights = True

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        diagonal = batch.node_weights_or(0.0)[:, None].to(x.dtype)
        return batch.graph_sum(x * (diagonal + 0.5 * batch.neighbor_sum(x, weighted=True)))

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """The energy itself. [N, S] -> [B, S]."""
        return self.energy(batch, x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """None: QUBO has no constraints. [N, S] -> [B, S]."""
        return batch.graph_sum(torch.zeros_like(x))

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear: the diagonal; coupling: the edge weights."""
        return QuadraticForm(linear=batch.node_weights_or(0.0), edge=1.0, edges=batch)
