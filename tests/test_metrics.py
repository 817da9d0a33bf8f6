import math

import numpy as np
import pytest

from diffuco.cli.evaluate import table
from diffuco.evaluation import metrics
from diffuco.evaluation.evaluate import evaluate
from diffuco.graphs.datasets import get_dataset
from diffuco.inference.solver import Solver
from test_solver import untrained


def test_relative_errors_of_mean_and_best():
    energies, optimum = [[-8.0, -10.0], [-4.0, -4.0]], [-10.0, -5.0]
    assert metrics.relative_error(energies, optimum) == pytest.approx([0.1, 0.2])
    assert metrics.best_relative_error(energies, optimum) == pytest.approx([0.0, 0.2])


def test_an_optimum_of_zero_is_met_or_missed():
    assert metrics.relative_error([[0.0], [1.0], [-1.0]], [0.0, 0.0, 0.0]).tolist() == [0.0, math.inf, -math.inf]


def test_energies_below_a_reference_are_ahead_of_it():
    for optimum, energies in ((-10.0, [-11.0, -12.0]), (10.0, [9.0, 8.0])):
        assert metrics.relative_error([energies], [optimum]) == pytest.approx([-0.15])
        assert metrics.best_relative_error([energies], [optimum]) == pytest.approx([-0.2])


def test_approximation_ratio_takes_the_best_sample():
    assert metrics.best_approximation_ratio([[12.0, 11.0]], [10.0]) == pytest.approx([1.1])


def test_best_of_the_first_k_samples():
    energies = [[3.0, 1.0, 2.0]]
    assert [metrics.best_of(energies, k).item() for k in (1, 2, 3)] == [3.0, 1.0, 1.0]


def test_mean_with_error():
    summary = metrics.mean_with_error([1.0, 2.0, 3.0])
    assert summary.mean == 2.0
    assert summary.standard_error == pytest.approx(1 / math.sqrt(3))
    assert math.isnan(metrics.mean_with_error([1.0]).standard_error)


def test_means_by_a_parameter_are_those_of_its_graphs_in_rising_order():
    means = metrics.mean_by([1.0, 5.0, 3.0], [0.5, 0.25, 0.5])
    assert list(means) == [0.25, 0.5]
    assert (means[0.5].mean, means[0.5].num_values) == (2.0, 2)
    assert math.isnan(means[0.25].standard_error)


def test_n_query_is_the_first_number_of_graphs_that_is_faster():
    for training_s, solving_s, other_s in [(10.0, 1.0, 3.0), (9.0, 1.0, 3.0), (0.0, 1.0, 2.0)]:
        count = metrics.n_query(training_s, solving_s, other_s)
        assert training_s + count * solving_s < count * other_s
        assert training_s + (count - 1) * solving_s >= (count - 1) * other_s
    assert metrics.n_query(1.0, 2.0, 2.0) == math.inf


@pytest.mark.parametrize(("problem", "dataset"), [("mis", "rb-tiny"), ("mds", "ba-tiny")])
def test_evaluation_agrees_with_the_solutions_it_summarises(problem, dataset):
    graphs = get_dataset(dataset).graphs("test", 6)
    solver = Solver(problem, untrained(problem), device="cpu")
    solutions = solver.solve(graphs, samples=3, seed=1, refine=0)
    best = [solution.objective for solution in solutions]
    record = evaluate(solver, graphs, samples=3, seed=1, references=best)
    assert record["best"] == pytest.approx(np.mean(best), abs=1e-4)
    assert record["mean"] == pytest.approx(np.mean([np.mean(s.objectives) for s in solutions]), abs=1e-4)
    assert record["feasible"] == 6
    assert record["reference"]["gap_of_best"] == pytest.approx(0, abs=1e-5)
    assert record["reference"]["gap"] > 0
    assert record["steps"] == 6


@pytest.mark.parametrize(("problem", "worse"), [("mis", -1), ("mds", 1)])
def test_a_solution_better_than_its_reference_is_a_negative_gap(problem, worse):
    graphs = get_dataset("ba-tiny").graphs("test", 3)
    solver = Solver(problem, untrained(problem), device="cpu")
    solutions = solver.solve(graphs, samples=1)
    energies = np.array([[worse * solution.objective] for solution in solutions])

    def gaps(shift: float) -> dict[str, float]:
        references = [solution.objective + shift for solution in solutions]
        return summarise(solver.problem, solutions, energies, solver.device, references)["reference"]

    beaten, missed = gaps(worse), gaps(-worse)
    for gap in ("gap", "gap_of_best", "gap_of_means"):
        assert beaten[gap] < 0 < missed[gap]


def test_infeasible_samples_lose():
    graphs = get_dataset("rb-tiny").graphs("test", 4)
    solver = Solver("mis", untrained("mis"), device="cpu")
    raw = evaluate(solver, graphs, samples=4, decode="none")
    decoded = evaluate(solver, graphs, samples=4)
    assert raw["mean"] < decoded["mean"]
    assert raw["feasible"] < 4


def test_table_shows_what_was_measured():
    graphs = get_dataset("rb-tiny").graphs("test", 2)
    record = evaluate(Solver("mis", untrained("mis"), device="cpu"), graphs, samples=2, references=[5.0, 5.0])
    shown = table(record)
    assert shown.row_count == 9
    assert "2 graphs" in str(shown.title)
    record["reference"]["proven"] = 1
    names, values = (list(column.cells) for column in table(record).columns)
    assert values[names.index("references proven optimal")] == "1 of 2"
