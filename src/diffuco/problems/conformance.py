"""Whether a problem is what the rest of the package takes it for: `check_problem`, for problems of your own."""

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.graphs.graph import Graph
from diffuco.problems.base import Problem, energy_and_field
from diffuco.problems.weights import without_ignored_weights

EDGES = [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4), (2, 5), (4, 5)]
WEIGHTS = [0.5, 2.0, 1.0, 3.0, 0.25, 1.5, 1.0]


def check_problem(problem: Problem, graphs: Sequence[Graph] | None = None) -> None:
    """Hold a problem against the enumeration of all states of small graphs; an AssertionError says what is wrong.

    - The energy is multilinear: of probabilities it is the expected energy.
    - `check`, which is independent, agrees with `objective` and `violations`.
    - A feasible state's energy is its objective with the sign of `sense`, and no infeasible state is lower than all.
    - The local field is the difference of two energies, whatever computes it.

    >>> from diffuco.problems import all_problems
    >>> for problem in all_problems():
    ...     check_problem(problem)
    """
    for graph in (without_ignored_weights(problem, graph) for graph in graphs or small_graphs()):
        for kind in (SparseBatch, DenseBatch):
            _check_on(problem, graph, kind.from_graphs([graph]))


def small_graphs() -> list[Graph]:
    """A cycle with a chord, with and without weights, a complete graph and two edges."""
    return [
        Graph.from_edges(EDGES, name="chord"),
        Graph.from_edges(EDGES, edge_weights=WEIGHTS, node_weights=WEIGHTS[:6], name="weights"),
        Graph.from_edges(list(itertools.combinations(range(4), 2)), name="complete"),
        Graph.from_edges([(0, 1), (2, 3)], name="two edges"),
    ]


def _check_on(problem: Problem, graph: Graph, batch: Batch) -> None:
    where = f"{problem} on the graph '{graph.name}'"
    states = np.array(list(itertools.product([False, True], repeat=graph.num_nodes))).T  # [n, 2^n]
    x = _padded(batch, torch.from_numpy(states).double())
    energies = problem.energy(batch, x)[0]
    assert energies.shape == (states.shape[1],), f"{where}: the energy of [N, S] states must have the shape [B, S]"

    probs = torch.rand(graph.num_nodes, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    likelihood = torch.where(torch.from_numpy(states), probs, 1 - probs).prod(0)
    expected, found = (likelihood @ energies).item(), problem.energy(batch, _padded(batch, probs)).item()
    assert np.isclose(found, expected, atol=1e-5), (
        f"{where}: the energy of probabilities is {found:g}, the expected energy {expected:g}; make the energy "
        "multilinear, with x_i in place of x_i^2"
    )

    verdicts = [problem.check(graph, state) for state in states.T]
    objectives, violations = problem.objective(batch, x)[0], problem.violations(batch, x)[0]
    feasible = np.array([verdict.feasible for verdict in verdicts])
    checked = np.array([verdict.objective for verdict in verdicts])
    assert np.allclose(objectives.numpy(), checked, atol=1e-5), f"{where}: `objective` and `check` disagree"
    assert ((violations.numpy() > 0.5) == ~feasible).all(), f"{where}: `violations` and `check` disagree"
    signed = problem.sign * checked
    assert np.allclose(energies.numpy()[feasible], signed[feasible], atol=1e-4), (
        f"{where}: the energy of a feasible state must be its objective, times -1 where `sense` is max"
    )
    if feasible.any():
        assert energies.numpy().min() > signed[feasible].min() - 1e-4, (
            f"{where}: an infeasible state has the lowest energy; raise the penalty"
        )

    at = _padded(batch, 0.1 + 0.8 * probs)
    differences = _differences(problem, batch, at)
    for field in (problem.local_field(batch, at), energy_and_field(problem, batch, at)[1]):
        assert torch.allclose(batch.split(field)[0], differences, atol=1e-4), (
            f"{where}: the local field is not the difference of two energies; correct `form` or `local_field`"
        )


def _differences(problem: Problem, batch: Batch, x: Tensor) -> Tensor:
    """H(x with x_i = 1) - H(x with x_i = 0) of every node. [N, 1] -> [n, 1]."""
    num_nodes = int(batch.sizes[0])
    options = x.repeat(1, 2 * num_nodes)
    nodes = torch.arange(num_nodes)
    options[nodes, nodes], options[nodes, num_nodes + nodes] = 1.0, 0.0
    energies = problem.energy(batch, options)[0]
    return (energies[:num_nodes] - energies[num_nodes:])[:, None]


def _padded(batch: Batch, x: Tensor) -> Tensor:
    """Values of the nodes of a batch's only graph, zero in its padding. [n, S] -> [N, S]."""
    return torch.cat([x, x.new_zeros(batch.num_rows - len(x), x.shape[1])])
