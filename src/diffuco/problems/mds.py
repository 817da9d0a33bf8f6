"""Minimum Dominating Set: the smallest or lightest set such that every node is in it or next to it (Table 2).

Its energy is not quadratic, so decoders and annealers get the cover form and exact solvers one row per node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diffuco.graphs.graph import Graph
from diffuco.problems import greedy, linear_model
from diffuco.problems.base import Annealing, CoverForm, States, Verdict
from diffuco.problems.node_sets import NodeSetProblem, chosen_weight, in_units, node_costs, node_sum, weigh

if TYPE_CHECKING:
    from torch import Tensor

    from diffuco.graphs.batch import Batch


@dataclass(frozen=True)
class MinimumDominatingSet(NodeSetProblem):
    """H(X) = A sum_i w_i x_i + B sum_i max_j w_j prod_j (1 - x_j), where j is i or a neighbour; A = 1, B = penalty."""

    name = "mds"
    title = "Minimum Dominating Set"
    noun = "dominating set"
    sense = "min"
    adds_up = True
    annealing = Annealing(temperature=0.18, floor=0.33, parallel_temperature=0.3, parallel_steps=500, parallel_flips=5)
    marked_ends = 1

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return node_sum(batch, x) + self.penalty * in_units(batch, batch.graph_sum(undominated(batch, x)))

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Nodes that are not dominated. [N, S] -> [B, S]."""
        return batch.graph_sum((x + batch.neighbor_sum(x) < 0.5).to(x.dtype))

    def check(self, graph: Graph, chosen: States) -> Verdict:
        """Count the nodes that are neither chosen nor next to a chosen one."""
        u, v = graph.edges.T
        dominated = chosen.copy()
        dominated[u[chosen[v]]] = True
        dominated[v[chosen[u]]] = True
        return Verdict(chosen_weight(graph, chosen), int(np.count_nonzero(~dominated)))

    def form(self, batch: Batch) -> CoverForm:
        """What chosen nodes cost, and what undominated ones do."""
        from diffuco.ops.adjacency import CoverCosts

        if batch.heaviest_around is None:
            return CoverForm(self.penalty)
        return CoverForm(self.penalty, CoverCosts(node_costs(batch), batch.heaviest_around), batch.heaviest)

    def local_field(self, batch: Batch, x: Tensor) -> Tensor:
        """w_i - penalty * sum over i and its neighbours j of the chance that only i dominates j, weighed. [N, S]."""
        # Leaving i out of a product divides it by (1 - x_i), which log_free keeps above 0.
        alone = undominated(batch, x)
        saved = self.penalty * (alone + batch.neighbor_sum(alone)) / log_free(x).exp()
        field = weigh(batch, x.new_ones(x.shape)) - saved
        return field if batch.heaviest is None else batch.spread(batch.heaviest[:, None]).to(x.dtype) * field

    def linear_model(self, graph: Graph) -> linear_model.LinearModel:
        """Of every node and its neighbours at least one is chosen."""
        return linear_model.over_neighborhoods(graph.node_weights_or(1.0), graph)

    def greedy(self, graph: Graph, rng: np.random.Generator) -> States:
        """Take the node that dominates the most new nodes for its weight."""
        return greedy.dominating_set(graph, rng)


def undominated(batch: Batch, x: Tensor) -> Tensor:
    """The chance that neither a node nor a neighbour is chosen, times the heaviest of them. [N, S] -> [N, S]."""
    free = log_free(x)
    chance = (free + batch.neighbor_sum(free)).exp()
    return chance if batch.heaviest_around is None else batch.heaviest_around[:, None].to(x.dtype) * chance


def log_free(x: Tensor) -> Tensor:
    """log(1 - x), finite for chosen nodes too; products with them vanish. [N, S]."""
    from diffuco.graphs.batch.base import finite_log

    return finite_log(1 - x)
