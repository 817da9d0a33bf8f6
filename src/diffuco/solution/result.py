"""The result of a solve: the best sample, checked independently, with everything needed to reproduce it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem, in_weight_units, weight_unit


@dataclass(frozen=True, eq=False)
class Solution:
    """The best solution found for one graph. It is optimal only if `optimal` says so.

    The problem's own check computes `objective` and `feasible` from the graph. It shares nothing with the solver.

    >>> import diffuco
    >>> solution = diffuco.solve([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], "mis", model="mis-rb-small")
    >>> solution.objective, solution.feasible, solution.found_by
    (2.0, True, 'mis-rb-small')
    >>> len(solution.nodes), len(solution.energies), solution.states.shape
    (2, 8, (5, 8))
    """

    problem: Problem
    graph: Graph = field(repr=False)
    chosen: NDArray[np.bool_] = field(repr=False)
    """[num_nodes] the nodes in the solution; for a cut, one of its sides."""
    states: NDArray[np.bool_] = field(repr=False)
    """[num_nodes, S] every sample after decoding and refinement, in the order drawn; `chosen` is one of them."""
    energies: list[float] = field(repr=False)
    """Energy H of every sample."""
    objectives: list[float] = field(repr=False)
    """Objective of every sample."""
    found_by: str
    """The method that found it, or the name of the model."""
    seed: int
    seconds: dict[str, float] = field(repr=False)
    """Time to `load`, `sample` and `decode`, and with a model to `refine`. In a batch, this is the graph's share."""
    reason: str = field(default="", repr=False)
    """Why this method or model was chosen, in words; empty if the user asked for it."""
    sweeps: int = field(default=0, repr=False)
    """Annealing sweeps that refined each sample of a model."""
    optimal: bool = field(default=False, repr=False)
    """Whether it is proven that nothing is better: by an exact solver, or by a bound that is reached."""
    bound: float | None = field(default=None, repr=False)
    """No solution is better than this; None if nothing is known."""
    settled: NDArray[np.bool_] | None = field(default=None, repr=False)
    """[num_nodes] whose choice is proven to be best, if the graph falls apart and that is so for some pieces only."""
    objective: float = field(init=False)
    feasible: bool = field(init=False)
    violations: int = field(init=False)

    def __post_init__(self) -> None:
        verdict = self.problem.check(self.graph, self.chosen)
        object.__setattr__(self, "objective", verdict.objective)
        object.__setattr__(self, "feasible", verdict.feasible)
        object.__setattr__(self, "violations", verdict.violations)

    @classmethod
    def of(
        cls, problem: Problem, graph: Graph, chosen: ArrayLike, *, found_by: str, seed: int = 0, seconds: float = 0.0
    ) -> "Solution":
        """The solution that a method of your own found, from a mask over the nodes: True and False, or 1 and 0.

        >>> from diffuco.problems import get_problem
        >>> path = Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"])
        >>> Solution.of(get_problem("mis"), path, [1, 0, 1], found_by="my-solver").nodes
        ['a', 'c']
        """
        import torch

        from diffuco.graphs.batch import SparseBatch

        states = as_states(np.atleast_1d(chosen)[:, None], graph)
        batch = SparseBatch.from_graphs([in_weight_units(problem, graph)])
        energy = problem.energy(batch, torch.from_numpy(states).double())
        return cls(
            problem=problem,
            graph=graph,
            chosen=states[:, 0],
            states=states,
            energies=[weight_unit(problem, graph) * energy[0, 0].item()],
            objectives=[problem.check(graph, states[:, 0]).objective],
            found_by=found_by,
            seed=seed,
            seconds={"load": 0.0, "sample": seconds, "decode": 0.0},
        )

    @property
    def nodes(self) -> list[Hashable]:
        """The chosen nodes, by their labels in the input."""
        return [self.graph.labels[index] for index in np.flatnonzero(self.chosen).tolist()]

    @property
    def gap(self) -> float | None:
        """By what share of the objective a solution could still be better; None if nothing is known."""
        if self.bound is None or (self.objective == 0 and self.bound != 0):
            return None
        return abs(self.bound - self.objective) / abs(self.objective) if self.objective else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Everything `--json` prints, as plain Python values."""
        return {
            "problem": self.problem.name,
            "file": self.graph.name,
            "nodes": self.graph.num_nodes,
            "edges": self.graph.num_edges,
            "objective": as_count(self.objective),
            "feasible": self.feasible,
            "violations": self.violations,
            "optimal": self.optimal,
            "bound": None if self.bound is None else as_count(self.bound),
            "gap": self.gap,
            "solution": [plain_label(label) for label in self.nodes],
            "energies": self.energies,
            "objectives": [as_count(value) for value in self.objectives],
            "sweeps": self.sweeps,
            "seconds": self.seconds,
            "found_by": self.found_by,
            "reason": self.reason,
            "seed": self.seed,
        }


def as_states(found: ArrayLike, graph: Graph) -> NDArray[np.bool_]:
    """States of a graph, [num_nodes] or [num_nodes, S] of True and False or 1 and 0, as a mask. [num_nodes, S]."""
    given = np.asarray(found)
    states = given[:, None] if given.ndim == 1 else given
    if states.ndim != 2 or len(states) != graph.num_nodes or not states.shape[1]:
        name = graph.name or "graph"
        raise InputError(f"{name}: states of shape {given.shape}; give one entry for each of {graph.num_nodes} nodes")
    odd = states[(states != 0) & (states != 1)]
    if odd.size:
        raise InputError(f"nodes are chosen by True and False or 1 and 0, not by {odd[0]}; round the states")
    return states.astype(np.bool_)


def plain_label(label: Hashable) -> int | str:
    """A label as JSON can hold it."""
    return label if isinstance(label, int | str) else str(label)


def as_count(value: float) -> int | float:
    """A whole number as an int, so that set sizes print as 20, not 20.0.

    >>> as_count(20.0), as_count(0.5)
    (20, 0.5)
    """
    return int(value) if float(value).is_integer() else value
