import numpy as np
import pytest
import torch
from torch.testing import assert_close

import oracle
from diffuco.errors import InputError
from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.problems import all_problems, get_problem
from diffuco.verification import verify

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


@for_all_problems
@for_both_batches
def test_energy_of_states_is_the_tables(problem, batch_kind):
    graphs = oracle.small_graphs()
    batch = batch_kind.from_graphs(graphs)
    energies = problem.energy(batch, states_of(batch, graphs))
    for row, graph in zip(energies, graphs, strict=True):
        expected = oracle.energies(problem, graph)
        assert_close(row[: len(expected)], torch.from_numpy(expected.astype(np.float64)), atol=1e-5, rtol=1e-5)


@for_all_problems
@for_both_batches
def test_energy_of_probabilities_is_expected_energy(problem, batch_kind):
    graphs = oracle.small_graphs()
    batch = batch_kind.from_graphs(graphs)
    probs = torch.rand(batch.num_rows, 3, generator=oracle.seeded(0), dtype=torch.float64)
    energies = problem.energy(batch, probs)
    for row, graph, p in zip(energies, graphs, batch.split(probs), strict=True):
        expected = [oracle.expected_energy(problem, graph, column) for column in p.T.numpy()]
        assert_close(row, torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=1e-5)


@for_all_problems
@for_both_batches
def test_local_field_is_the_difference_of_two_energies(problem, batch_kind):
    graphs = oracle.small_graphs()
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
            assert_close(field[node], expected, atol=1e-4, rtol=1e-5)
        assert field.shape == p.shape


@for_all_problems
@for_both_batches
def test_objective_and_violations_agree_with_the_independent_check(problem, batch_kind):
    graphs = oracle.small_graphs()
    batch = batch_kind.from_graphs(graphs)
    x = states_of(batch, graphs)
    objectives, violations = problem.objective(batch, x), problem.violations(batch, x)
    for index, (graph, states) in enumerate(zip(graphs, batch.split(x), strict=True)):
        for column in range(2**graph.num_nodes):
            verdict = verify(problem.name, graph, states[:, column].numpy().astype(bool))
            assert objectives[index, column].item() == pytest.approx(verdict.objective, abs=1e-5)
            assert violations[index, column].item() == verdict.violations


@for_all_problems
def test_minima_are_feasible_and_have_the_best_objective(problem):
    for graph in oracle.small_graphs():
        states = oracle.all_states(graph.num_nodes).astype(bool)
        verdicts = [verify(problem.name, graph, x) for x in states]
        feasible = [verdict.objective for verdict in verdicts if verdict.feasible]
        best = max(feasible) if problem.sense == "max" else min(feasible)
        minimum = verdicts[int(np.argmin(oracle.energies(problem, graph)))]
        assert minimum.feasible
        assert minimum.objective == pytest.approx(best)


@for_all_problems
@for_both_batches
def test_gradient_of_energy_is_the_local_field(problem, batch_kind):
    batch = batch_kind.from_graphs(oracle.small_graphs())
    probs = torch.rand(batch.num_rows, 2, generator=oracle.seeded(2), dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(problem.energy(batch, probs).sum(), probs)
    for got, expected in zip(
        batch.split(gradient), batch.split(problem.local_field(batch, probs.detach())), strict=True
    ):
        assert_close(got, expected, atol=1e-4, rtol=1e-4)


def test_energy_in_single_precision_stays_close_with_saturated_probabilities():
    problem = get_problem("mds")
    batch = SparseBatch.from_graphs(oracle.small_graphs())
    logits = 60 * torch.randn(batch.num_rows, 4, generator=oracle.seeded(3))
    logits.requires_grad_()
    energy = problem.energy(batch, logits.sigmoid())
    energy.sum().backward()
    assert_close(energy.double(), problem.energy(batch, logits.double().sigmoid()), atol=1e-4, rtol=1e-5)
    assert logits.grad.isfinite().all()


def test_unknown_problem_names_the_closest():
    with pytest.raises(InputError, match="did you mean 'max-cut'"):
        get_problem("maxcut")


@pytest.mark.parametrize(("name", "penalty"), [("mis", 1.0), ("mis", float("nan")), ("max-cut", 2.0)])
def test_penalties_that_cannot_work_are_refused(name, penalty):
    with pytest.raises(InputError, match="penalty"):
        get_problem(name, penalty)
