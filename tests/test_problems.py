import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse
import torch
from torch.testing import assert_close

import oracle
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.graphs.graph import Graph
from diffuco.problems import (
    LinearModel,
    Problem,
    all_problems,
    check_weights,
    get_problem,
    greedy,
    ignored_weights,
    without_ignored_weights,
)
from diffuco.problems.conformance import check_problem

PROBLEMS = [*all_problems(), *(get_problem(name, 1.5) for name in ("mis", "mvc", "max-clique", "mds"))]
for_all_problems = pytest.mark.parametrize("problem", PROBLEMS, ids=str)
for_both_batches = pytest.mark.parametrize("batch_kind", [SparseBatch, DenseBatch])


def states_of(batch, graphs) -> list[torch.Tensor]:
    """Batches of states [N, 1] that between them hold all 2^N states of every graph."""
    tables = [oracle.all_states(graph.num_nodes) for graph in graphs]
    longest = max(len(table) for table in tables)
    x = torch.zeros(batch.num_rows, longest, dtype=torch.float64)
    for table, rows in zip(tables, batch.split(x), strict=True):
        rows.copy_(torch.from_numpy(np.resize(table, (longest, rows.shape[0])).T))
    return x


def unit_of(problem, graph) -> float:
    """What values of a graph are of the size of: the heaviest node where nodes are counted."""
    if not oracle.is_node_set(problem) or graph.node_weights is None:
        return 1.0
    return float(graph.node_weights.max()) or 1.0


@for_all_problems
@for_both_batches
def test_energy_of_states_is_the_tables(problem, batch_kind):
    graphs = oracle.small_graphs(problem)
    batch = batch_kind.from_graphs(graphs)
    energies = problem.energy(batch, states_of(batch, graphs))
    for row, graph in zip(energies, graphs, strict=True):
        expected = oracle.energies(problem, graph)
        unit = unit_of(problem, graph)
        assert_close(row[: len(expected)] / unit, torch.from_numpy(expected / unit), atol=1e-5, rtol=1e-5)


@for_all_problems
@for_both_batches
def test_energy_of_probabilities_is_expected_energy(problem, batch_kind):
    graphs = oracle.small_graphs(problem)
    batch = batch_kind.from_graphs(graphs)
    probs = torch.rand(batch.num_rows, 3, generator=oracle.seeded(0), dtype=torch.float64)
    energies = problem.energy(batch, probs)
    for row, graph, p in zip(energies, graphs, batch.split(probs), strict=True):
        expected = [oracle.expected_energy(problem, graph, column) for column in p.T.numpy()]
        unit = unit_of(problem, graph)
        assert_close(row / unit, torch.tensor(expected, dtype=torch.float64) / unit, atol=1e-5, rtol=1e-5)


@for_all_problems
@for_both_batches
def test_local_field_is_the_difference_of_two_energies(problem, batch_kind):
    graphs = oracle.small_graphs(problem)
    batch = batch_kind.from_graphs(graphs)
    probs = torch.rand(batch.num_rows, 2, generator=oracle.seeded(1), dtype=torch.float64)
    probs[::3, 0] = 1.0
    probs[1::3, 0] = 0.0
    fields = batch.split(problem.local_field(batch, probs))
    for graph_index, (graph, field, p) in enumerate(zip(graphs, fields, batch.split(probs), strict=True)):
        for node in range(graph.num_nodes):
            row = int(batch.row_starts[graph_index]) + node
            one, zero = probs.clone(), probs.clone()
            one[row], zero[row] = 1.0, 0.0
            expected = (problem.energy(batch, one) - problem.energy(batch, zero))[graph_index]
            unit = unit_of(problem, graph)
            assert_close(field[node] / unit, expected / unit, atol=1e-4, rtol=1e-5)
        assert field.shape == p.shape


@for_all_problems
@for_both_batches
def test_objective_and_violations_agree_with_the_independent_check(problem, batch_kind):
    graphs = oracle.small_graphs(problem)
    batch = batch_kind.from_graphs(graphs)
    x = states_of(batch, graphs)
    objectives, violations = problem.objective(batch, x), problem.violations(batch, x)
    for index, (graph, states) in enumerate(zip(graphs, batch.split(x), strict=True)):
        for column in range(2**graph.num_nodes):
            verdict = problem.check(graph, states[:, column].numpy().astype(bool))
            unit = unit_of(problem, graph)
            assert objectives[index, column].item() / unit == pytest.approx(verdict.objective / unit, abs=1e-5)
            assert violations[index, column].item() == verdict.violations


