"""What a problem is: an energy whose minima are the solutions, and what it means for users (Sec. 2.1, Table 2).

Every energy is multilinear in X, so one function serves states and probabilities alike: for x in {0, 1} it is H(X), for
x in [0, 1] it is exactly E[H(X)] under the mean-field distribution with these probabilities.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.ops.adjacency import CoverCosts


@dataclass(frozen=True)
class QuadraticForm:
    """H(X) / unit = const + sum_i linear_i x_i + edge * sum_(i,j) w_ij x_i x_j + pair * sum_(i<j) x_i x_j."""

    linear: Tensor
    """[N]"""
    edge: float
    """Factor of every edge term."""
    pair: float = 0.0
    """Coupling of every pair of nodes, adjacent or not."""
    edges: Batch | None = None
    """Whose edge weights the w_ij are; None: they are 1."""
    unit: Tensor | None = None
    """[B], or None: 1."""


@dataclass(frozen=True)
class CoverForm:
    """H(X) / unit = sum_i chosen_i x_i + penalty * sum_i uncovered_i prod_(j in i and its neighbours) (1 - x_j)."""

    penalty: float
    costs: CoverCosts | None = None
    """What nodes cost, chosen and uncovered; None: 1."""
    unit: Tensor | None = None
    """[B], or None: 1."""


@dataclass(frozen=True)
class Problem(ABC):
    """A combinatorial problem on graphs; a member of the family states its energy and what it counts."""

    name: ClassVar[str]
    title: ClassVar[str]
    sense: ClassVar[Literal["min", "max"]]
    uses_edge_weights: ClassVar[bool] = False
    """Whether edge weights of a graph change the answer."""
    uses_node_weights: ClassVar[bool] = False
    """Whether node weights do."""

    @abstractmethod
    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""

    @abstractmethod
    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """What the user counts: weight of a set or cut, or QUBO value. [N, S] -> [B, S]."""

    @abstractmethod
    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Number of violated constraints; 0 where the states are feasible. [N, S] -> [B, S]."""

    @abstractmethod
    def form(self, batch: Batch) -> QuadraticForm | CoverForm:
        """The energy's coefficients, from which decoding takes local fields."""

    def local_field(self, batch: Batch, x: Tensor) -> Tensor:
        """dH/dx_i = H(x with x_i = 1) - H(x with x_i = 0), for all nodes at once. [N, S] -> [N, S]."""
        form = self.form(batch)
        assert isinstance(form, QuadraticForm), "a problem that is not quadratic states its own field"
        neighbors = form.edges or batch
        field = form.linear[:, None] + form.edge * neighbors.neighbor_sum(x, weighted=form.edges is not None)
        if form.pair:
            field = field + form.pair * (batch.spread(batch.graph_sum(x)) - x)
        return field if form.unit is None else batch.spread(form.unit[:, None]).to(x.dtype) * field


class NodeSetProblem(Problem):
    """A problem that counts the chosen nodes by their weights, which are 1 in graphs that have none.

    Energies are computed with weights relative to the heaviest node of a graph and end in its unit, so that penalties,
    ties and temperatures are of one size whatever the unit. A violated constraint costs `penalty`, which is above 1,
    times the weight of the heaviest node that could mend it. Of these nodes one is decided last: mending the constraint
    then saves more than the node costs, so Conditional Expectation always ends in a feasible state, and minima are
    feasible for the same reason.
    """

    uses_node_weights = True

    @abstractmethod
    def relative_energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) over the weight of each graph's heaviest node. [N, S] -> [B, S]."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        relative = self.relative_energy(batch, x)
        return relative if batch.heaviest is None else batch.heaviest[:, None].to(x.dtype) * relative

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Weight of the set. [N, S] -> [B, S]."""
        return batch.graph_sum(x if batch.node_weights is None else batch.node_weights_or(1.0)[:, None].to(x.dtype) * x)


def weigh(batch: Batch, x: Tensor) -> Tensor:
    """Values times the relative weights of nodes. [N, S] -> [N, S]."""
    return x if batch.relative_weights is None else batch.relative_weights[:, None].to(x.dtype) * x


def conflict_sum(batch: Batch, x: Tensor) -> Tensor:
    """Sum over each node's neighbours, times what the heavier end of the edge weighs. [N, S] -> [N, S]."""
    return (
        batch.neighbor_sum(x) if batch.by_heavier_end is None else batch.by_heavier_end.neighbor_sum(x, weighted=True)
    )


def node_costs(batch: Batch) -> Tensor:
    """Relative weights of nodes in the type of the degrees, 1 where there are none. [N]."""
    return weigh(batch, torch.ones_like(batch.degrees)[:, None])[:, 0]
