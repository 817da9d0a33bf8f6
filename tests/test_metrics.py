import math

import numpy as np
import pytest

import diffuco
from diffuco.cli.evaluate import table
from diffuco.evaluation import metrics
from diffuco.evaluation.evaluate import Gap, Measurement, measure
from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
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


def test_mean_with_error():
    summary = metrics.mean_with_error([1.0, 2.0, 3.0])
    assert summary.mean == 2.0
    assert summary.standard_error == pytest.approx(1 / math.sqrt(3))
    assert math.isnan(metrics.mean_with_error([1.0]).standard_error)


def test_means_by_a_parameter_are_those_of_its_graphs():
    means = metrics.mean_by([1.0, 5.0, 3.0], [0.5, 0.25, 0.5])
    assert list(means) == [0.5, 0.25]
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
    record = diffuco.evaluate(
        graphs, problem, model=solver.checkpoint, samples=3, seed=1, device="cpu", references=best
    ).to_dict()
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

    def gaps(shift: float) -> Gap:
        references = [solution.objective + shift for solution in solutions]
        return measure(solutions, energies, {}, device=solver.device, references=references).reference

    beaten, missed = gaps(worse), gaps(-worse)
    for gap in ("gap", "gap_of_best", "gap_of_means"):
        assert getattr(beaten, gap) < 0 < getattr(missed, gap)


def test_infeasible_samples_lose():
    graphs = get_dataset("rb-tiny").graphs("test", 4)
    model = untrained("mis")
    raw = diffuco.evaluate(graphs, model=model, samples=4, decode="none", device="cpu")
    decoded = diffuco.evaluate(graphs, model=model, samples=4, device="cpu")
    assert raw.mean < decoded.mean
    assert raw.feasible < 4


def test_table_shows_what_was_measured():
    graphs = get_dataset("rb-tiny").graphs("test", 2)
    record = diffuco.evaluate(
        graphs, "mis", model=untrained("mis"), samples=2, device="cpu", references=[5.0, 5.0]
    ).to_dict()
    shown = table(record)
    assert shown.row_count == 9
    assert "2 graphs" in str(shown.title)
    record["reference"]["proven"] = 1
    names, values = (list(column.cells) for column in table(record).columns)
    assert values[names.index("references proven optimal")] == "1 of 2"


def test_a_measurement_of_a_model_states_the_model_and_its_settings():
    graphs = get_dataset("rb-tiny").graphs("test", 3)
    model, done = untrained("mis"), []
    settings = {"samples": 2, "step_factor": 2, "decode": "ce-st", "token_size": 3, "refine": 5, "seed": 7}
    measured = diffuco.evaluate(graphs, model=model, device="cpu", on_solved=done.append, **settings)
    assert isinstance(measured, Measurement)
    assert measured.solver == {
        "model": "untrained",
        "weights": model.digest,
        "samples": 2,
        "steps": 4,
        "step_factor": 2,
        "rounds": 0,
        "evaluations": 4,
        "decode": "ce-st3",
        "seed": 7,
        "sweeps": 5,
    }
    assert (measured.problem, measured.graphs, measured.feasible, sum(done)) == ("mis", 3, 3, 3)
    assert measured.mean_edges == np.mean([graph.num_edges for graph in graphs])
    solutions = diffuco.solve(graphs, "mis", model=model, device="cpu", **settings)
    assert measured.mean == pytest.approx(np.mean([solution.objectives for solution in solutions]), abs=1e-4)
    assert measured.best == pytest.approx(np.mean([solution.objective for solution in solutions]), abs=1e-4)
    assert set(measured.seconds) == {"load", "sample", "decode", "refine"}
    assert measured.reference is None
    record = measured.to_dict()
    assert "solver" not in record
    assert "reference" not in record
    assert record["model"] == "untrained"
    assert {"torch", "commit", "hardware"} <= set(record)


def test_a_measurement_of_a_method_states_the_method_and_its_time():
    graphs = get_dataset("rb-tiny").graphs("test", 3)
    measured = diffuco.evaluate(graphs, "mds", method="highs", time_limit_s=30.0, seed=2, references=[1.0, 1.0, 1.0])
    assert measured.solver == {"method": "highs", "time_limit_s": 30.0, "seed": 2}
    assert measured.mean == measured.best
    assert measured.reference.gap == measured.reference.gap_of_best == pytest.approx(measured.mean - 1)
    assert (measured.reference.mean, measured.reference.parts) == (1.0, None)
    assert "parts" not in measured.to_dict()["reference"]


def test_gaps_are_told_by_part():
    graphs = get_dataset("rb-tiny").graphs("test", 3)
    optima = [solution.objective for solution in diffuco.solve(graphs, "mvc", method="highs")]
    optima[1] /= 2
    measured = diffuco.evaluate(graphs, "mvc", method="highs", references=optima, parts=["b", "a", "b"])
    told = measured.to_dict()["reference"]["parts"]
    assert [(part["part"], part["graphs"]) for part in told] == [("b", 2), ("a", 1)]
    assert [(part["gap"], part["gap_of_best"], part["best_ratio"]) for part in told] == [(0, 0, 1), (1, 1, 2)]


def test_what_cannot_be_evaluated_is_refused():
    graphs, model = get_dataset("rb-tiny").graphs("test", 2), untrained("mis")
    for options, complaint in (
        ({}, "give either a model or a method"),
        ({"model": model, "method": "greedy"}, "give either a model or a method"),
        ({"method": "greedy"}, "name the one to evaluate it on"),
        ({"method": "sdp", "problem": "mis"}, "'sdp' does not solve mis"),
        ({"model": model, "problem": "mds"}, "trained for mis, not mds"),
        ({"model": model, "samples": 0}, "samples is 0"),
        ({"model": model, "time_limit_s": 1.0}, "use the method diffuco"),
        ({"model": model, "references": [5.0]}, "1 references for 2 graphs; give one for each"),
    ):
        with pytest.raises(InputError, match=complaint):
            diffuco.evaluate(graphs, device="cpu", **options)
    with pytest.raises(InputError, match="no graphs to evaluate on"):
        diffuco.evaluate([], "mis", method="greedy")


def test_weights_are_checked_before_anything_is_measured():
    negative = Graph.from_edges([(0, 1)], node_weights=[1, -2])
    with pytest.raises(InputError, match="node 1 weighs -2"):
        diffuco.evaluate([negative], "mis", method="greedy")
    ignored = Graph.from_edges([(0, 1)], edge_weights=[2])
    with pytest.warns(GraphWarning, match="mis ignores the edge weights") as told:
        diffuco.evaluate([ignored], "mis", model=untrained("mis"), device="cpu")
    assert len(told) == 1