@for_all_problems
def test_minima_are_feasible_and_have_the_best_objective(problem):
    for graph in oracle.small_graphs(problem):
        states = oracle.all_states(graph.num_nodes).astype(bool)
        verdicts = [problem.check(graph, x) for x in states]
        feasible = [verdict.objective for verdict in verdicts if verdict.feasible]
        best = max(feasible) if problem.sense == "max" else min(feasible)
        minimum = verdicts[int(np.argmin(oracle.energies(problem, graph)))]
        assert minimum.feasible
        assert minimum.objective == pytest.approx(best, rel=1e-6)


@for_all_problems
@for_both_batches
def test_gradient_of_energy_is_the_local_field(problem, batch_kind):
    graphs = oracle.small_graphs(problem)
    batch = batch_kind.from_graphs(graphs)
    probs = torch.rand(batch.num_rows, 2, generator=oracle.seeded(2), dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(problem.energy(batch, probs).sum(), probs)
    fields = problem.local_field(batch, probs.detach())
    for graph, got, expected in zip(graphs, batch.split(gradient), batch.split(fields), strict=True):
        unit = unit_of(problem, graph)
        assert_close(got / unit, expected / unit, atol=1e-4, rtol=1e-4)


def test_energy_in_single_precision_stays_close_with_saturated_probabilities():
    problem = get_problem("mds")
    batch = SparseBatch.from_graphs(oracle.unweighted_graphs())
    logits = 60 * torch.randn(batch.num_rows, 4, generator=oracle.seeded(3))
    logits.requires_grad_()
    energy = problem.energy(batch, logits.sigmoid())
    energy.sum().backward()
    assert_close(energy.double(), problem.energy(batch, logits.double().sigmoid()), atol=1e-4, rtol=1e-5)
    assert logits.grad.isfinite().all()


@dataclass(frozen=True)
class TotalDomination(Problem):
    """Every node has a chosen neighbour; the gradient of this energy vanishes where a node is chosen."""

    name, adds_up = "clamped", True

    def energy(self, batch, x):
        return batch.graph_sum(x + 1.5 * batch.neighbor_sum((1 - x).clamp(min=1e-30).log()).exp())

    def objective(self, batch, x):
        return batch.graph_sum(x)

    def violations(self, batch, x):
        return batch.graph_sum((batch.neighbor_sum(x) < 0.5).to(x.dtype))


@dataclass(frozen=True)
class OneNode(Problem):
    """Choose the heaviest node, and no other."""

    name, sense, uses_node_weights = "one-node", "max", True

    def energy(self, batch, x):
        others = batch.spread(batch.graph_sum(x)) - x
        return batch.graph_sum(x * (20 * others - batch.node_weights_or(1.0)[:, None].to(x)))

    def objective(self, batch, x):
        return batch.graph_sum(x * batch.node_weights_or(1.0)[:, None].to(x))

    def violations(self, batch, x):
        return (batch.graph_sum(x) - 1).clamp(min=0)


class AddsUp(OneNode):
    adds_up = True


class AlikeSides(OneNode):
    sides_are_alike = True


class Scales(OneNode):
    scales_with_weights = True


class CheapModel(OneNode):
    def linear_model(self, graph):
        n = graph.num_nodes
        return LinearModel(-np.ones(n), scipy.sparse.csr_array(np.ones((1, n))), np.ones(1), n)


class LooseModel(OneNode):
    def linear_model(self, graph):
        n = graph.num_nodes
        return LinearModel(-graph.node_weights_or(1.0), scipy.sparse.csr_array((0, n)), np.ones(0), n)


class ClosedModel(OneNode):
    def linear_model(self, graph):
        n = graph.num_nodes
        return LinearModel(-np.ones(n), scipy.sparse.csr_array(np.ones((1, n))), -np.ones(1), n)


@pytest.mark.parametrize(
    ("problem", "complaint"),
    [
        (TotalDomination(), "'chord': the local field of states in float32 .*Batch.neighbor_product"),
        (AddsUp(), "'chord': `adds_up` is stated"),
        (AlikeSides(), "'chord': `sides_are_alike` is stated"),
        (Scales(), "'weights': `scales_with_weights` is stated"),
        (CheapModel(), "'weights': `linear_model` has the optimum -1, enumeration -3"),
        (LooseModel(), "'chord': `linear_model` allows an infeasible state"),
        (ClosedModel(), "'chord': `linear_model` and `check` disagree"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_check_of_a_problem_says_what_is_wrong(problem, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_problem(problem)


def test_the_check_passes_what_is_right():
    check_problem(OneNode())
    check_problem(get_problem("mis"), list(oracle.unweighted_graphs()[1:]))


def test_unknown_problem_names_the_closest():
    with pytest.raises(InputError, match="did you mean 'max-cut'"):
        get_problem("maxcut")


@pytest.mark.parametrize(("name", "penalty"), [("mis", 1.0), ("mis", float("nan")), ("max-cut", 2.0)])
def test_penalties_that_cannot_work_are_refused(name, penalty):
    with pytest.raises(InputError, match="penalty"):
        get_problem(name, penalty)


@pytest.mark.parametrize("name", ["mis", "mvc", "max-clique", "mds"])
@for_both_batches
def test_weights_of_one_change_no_bit(name, batch_kind):
    problem, graphs = get_problem(name), oracle.unweighted_graphs()
    plain = batch_kind.from_graphs(graphs)
    ones = [replace(graph, node_weights=np.ones(graph.num_nodes)) for graph in graphs]
    mixed = batch_kind.from_graphs([*ones[:2], *graphs[2:4], *ones[4:]])
    probs = torch.rand(plain.num_rows, 3, generator=oracle.seeded(4))
    for function in (problem.energy, problem.objective, problem.local_field):
        assert torch.equal(function(plain, probs), function(mixed, probs))


@pytest.mark.parametrize("name", ["mis", "mvc", "max-clique", "mds"])
@for_both_batches
def test_energies_grow_with_the_unit_of_weights(name, batch_kind):
    problem, graphs = get_problem(name), oracle.node_weighted_graphs()
    batch = batch_kind.from_graphs(graphs)
    doubled = batch_kind.from_graphs([replace(graph, node_weights=8 * graph.node_weights) for graph in graphs])
    x = torch.rand(batch.num_rows, 3, generator=oracle.seeded(5)).round()
    factors = torch.tensor([8.0, 1.0, 8.0, 8.0])  # nodes that all weigh nothing have no unit
    assert torch.equal(problem.energy(doubled, x), factors[:, None] * problem.energy(batch, x))


@pytest.mark.parametrize("name", ["mis", "mvc", "max-clique", "mds"])
def test_weights_that_cannot_work_are_refused(name):
    for weight in (-1.0, 1e31):
        graph = Graph.from_edges([(0, 1)], node_weights=[1, weight], labels=["a", "b"], name="my.graph")
        with pytest.raises(InputError, match=f"my.graph: node b weighs .* {name} takes node weights from 0 to 1e\\+30"):
            check_weights(get_problem(name), [Graph.from_edges([(0, 1)]), graph])
    negative = Graph.from_edges([(0, 1)], node_weights=[1, -1], edge_weights=[-3])
    check_weights(get_problem("qubo"), [negative])


@pytest.mark.parametrize(
    ("name", "ignored"), [("mis", "edge weights"), ("max-cut", "node weights"), ("mds", "edge weights"), ("qubo", "")]
)
def test_weights_that_a_problem_does_not_know_are_told(name, ignored):
    graph = Graph.from_edges([(0, 1)], node_weights=[1, 2], edge_weights=[3])
    problem = get_problem(name)
    assert ignored_weights(problem, graph) == ignored
    assert ignored_weights(problem, without_ignored_weights(problem, graph)) == ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_weights(problem, [graph])
    assert [str(warning.message) for warning in caught] == (
        [f"graph: {name} ignores the {ignored} in it"] if ignored else []
    )


@pytest.mark.parametrize("weights", [None, [0.0, 1.5, 2.0]], ids=["plain", "weighted"])
@pytest.mark.parametrize("rule", [greedy.independent_set, greedy.vertex_cover, greedy.dominating_set])
def test_greedy_chooses_the_same_compiled(monkeypatch, rule, weights):
    rng = np.random.default_rng(3)
    edges = rng.integers(0, 60, size=(150, 2))
    node_weights = None if weights is None else rng.choice(weights, 60)
    graph = Graph.from_edges(edges[edges[:, 0] != edges[:, 1]], 60, node_weights=node_weights)
    plain = rule(graph, np.random.default_rng(0))
    monkeypatch.setattr(greedy, "COMPILED_NODES", 0)
    compiled = rule(graph, np.random.default_rng(0))
    assert 0 < plain.sum() < 60
    assert (plain == compiled).all()
