"""What a problem is: an energy whose minima are the solutions, and what it means for users (Sec. 2.1, Table 2).

Every energy is multilinear in X, so one function serves states and probabilities alike: for x in {0, 1} it is H(X), for
x in [0, 1] it is exactly E[H(X)] under the mean-field distribution with these probabilities.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from diffuco.graphs.batch import Batch


@dataclass(frozen=True)
class QuadraticForm:
    """H(X) = const + sum_i linear_i x_i + edge * sum_(i,j) w_ij x_i x_j + pair * sum_(i<j) x_i x_j."""

    linear: Tensor
    """[N]"""
    edge: float
    """Factor of every edge term; w_ij is the edge weight if `weighted`, else 1."""
    pair: float = 0.0
    """Coupling of every pair of nodes, adjacent or not."""
    weighted: bool = False


@dataclass(frozen=True)
class CoverForm:
    """H(X) = sum_i x_i + penalty * sum_i prod_(j in i and its neighbours) (1 - x_j)."""

    penalty: float


@dataclass(frozen=True)
class Problem(ABC):
    """A combinatorial problem on graphs; a member of the family states its energy and what it counts."""

    name: ClassVar[str]
    title: ClassVar[str]
    sense: ClassVar[Literal["min", "max"]]
    uses_weights: ClassVar[bool] = False
    """Whether edge and node weights of a graph change the answer."""

    @abstractmethod
    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""

    @abstractmethod
    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """What the user counts: set size, cut size or QUBO value. [N, S] -> [B, S]."""

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
        field = form.linear[:, None] + form.edge * batch.neighbor_sum(x, weighted=form.weighted)
        if form.pair:
            field = field + form.pair * (batch.spread(batch.graph_sum(x)) - x)
        return field
