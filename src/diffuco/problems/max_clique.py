"""Maximum Clique: the largest or heaviest set of nodes that are all adjacent to each other (Table 2).

The sum over non-edges needs no complement graph: it is all pairs minus the edges, and all pairs follow from sum_i x_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.problems import greedy, linear_model
from diffuco.problems.base import Annealing, QuadraticForm, States, Verdict
from diffuco.problems.node_sets import NodeSetProblem, chosen_weight, edge_count, in_units, node_costs, node_sum

if TYPE_CHECKING:
    from torch import Tensor

    from diffuco.graphs.batch import Batch


@dataclass(frozen=True)
class MaximumClique(NodeSetProblem):
    """H(X) = -A sum_i w_i x_i + B max_i w_i sum_(i,j not adjacent) x_i x_j, with A = 1 and B = penalty."""

    name = "max-clique"
    title = "Maximum Clique"
    noun = "clique"
    sense = "max"
    annealing = Annealing(temperature=2.0, parallel_temperature=0.1, parallel_steps=300, parallel_flips=2)
    proof_nodes = 200  # with node weights: CP-SAT has a constraint for every missing edge
    proof_edges = 20_000_000

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return -node_sum(batch, x) + self.penalty * in_units(batch, missing_edges(batch, x))

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Pairs inside the set that are not adjacent. [N, S] -> [B, S]."""
        return missing_edges(batch, x)

    def check(self, graph: Graph, chosen: States) -> Verdict:
        """Count the pairs inside the set and take away the edges."""
        u, v = graph.edges.T
        size = int(np.count_nonzero(chosen))
        missing = size * (size - 1) // 2 - int(np.count_nonzero(chosen[u] & chosen[v]))
        return Verdict(chosen_weight(graph, chosen), missing)

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear minus the weight, coupling `penalty` between all pairs and its opposite along edges."""
        return QuadraticForm(-node_costs(batch), -self.penalty, self.penalty, unit=batch.heaviest)

    def linear_model(self, graph: Graph) -> linear_model.LinearModel:
        """Of two nodes that are not adjacent at most one is chosen."""
        pairs = linear_model.pairs_without_edge(graph)
        return linear_model.over_pairs(-graph.node_weights_or(1.0), pairs, factor=1.0, upper=1.0)

    def greedy(self, graph: Graph, rng: np.random.Generator) -> States:
        """Take the candidate that weighs most with its neighbours among the candidates."""
        return greedy.clique(graph, rng)


def missing_edges(batch: Batch, x: Tensor) -> Tensor:
    """Sum of x_i x_j over pairs that are not adjacent: ((sum x)^2 - sum x^2) / 2 - sum over edges. [N, S] -> [B, S]."""
    pairs = 0.5 * (batch.graph_sum(x).square() - batch.graph_sum(x.square()))
    return pairs - edge_count(batch, x)
