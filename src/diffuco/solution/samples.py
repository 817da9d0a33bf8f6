"""Weighted draws from a Boltzmann distribution, and what they tell of it: Z, energies, errors, a Markov chain.

Legend: S draws.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diffuco.graphs.graph import Graph
from diffuco.problems import Problem


class Estimate(NamedTuple):
    """A value and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class BoltzmannSamples:
    """Draws of a model, weighted so that they stand for the Boltzmann distribution exp(-H / temperature) / Z.

    Trust the estimates and their errors if `effective_sample_size` is large, `energy_drift` is 0 within its error and
    `log_z` is not below `least_log_z`.

    >>> import diffuco
    >>> found = diffuco.sample([(0, 1), (1, 2), (2, 0)], "mis", temperature=1.0, samples=500)
    >>> found.states.shape, found.log_weights.shape, found.resample(10).shape
    ((3, 500), (500,), (3, 10))
    """

    problem: Problem
    graph: Graph = field(repr=False)
    temperature: float
    states: NDArray[np.bool_] = field(repr=False)
    """[num_nodes, S] the states that the model drew; they may violate constraints, which costs energy."""
    energies: NDArray[np.float64] = field(repr=False)
    """[S] H of every state."""
    log_weights: NDArray[np.float64] = field(repr=False)
    """[S] logarithm of every draw's weight; the mean of the weights is an unbiased estimate of Z."""
    gibbs_changes: NDArray[np.float64] = field(repr=False)
    """[S] how the energy of every draw changed in one sweep of Gibbs sampling; the other fields are from before it."""
    found_by: str
    """Name of the model."""
    seed: int
    seconds: float = field(repr=False)
    reason: str = field(default="", repr=False)
    """Why this model was chosen; empty if the user asked for it."""

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """[S] the weights, divided by their sum."""
        relative = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(relative / relative.sum())

    @property
    def effective_sample_size(self) -> float:
        """About as many independent draws of the Boltzmann distribution would tell as much: 1 to S."""
        return float(1 / (self.weights**2).sum())

    @property
    def log_z(self) -> Estimate:
        """Logarithm of Z, the sum of exp(-H / temperature) over all states."""
        largest, count = self.log_weights.max(), len(self.weights)
        mean = np.exp(self.log_weights - largest).mean()
        return Estimate(float(largest + np.log(mean)), float((count * self.weights).std(ddof=1) / np.sqrt(count)))

    @property
    def least_log_z(self) -> float:
        """log of the sum over the distinct states drawn. The true log Z is not below it; a poor estimate may be."""
        _, first = np.unique(np.packbits(self.states, axis=0), axis=1, return_index=True)
        return float(np.logaddexp.reduce(-self.energies[first] / self.temperature))

    @property
    def free_energy(self) -> Estimate:
        """-temperature log Z."""
        value, error = self.log_z
        return Estimate(-self.temperature * value, self.temperature * error)

    @property
    def mean_energy(self) -> Estimate:
        """Mean of H."""
        return self.mean(self.energies)

    @property
    def energy_drift(self) -> Estimate:
        """How a sweep of Gibbs sampling changes the mean energy: not at all, unless the model misses states.

        The weights do not know of states that were never drawn.
        """
        return self.mean(self.gibbs_changes)

    def mean(self, values: ArrayLike) -> Estimate:
        """Mean over the Boltzmann distribution of any quantity, given its value for every draw. [S]."""
        each = np.asarray(values, dtype=np.float64)
        value = self.weights @ each
        return Estimate(float(value), float(np.sqrt((self.weights**2) @ (each - value) ** 2)))

    def resample(self, count: int, *, seed: int = 0) -> NDArray[np.bool_]:
        """States drawn by their weights, with repeats. [num_nodes, count]."""
        drawn = np.random.default_rng(seed).choice(len(self.weights), count, p=self.weights)
        return self.states[:, drawn]

    @cached_property
    def chain(self) -> NDArray[np.int64]:
        """[S] a Markov chain over the draws, as their positions; in the long run it visits states as Boltzmann does.

        Independent Metropolis-Hastings over whole paths: the next draw is the proposal, accepted with probability
        min(1, w_new / w_old); otherwise the chain stays.
        """
        log_uniform = np.log1p(-np.random.default_rng([self.seed, 1]).random(len(self.weights)))
        positions, at = np.empty(len(self.weights), dtype=np.int64), 0
        for proposal, log_weight in enumerate(self.log_weights.tolist()):
            if log_uniform[proposal] <= log_weight - self.log_weights[at]:
                at = proposal
            positions[proposal] = at
        return positions

    @property
    def acceptance_rate(self) -> float:
        """Share of the proposals that the chain accepted."""
        return float(np.mean(np.diff(self.chain) > 0))

    def to_dict(self) -> dict[str, Any]:
        """The estimates, as `diffuco sample --json` prints them."""
        estimates = {"log_z": self.log_z, "free_energy": self.free_energy, "mean_energy": self.mean_energy}
        estimates["energy_drift"] = self.energy_drift
        return {
            "problem": self.problem.name,
            "file": self.graph.name,
            "nodes": self.graph.num_nodes,
            "edges": self.graph.num_edges,
            "temperature": self.temperature,
            "samples": len(self.weights),
            "effective_sample_size": self.effective_sample_size,
            "acceptance_rate": self.acceptance_rate,
            "least_log_z": self.least_log_z,
            **{name: estimate._asdict() for name, estimate in estimates.items()},
            "found_by": self.found_by,
            "reason": self.reason,
            "seed": self.seed,
            "seconds": self.seconds,
        }
