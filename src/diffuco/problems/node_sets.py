"""Problems that count chosen nodes by their weights, which are 1 in graphs that have none.

Sums are computed with weights relative to the heaviest node of a graph and then multiplied by its weight, so that
penalties, ties and temperatures have one size whatever the unit of the weights. A violated constraint costs `penalty`,
which is above 1, times the weight of the heaviest node that could mend it. One of these nodes is decided last: mending
the constraint then saves more than the node costs. So Conditional Expectation always ends in a feasible state, and for
the same reason every minimum is feasible.

Legend: B graphs, N rows, S samples per graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph
from diffuco.problems.base import Problem, States

if TYPE_CHECKING:
    from torch import Tensor

    from diffuco.graphs.batch import Batch

MAX_NODE_WEIGHT = 1e30
"""Sums of larger weights leave the range of float32."""


@dataclass(frozen=True)
class NodeSetProblem(Problem):
    """A problem whose objective is the weight of the chosen nodes."""

    uses_node_weights = True
    scales_with_weights = True
    proof_nodes = 400
    proof_edges = 500_000

    penalty: float = 1.01
    """B of Table 2: what a violated constraint costs. Above 1, so that every minimum is feasible."""

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Weight of the set. [N, S] -> [B, S]."""
        return batch.graph_sum(x if batch.node_weights is None else batch.node_weights_or(1.0)[:, None].to(x.dtype) * x)

    def check_node_weights(self, weights: NDArray[np.float64]) -> tuple[int, str] | None:
        """Sets are weighed, so weights must not be below 0."""
        bad = np.flatnonzero((weights < 0) | (weights > MAX_NODE_WEIGHT))
        return (int(bad[0]), f"node weights from 0 to {MAX_NODE_WEIGHT:g}") if len(bad) else None


def node_sum(batch: Batch, x: Tensor) -> Tensor:
    """sum_i w_i x_i. [N, S] -> [B, S]."""
    return in_units(batch, batch.graph_sum(weigh(batch, x)))


def edge_sum(batch: Batch, x: Tensor) -> Tensor:
    """sum over edges (i, j) of max(w_i, w_j) x_i x_j. [N, S] -> [B, S]."""
    return in_units(batch, batch.graph_sum(0.5 * x * conflict_sum(batch, x)))


def edge_count(batch: Batch, x: Tensor) -> Tensor:
    """sum over edges (i, j) of x_i x_j. [N, S] -> [B, S]."""
    return batch.graph_sum(0.5 * x * batch.neighbor_sum(x))


def in_units(batch: Batch, relative: Tensor) -> Tensor:
    """Values relative to the heaviest node, times its weight. [B, S] -> [B, S]."""
    return relative if batch.heaviest is None else batch.heaviest[:, None].to(relative.dtype) * relative


def weigh(batch: Batch, x: Tensor) -> Tensor:
    """Values times the relative weights of nodes. [N, S] -> [N, S]."""
    return x if batch.relative_weights is None else batch.relative_weights[:, None].to(x.dtype) * x


def conflict_sum(batch: Batch, x: Tensor) -> Tensor:
    """Sum over each node's neighbours, each times the relative weight of the edge's heavier end. [N, S] -> [N, S]."""
    edges = batch.by_heavier_end
    return batch.neighbor_sum(x) if edges is None else edges.neighbor_sum(x, weighted=True)


def node_costs(batch: Batch) -> Tensor:
    """Relative weights of nodes in the type of the degrees, 1 where there are none. [N]."""
    return weigh(batch, batch.degrees.new_ones(len(batch.degrees), 1))[:, 0]


def chosen_weight(graph: Graph, chosen: States) -> float:
    """Weight of the chosen nodes, for independent checks."""
    return float(np.count_nonzero(chosen) if graph.node_weights is None else graph.node_weights[chosen].sum())
