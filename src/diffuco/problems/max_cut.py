"""Maximum Cut: two sides such that the edges between them weigh as much as possible (Table 2)."""

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
class MaximumCut(Problem):
    """H(X) = -sum_(i,j) w_ij (1 - s_i s_j) / 2 with s_i = 2 x_i - 1, that is -sum w_ij (x_i + x_j - 2 x_i x_j)."""

    name = "max-cut"
    title = "Maximum Cut"
    noun = "cut"
    sense = "max"
    adds_up = True
    uses_edge_weights = True
    sides_are_alike = True
    scales_with_weights = True
    annealing = Annealing(temperature=0.4, parallel_temperature=3.0, parallel_steps=500, parallel_flips=20)
    round_percent = 75  # a better cut often has many nodes on the other side
    marked_ends = 1

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return -batch.graph_sum(x * batch.neighbor_sum(1 - x, weighted=True))

    def check(self, graph: Graph, chosen: States) -> Verdict:
        """Add up the edges between the sides; every split is a cut."""
        u, v = graph.edges.T
        is_cut = chosen[u] != chosen[v]
        return Verdict(float(is_cut.sum() if graph.edge_weights is None else graph.edge_weights[is_cut].sum()), 0)

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear: minus the weights of a node's edges; coupling twice the weight along edges."""
        return QuadraticForm(linear=-batch.weight_sum(), edge=2.0, edges=batch)

    def linear_model(self, graph: Graph) -> linear_model.LinearModel:
        """One more variable per edge, which says whether it is cut."""
        return linear_model.over_edges(
            np.zeros(graph.num_nodes),
            graph,
            -graph.edge_weights_or(1.0),
            pays=linear_model.CUT_PAYS,
            costs=linear_model.CUT_COSTS,
        )

    def greedy(self, graph: Graph, rng: np.random.Generator) -> States:
        """Place each node on the side that cuts more edges to the nodes placed before."""
        return greedy.cut(graph, rng)
