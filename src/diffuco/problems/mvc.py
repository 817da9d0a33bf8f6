"""Minimum Vertex Cover: the smallest or lightest set of nodes that touches every edge (Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.problems import greedy, linear_model
from diffuco.problems.base import Annealing, QuadraticForm, States, Verdict
from diffuco.problems.node_sets import (
    NodeSetProblem,
    chosen_weight,
    conflict_sum,
    edge_count,
    edge_sum,
    node_costs,
    node_sum,
)

if TYPE_CHECKING:
    from torch import Tensor

    from diffuco.graphs.batch import Batch


@dataclass(frozen=True)
class MinimumVertexCover(NodeSetProblem):
    """H(X) = A sum_i w_i x_i + B sum_(i,j) max(w_i, w_j) (1 - x_i) (1 - x_j), with A = 1 and B = penalty."""

    name = "mvc"
    title = "Minimum Vertex Cover"
    noun = "vertex cover"
    sense = "min"
    adds_up = True
    complement = "mis"
    annealing = Annealing(temperature=0.2, parallel_temperature=0.1, parallel_steps=1000, parallel_flips=5)
    marked_ends = 0

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return node_sum(batch, x) + self.penalty * edge_sum(batch, 1 - x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Uncovered edges. [N, S] -> [B, S]."""
        return edge_count(batch, 1 - x)

    def check(self, graph: Graph, chosen: States) -> Verdict:
        """Count the uncovered edges."""
        u, v = graph.edges.T
        return Verdict(chosen_weight(graph, chosen), int(np.count_nonzero(~chosen[u] & ~chosen[v])))

    def form(self, batch: Batch) -> QuadraticForm:
        """Expanding (1 - x_i)(1 - x_j): linear w_i - penalty * degree, coupling `penalty` along edges, both weighed."""
        degrees = batch.degrees
        if batch.by_heavier_end is not None:
            degrees = conflict_sum(batch, degrees.new_ones(len(degrees), 1))[:, 0]
        linear = node_costs(batch) - self.penalty * degrees
        return QuadraticForm(linear, self.penalty, edges=batch.by_heavier_end, unit=batch.heaviest)

    def linear_model(self, graph: Graph) -> linear_model.LinearModel:
        """Of two adjacent nodes at least one is chosen."""
        return linear_model.over_pairs(graph.node_weights_or(1.0), graph.edges, factor=-1.0, upper=-1.0)

    def greedy(self, graph: Graph, rng: np.random.Generator) -> States:
        """Take the node with the most uncovered edges for its weight."""
        return greedy.vertex_cover(graph, rng)
