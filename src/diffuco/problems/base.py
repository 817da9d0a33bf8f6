"""What a problem is: an energy whose minima are the solutions, and what it means for users (Sec. 2.1, Table 2).

An energy is all that a problem must state. Everything else here has a default that follows from it; a problem states
more where that makes it checkable, faster or provable.

Every energy is multilinear in X, so one function serves states and probabilities alike: for x in {0, 1} it is H(X), for
x in [0, 1] it is exactly E[H(X)] under the mean-field distribution with these probabilities.

Torch is imported where a tensor is made, so that checking a solution does not wait for it.

Legend: B graphs, N rows (nodes of all graphs), S samples per graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph
from diffuco.problems.linear_model import LinearModel

if TYPE_CHECKING:
    from torch import Tensor

    from diffuco.graphs.batch import Batch
    from diffuco.ops.adjacency import CoverCosts

States = NDArray[np.bool_]
"""[num_nodes] which nodes of one graph are chosen."""


class Verdict(NamedTuple):
    """What a set of nodes is worth."""

    objective: float
    """What the user counts: the weight of a set or cut, or the value of a QUBO."""
    violations: int
    """Number of violated constraints."""

    @property
    def feasible(self) -> bool:
        """Whether no constraint is violated."""
        return self.violations == 0


@dataclass(frozen=True)
class QuadraticForm:
    """H(X) / unit = sum_i linear_i x_i + edge * sum_(i,j) w_ij x_i x_j + pair * sum_(i<j) x_i x_j, up to a constant."""

    linear: Tensor
    """[N]"""
    edge: float
    """Factor of every edge term."""
    pair: float = 0.0
    """Coupling of every pair of nodes, adjacent or not."""
    edges: Batch | None = None
    """The batch whose edge weights are the w_ij; None: every w_ij is 1."""
    unit: Tensor | None = None
    """[B], or None: 1."""


@dataclass(frozen=True)
class CoverForm:
    """H(X) / unit = sum_i chosen_i x_i + penalty * sum_i uncovered_i prod_(j in i and its neighbours) (1 - x_j)."""

    penalty: float
    costs: CoverCosts | None = None
    """What chosen and uncovered nodes cost; None: 1."""
    unit: Tensor | None = None
    """[B], or None: 1."""


@dataclass(frozen=True)
class Annealing:
    """How annealers treat a problem; ours were chosen on validation graphs (docs/log.md)."""

    temperature: float = 0.2
    """Temperature of the first sweep; it falls to 0. Its unit is a typical node weight, or 1 without weights. For a
    problem that uses edge weights, the unit is what a flip of a node with random neighbours gains."""
    floor: float = 0.0
    """Share of that temperature that is left before the last sweeps, in which it falls to 0."""
    parallel_temperature: float = 0.3
    """The first temperature of `rlsa`, where all nodes may flip at once. Its unit is a typical weight, or 1."""
    parallel_steps: int = 500
    """Steps of `rlsa`."""
    parallel_flips: int = 5
    """About how many nodes of a graph flip in a step of `rlsa`."""


@dataclass(frozen=True)
class Problem(ABC):
    """A combinatorial problem on graphs. A subclass is a frozen dataclass; only `name` and `energy` are required."""

    name: ClassVar[str]
    title: ClassVar[str] = ""
    """The name in full; the short one by default."""
    noun: ClassVar[str] = "solution"
    """What is found, such as "clique"."""
    sense: ClassVar[Literal["min", "max"]] = "min"
    """Whether users want a small or a large objective."""
    uses_edge_weights: ClassVar[bool] = False
    """Whether the edge weights of a graph change the answer."""
    uses_node_weights: ClassVar[bool] = False
    """Whether the node weights do."""
    scales_with_weights: ClassVar[bool] = False
    """Whether the energy is twice as large if all weights it uses are; searches then work in units of the largest."""
    sides_are_alike: ClassVar[bool] = False
    """Whether choosing all other nodes instead is the same solution."""
    adds_up: ClassVar[bool] = False
    """Whether the components of a graph are solved each for itself, and their objectives add up."""
    complement: ClassVar[str | None] = None
    """Name of the problem whose solutions leave out what those of this one choose; its models serve this one, too."""
    annealing: ClassVar[Annealing] = Annealing()
    round_percent: ClassVar[int] = 60
    """Of the diffusion steps: how far a round goes back (docs/log.md), unless a model's card tells otherwise."""
    proof_nodes: ClassVar[int] = 40
    """Largest graphs on which the method `auto` tries a proof: a little more than what mostly takes a second."""
    proof_edges: ClassVar[int] = 0
    """Up to this many edges, `auto` tries larger graphs: sparse ones with HiGHS, whose presolve often leaves nothing of
    them, and cliques of any graph with our own search."""
    marked_ends: ClassVar[int] = 2
    """A picture draws those edges strong that have this many chosen ends."""

    @abstractmethod
    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities; multilinear in x. [N, S] -> [B, S]."""

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """What the user counts; the energy with the sign of `sense` by default. [N, S] -> [B, S]."""
        return self.sign * self.energy(batch, x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Number of violated constraints; none by default. [N, S] -> [B, S]."""
        return batch.graph_sum(0.0 * x)

    def check(self, graph: Graph, chosen: States) -> Verdict:
        """Judge a solution from the graph itself. Ours are written in numpy and share nothing with the solver.

        The default asks the energy, so a problem with constraints needs a check of its own.
        """
        import torch

        from diffuco.graphs.batch import SparseBatch

        batch, x = SparseBatch.from_graphs([graph]), torch.from_numpy(chosen)[:, None].double()
        return Verdict(self.objective(batch, x).item(), round(self.violations(batch, x).item()))

    def form(self, batch: Batch) -> QuadraticForm | CoverForm | None:
        """Coefficients of the energy, for the fast decoders and annealers; None: they ask the energy itself."""
        return None

    def local_field(self, batch: Batch, x: Tensor) -> Tensor:
        """dH/dx_i = H(x with x_i = 1) - H(x with x_i = 0), for all nodes at once. [N, S] -> [N, S]."""
        form = self.form(batch)
        if not isinstance(form, QuadraticForm):
            return energy_and_field(self, batch, x)[1]
        neighbors = form.edges or batch
        field = form.linear[:, None] + form.edge * neighbors.neighbor_sum(x, weighted=form.edges is not None)
        if form.pair:
            field = field + form.pair * (batch.spread(batch.graph_sum(x)) - x)
        return field if form.unit is None else batch.spread(form.unit[:, None]).to(x.dtype) * field

    def linear_model(self, graph: Graph) -> LinearModel | None:
        """The problem on a graph as an integer linear program, for exact solvers; None if there is none."""
        return None

    def greedy(self, graph: Graph, rng: np.random.Generator) -> States | None:
        """A quick answer, node by node; None: Conditional Expectation decides every node in turn."""
        return None

    def check_node_weights(self, weights: NDArray[np.float64]) -> tuple[int, str] | None:
        """The first node whose weight the problem cannot take, and what it takes; None if all are fine."""
        return None

    @property
    def sign(self) -> float:
        """What turns an energy into an objective and back."""
        return -1.0 if self.sense == "max" else 1.0

    @property
    def has_form(self) -> bool:
        """Whether the problem states a form."""
        return self._probe() is not None

    @property
    def is_quadratic(self) -> bool:
        """Whether the energy has a quadratic form."""
        return isinstance(self._probe(), QuadraticForm)

    def _probe(self) -> QuadraticForm | CoverForm | None:
        from diffuco.graphs.batch import SparseBatch

        return self.form(SparseBatch.from_graphs([Graph.from_edges([(0, 1)])]))

    def __str__(self) -> str:
        return self.name


def energy_and_field(problem: Problem, batch: Batch, x: Tensor) -> tuple[Tensor, Tensor]:
    """Any multilinear energy and its local field, by automatic differentiation. [N, S] -> [B, S], [N, S]."""
    import torch

    with torch.inference_mode(False), torch.enable_grad():
        at = x.detach().clone().requires_grad_()
        energy = problem.energy(batch, at)
        (field,) = torch.autograd.grad(energy.sum(), at)
    return energy.detach(), field
