"""Minimum Dominating Set: the smallest set such that every node is in it or next to it (Table 2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.problems.base import CoverForm, Problem


@dataclass(frozen=True)
class MinimumDominatingSet(Problem):
    """H(X) = sum_i x_i + penalty * sum_i prod_(j in i and its neighbours) (1 - x_j)."""

    name = "mds"
    title = "Minimum Dominating Set"
    sense = "min"

    penalty: float = 1.01
    """Cost of one node that is not dominated; above 1 so that every minimum is feasible."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return batch.graph_sum(x + self.penalty * _log_undominated(batch, x).exp())

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Size of the set. [N, S] -> [B, S]."""
        return batch.graph_sum(x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Nodes that are not dominated. [N, S] -> [B, S]."""
        return batch.graph_sum((x + batch.neighbor_sum(x) < 0.5).to(x.dtype))

    def form(self, batch: Batch) -> CoverForm:
        """The energy is not quadratic: decoding gets the cover form."""
        return CoverForm(penalty=self.penalty)

    def local_field(self, batch: Batch, x: Tensor) -> Tensor:
        """1 - penalty * sum over i and its neighbours j of the chance that only i can dominate j. [N, S] -> [N, S]."""
        log_free = _log_free(x)
        # Leaving i out of a product divides it by (1 - x_i), which the floor in _log_free keeps finite.
        undominated = _log_undominated(batch, x).exp()
        return 1 - self.penalty * (undominated + batch.neighbor_sum(undominated)) / log_free.exp()


def _log_free(x: Tensor) -> Tensor:
    """log(1 - x), with chosen nodes at the smallest float that still divides out: products with them vanish. [N, S]."""
    smallest = torch.finfo(x.dtype).tiny ** 0.25
    return (1 - x).clamp(min=smallest).log()


def _log_undominated(batch: Batch, x: Tensor) -> Tensor:
    """log of the chance that neither a node nor a neighbour is chosen. [N, S] -> [N, S]."""
    log_free = _log_free(x)
    return log_free + batch.neighbor_sum(log_free)
