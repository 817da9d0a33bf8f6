"""The result of a solve: the best sample, checked independently, with everything needed to reproduce it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph
from diffuco.solution.verification import verify


@dataclass(frozen=True, eq=False)
class Solution:
    """The best solution found for one graph, optimal only where `optimal` says so.

    `objective` and `feasible` are recomputed from the graph by code that shares nothing with the solver.

    >>> import diffuco
    >>> solution = diffuco.solve([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], "mis")
    >>> solution
    Solution(problem='mis', model='mis-rb-small', seed=0, objective=2.0, feasible=True, violations=0)
    >>> len(solution.nodes), len(solution.energies), solution.states.shape
    (2, 8, (5, 8))
    """

    problem: str
    graph: Graph = field(repr=False)
    chosen: NDArray[np.bool_] = field(repr=False)
    """[num_nodes] the nodes in the solution; for a cut, one of its sides."""
    states: NDArray[np.bool_] = field(repr=False)
    """[num_nodes, S] every sample after decoding and refining, in the order drawn; `chosen` is one of them."""
    energies: list[float] = field(repr=False)
    """H of every sample."""
    objectives: list[float] = field(repr=False)
    """What the user counts, of every sample."""
    model: str
    seed: int
    seconds: dict[str, float] = field(repr=False)
    """Time for `load`, `sample`, `decode` and, of a model, `refine`; of a batch, this graph's share."""
    sweeps: int = field(default=0, repr=False)
    """Sweeps of annealing that refined each sample of a model."""
    optimal: bool = field(default=False, repr=False)
    """Whether an exact solver proved that nothing is better."""
    objective: float = field(init=False)
    feasible: bool = field(init=False)
    violations: int = field(init=False)

    def __post_init__(self) -> None:
        verdict = verify(self.problem, self.graph, self.chosen)
        object.__setattr__(self, "objective", verdict.objective)
        object.__setattr__(self, "feasible", verdict.feasible)
        object.__setattr__(self, "violations", verdict.violations)

    @property
    def nodes(self) -> list[Hashable]:
        """The chosen nodes under the labels they have in the input."""
        return [self.graph.labels[index] for index in np.flatnonzero(self.chosen).tolist()]

    def to_dict(self) -> dict[str, Any]:
        """Everything `--json` prints, as plain Python values."""
        return {
            "problem": self.problem,
            "file": self.graph.name,
            "nodes": self.graph.num_nodes,
            "edges": self.graph.num_edges,
            "objective": as_count(self.objective),
            "feasible": self.feasible,
            "violations": self.violations,
            "optimal": self.optimal,
            "solution": [label if isinstance(label, int | str) else str(label) for label in self.nodes],
            "energies": self.energies,
            "objectives": [as_count(value) for value in self.objectives],
            "sweeps": self.sweeps,
            "seconds": self.seconds,
            "model": self.model,
            "seed": self.seed,
        }


def as_count(value: float) -> int | float:
    """A whole number as an int, so that set sizes print as 20, not 20.0.

    >>> as_count(20.0), as_count(0.5)
    (20, 0.5)
    """
    return int(value) if float(value).is_integer() else value
