"""Whether a problem is what the rest of the package takes it for: `check_problem`, for problems of your own."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.graphs.graph import Graph
from diffuco.problems.base import Problem, Verdict, energy_and_field
from diffuco.problems.weights import without_ignored_weights

EDGES = [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4), (2, 5), (4, 5)]
WEIGHTS = [0.5, 2.0, 1.0, 3.0, 0.25, 1.5, 1.0]


def check_problem(problem: Problem, graphs: Sequence[Graph] | None = None) -> None:
    """Hold a problem against the enumeration of all states of small graphs; an AssertionError says what is wrong.

    - The energy is multilinear: of probabilities it is the expected energy.
    - `check`, which is independent, agrees with `objective` and `violations`.
    - A feasible state's energy is its objective with the sign of `sense`, and no infeasible state is lower than all.
    - The local field is the difference of two energies, whatever computes it: of probabilities, and of states in
      float32.
    - `linear_model`, `adds_up`, `sides_are_alike` and `scales_with_weights` are true where they are stated.

    >>> from diffuco.problems import all_problems
    >>> for problem in all_problems():
    ...     check_problem(problem)
    """
    for graph in (without_ignored_weights(problem, graph) for graph in graphs or small_graphs()):
        states = _all_states(graph.num_nodes)
        verdicts = [problem.check(graph, state) for state in states.T]
        for kind in (SparseBatch, DenseBatch):
            batch = kind.from_graphs([graph])
            _check_energy(problem, graph, batch, verdicts)
            _check_field(problem, graph, batch)
        _check_linear_model(problem, graph, verdicts)
        _check_sum(problem, graph, verdicts)
        _check_symmetries(problem, graph)


def small_graphs() -> list[Graph]:
    """A cycle with a chord, with and without weights, a complete graph and two edges."""
    return [
        Graph.from_edges(EDGES, name="chord"),
        Graph.from_edges(EDGES, edge_weights=WEIGHTS, node_weights=WEIGHTS[:6], name="weights"),
        Graph.from_edges(list(itertools.combinations(range(4), 2)), name="complete"),
        Graph.from_edges([(0, 1), (2, 3)], name="two edges"),
    ]


def _check_energy(problem: Problem, graph: Graph, batch: Batch, verdicts: list[Verdict]) -> None:
    where, states = _where(problem, graph), _all_states(graph.num_nodes)
    x = _padded(batch, torch.from_numpy(states).double())
    energies = problem.energy(batch, x)[0]
    assert energies.shape == (states.shape[1],), f"{where}: the energy of [N, S] states must have the shape [B, S]"

    probs, likelihood = _probabilities(states)
    expected, found = (likelihood @ energies).item(), problem.energy(batch, _padded(batch, probs)).item()
    assert np.isclose(found, expected, atol=1e-5), (
        f"{where}: the energy of probabilities is {found:g}, the expected energy {expected:g}; make the energy "
        "multilinear, with x_i in place of x_i^2"
    )

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


def _check_field(problem: Problem, graph: Graph, batch: Batch) -> None:
    states = _all_states(graph.num_nodes)
    energies = _energies(problem, graph)
    number, bits = np.arange(len(energies)), 1 << np.arange(graph.num_nodes)[::-1, None]
    differences = torch.from_numpy(energies[number | bits] - energies[number & ~bits])  # [n, 2^n]
    probs, likelihood = _probabilities(states)
    for name, at, expected in (
        ("probabilities", probs, differences @ likelihood[:, None]),
        ("states in float32", torch.from_numpy(states).float(), differences),
    ):
        x = _padded(batch, at)
        for field in (problem.local_field(batch, x), energy_and_field(problem, batch, x)[1]):
            assert np.allclose(batch.split(field)[0], expected, atol=1e-4 * max(1.0, np.abs(energies).max())), (
                f"{_where(problem, graph)}: the local field of {name} is not the difference of two energies; correct "
                "`form` or `local_field`, or an energy without a gradient there, as `clamp` has none at its bound "
                "(Batch.neighbor_product has one)"
            )


def _check_linear_model(problem: Problem, graph: Graph, verdicts: list[Verdict]) -> None:
    model = problem.linear_model(graph)
    if model is None:
        return
    # Imported here: it takes as long as all the rest.
    from scipy.optimize import Bounds, LinearConstraint, milp

    where = f"{_where(problem, graph)}: `linear_model`"
    is_node = np.arange(len(model.cost)) < graph.num_nodes
    rows = LinearConstraint(model.matrix, -np.inf, model.upper) if len(model.upper) else ()
    found = milp(model.cost, integrality=is_node.astype(int), bounds=Bounds(0, 1), constraints=rows)
    costs = [problem.sign * verdict.objective for verdict in verdicts if verdict.feasible]
    assert (found.x is not None) == bool(costs), f"{where} and `check` disagree whether there is a feasible state"
    if found.x is None:
        return
    assert problem.check(graph, found.x[: graph.num_nodes] > 0.5).feasible, f"{where} allows an infeasible state"
    assert np.isclose(found.fun, min(costs), atol=1e-5), (
        f"{where} has the optimum {found.fun:g}, enumeration {min(costs):g}; its cost is the objective, times -1 where "
        "`sense` is max"
    )


def _check_sum(problem: Problem, graph: Graph, verdicts: list[Verdict]) -> None:
    """`adds_up`: two copies of the graph side by side, one in any state and the other in the same or another."""
    if not problem.adds_up:
        return
    twice = Graph(
        2 * graph.num_nodes,
        np.concatenate([graph.edges, graph.num_nodes + graph.edges]),
        None if graph.edge_weights is None else np.tile(graph.edge_weights, 2),
        None if graph.node_weights is None else np.tile(graph.node_weights, 2),
    )
    states, order = _all_states(graph.num_nodes), np.random.default_rng(0).permutation(len(verdicts))
    where = f"{_where(problem, graph)}: `adds_up` is stated, but two copies of the graph side by side"
    for first, second in [*enumerate(order), *enumerate(range(len(verdicts)))]:
        one, other = verdicts[first], verdicts[second]
        both = problem.check(twice, np.concatenate([states[:, first], states[:, second]]))
        assert both.feasible == (one.feasible and other.feasible), f"{where} are feasible or not unlike each alone"
        parts = one.objective + other.objective
        assert np.isclose(both.objective, parts, atol=1e-5), f"{where} are worth {both.objective:g}, not {parts:g}"


def _check_symmetries(problem: Problem, graph: Graph) -> None:
    where, energies = _where(problem, graph), _energies(problem, graph)
    if problem.sides_are_alike:
        assert np.allclose(energies, energies[::-1], atol=1e-5), (
            f"{where}: `sides_are_alike` is stated, but choosing all other nodes changes the energy"
        )
    if problem.scales_with_weights and (problem.uses_edge_weights or graph.node_weights is not None):
        doubled = replace(
            graph,
            edge_weights=2 * graph.edge_weights_or(1.0) if problem.uses_edge_weights else None,
            node_weights=None if graph.node_weights is None else 2 * graph.node_weights,
        )
        assert np.allclose(_energies(problem, doubled), 2 * energies, atol=1e-5), (
            f"{where}: `scales_with_weights` is stated, but twice the weights are not twice the energy"
        )


def _where(problem: Problem, graph: Graph) -> str:
    return f"{problem} on the graph '{graph.name}'"


def _all_states(num_nodes: int) -> NDArray[np.bool_]:
    """[n, 2^n]"""
    return np.array(list(itertools.product([False, True], repeat=num_nodes)), dtype=np.bool_).T


def _energies(problem: Problem, graph: Graph) -> NDArray[np.float64]:
    """Energies of all states. [2^n]."""
    x = torch.from_numpy(_all_states(graph.num_nodes)).double()
    return problem.energy(SparseBatch.from_graphs([graph]), x)[0].double().numpy()


def _probabilities(states: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
    """Probabilities of nodes [n, 1], and the likelihood of every state [2^n]."""
    probs = torch.rand(len(states), 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return probs, torch.where(torch.from_numpy(states), probs, 1 - probs).prod(0)


def _padded(batch: Batch, x: Tensor) -> Tensor:
    """Values of the nodes of a batch's only graph, zero in its padding. [n, S] -> [N, S]."""
    return torch.cat([x, x.new_zeros(batch.num_rows - len(x), x.shape[1])])
