"""Minimum Dominating Set: the smallest or lightest set such that every node is in it or next to it (Table 2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.ops.adjacency import CoverCosts
from diffuco.problems.base import CoverForm, NodeSetProblem, node_costs, weigh


@dataclass(frozen=True)
class MinimumDominatingSet(NodeSetProblem):
    """H(X) = sum_i w_i x_i + penalty * sum_i max_j w_j prod_j (1 - x_j), where j is i or a neighbour of it."""

    name = "mds"
    title = "Minimum Dominating Set"
    sense = "min"

    penalty: float = 1.01
    """Cost of a node that is not dominated, times the heaviest around it; above 1 so that every minimum is feasible."""

    def relative_energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) over the weight of each graph's heaviest node. [N, S] -> [B, S]."""
        return batch.graph_sum(weigh(batch, x) + self.penalty * _undominated(batch, x))

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Nodes that are not dominated. [N, S] -> [B, S]."""
        return batch.graph_sum((x + batch.neighbor_sum(x) < 0.5).to(x.dtype))

    def form(self, batch: Batch) -> CoverForm:
        """The energy is not quadratic: decoding gets the cover form."""
        if batch.heaviest_around is None:
            return CoverForm(self.penalty)
        return CoverForm(self.penalty, CoverCosts(node_costs(batch), batch.heaviest_around), batch.heaviest)

    def local_field(self, batch: Batch, x: Tensor) -> Tensor:
        """w_i - penalty * sum over i and its neighbours j of the chance that only i dominates j, weighed. [N, S]."""
        log_free = _log_free(x)
        # Leaving i out of a product divides it by (1 - x_i), which the floor in _log_free keeps finite.
        undominated = _undominated(batch, x)
        saved = self.penalty * (undominated + batch.neighbor_sum(undominated)) / log_free.exp()
        field = weigh(batch, torch.ones_like(x)) - saved
        return field if batch.heaviest is None else batch.spread(batch.heaviest[:, None]).to(x.dtype) * field


def _log_free(x: Tensor) -> Tensor:
    """log(1 - x), with chosen nodes at the smallest float that still divides out: products with them vanish. [N, S]."""
    smallest = torch.finfo(x.dtype).tiny ** 0.25
    return (1 - x).clamp(min=smallest).log()


def _undominated(batch: Batch, x: Tensor) -> Tensor:
    """The chance that neither a node nor a neighbour is chosen, times the heaviest of them. [N, S] -> [N, S]."""
    log_free = _log_free(x)
    chance = (log_free + batch.neighbor_sum(log_free)).exp()
    return chance if batch.heaviest_around is None else batch.heaviest_around[:, None].to(x.dtype) * chance
