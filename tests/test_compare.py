"""Methods at equal time: what a run records, and the command."""

import json
from functools import cache

import numpy as np
import pytest
import torch

import diffuco
from diffuco.cli import main
from diffuco.evaluation.compare import Run, best_known, summary
from diffuco.evaluation.references import stored_references
from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.inference.solver import Solver
from diffuco.methods import GraphByGraph, Settings, get_method
from diffuco.methods.model import AnnealedSamples, ModelMethod, PlainModelMethod
from diffuco.pretrained import load_model
from diffuco.problems import get_problem


@cache  # not while tests are collected, which every process does
def tiny():
    return get_dataset("rb-tiny").graphs("test", 4)


@pytest.mark.parametrize(("limit_s", "drawn"), [(1e-6, [1]), (4, [1, 2, 4, 8]), (None, [8])])
def test_model_draws_more_while_there_is_time(monkeypatch, limit_s, drawn):
    method, clock, asked, done = PlainModelMethod("mis-rb-small"), [0], [], []
    solve = Solver.solve_graphs

    def solve_in_a_second_a_sample(self, graphs, options, **others):
        asked.append(options.samples)
        clock[0] += options.samples
        return solve(self, graphs, options, **others)

    monkeypatch.setattr("diffuco.methods.base.time.perf_counter", lambda: clock[0])
    monkeypatch.setattr(Solver, "solve_graphs", solve_in_a_second_a_sample)
    solutions = method.solve(get_problem("mis"), tiny(), Settings(time_limit_s=limit_s, on_solved=done.append))
    assert asked == drawn
    assert done == [len(tiny())]
    assert {len(solution.energies) for solution in solutions} <= set(drawn)
    assert any(len(solution.energies) > 1 for solution in solutions) == (drawn != [1])
    if limit_s is not None:
        first = Solver("mis", "mis-rb-small", device="cpu").solve(tiny(), samples=1, refine=0, seed=0)
        assert all(kept.objective >= one.objective for kept, one in zip(solutions, first, strict=True))


def test_the_model_is_refined_unless_it_is_the_plain_one():
    kinds = (ModelMethod, PlainModelMethod)
    assert [kind("mis-rb-small").solve(get_problem("mis"), tiny(), Settings())[0].sweeps for kind in kinds] == [1000, 0]


@pytest.mark.parametrize(("limit_s", "drawn"), [(1e-6, [1]), (100.0, [1, 32, 32, 32, 32])])
def test_chains_start_from_as_many_samples_as_there_is_time_for(monkeypatch, limit_s, drawn):
    method, counts, starts = ModelMethod("mis-rb-small"), [], []

    def draw(self, problem, batch, count, step_factor, seeds):
        counts.append(count)
        states = torch.rand(batch.num_rows, count, generator=torch.Generator().manual_seed(len(counts))).round()
        return states, {"sample": 0.0, "decode": 0.0}

    def keep_the_start(chains, deadline, samples):
        starts.append(chains.start())
        return chains.start()

    monkeypatch.setattr(AnnealedSamples, "_draw", draw)
    monkeypatch.setattr("diffuco.methods.model.anneal_parts", keep_the_start)
    method.solve(get_problem("mis"), tiny(), Settings(time_limit_s=limit_s))
    assert counts == drawn
    assert starts[0].shape[1] == 32
    assert len(torch.unique(starts[0], dim=1).T) == min(32, sum(drawn))


def test_a_model_with_a_time_limit_solves_small_graphs_and_is_named():
    method, problem, done = ModelMethod("mis-rb-small"), get_problem("mis"), []
    graphs = [*tiny(), Graph.from_edges([], num_nodes=0)]
    found = method.solve(problem, graphs, Settings(seed=3, time_limit_s=0.2, on_solved=done.append))
    assert sum(done) == len(graphs)
    assert all(solution.feasible and solution.found_by == "mis-rb-small" for solution in found)
    assert {solution.reason for solution in found} == {""}  # it was asked for
    chosen = ModelMethod().solve(problem, tiny(), Settings(time_limit_s=0.05))
    assert all(solution.reason.startswith("the closest of the") for solution in chosen)
    optima = [reference.objective for reference in stored_references("mis", tiny())]
    assert [solution.objective for solution in found] == [*optima, 0]


def test_methods_that_ignore_time_run_once_and_others_once_per_budget():
    methods = ["greedy", get_method("cp-sat")]
    runs = list(diffuco.compare(tiny(), "mis", methods, [0.5, 1.0], device="cpu"))
    assert [(run.method, run.budget_s) for run in runs] == [("greedy", None), ("cp-sat", 0.5), ("cp-sat", 1.0)]
    assert (runs[1].energies <= runs[0].energies).all()
    assert all(run.seconds > 0 and (run.objectives == -run.energies).all() for run in runs)


@pytest.mark.parametrize(
    ("device", "before"), [("cpu", [(1, 0.001)]), ("cuda", [(4, 0.001), (4, 0.001), (4, 0.003), (4, 0.01)])]
)
def test_what_is_compiled_at_first_is_compiled_before_the_clock_runs(monkeypatch, device, before):
    method, calls = get_method("cp-sat"), []
    solutions = method.solve(get_problem("mis"), tiny(), Settings(time_limit_s=1.0))

    def solve(problem, graphs, settings):
        calls.append((len(graphs), settings.time_limit_s))
        return solutions[: len(graphs)]

    monkeypatch.setattr(method, "solve", solve)
    monkeypatch.setattr("diffuco.evaluation.compare.pick_device", torch.device)
    runs = list(diffuco.compare(tiny(), get_problem("mis"), [method], [0.01, 0.001, 0.003], device=device))
    assert [run.budget_s for run in runs] == [0.001, 0.003, 0.01]
    assert calls == [*before, (4, 0.001), (4, 0.003), (4, 0.01)]


def test_method_for_another_problem_is_refused():
    with pytest.raises(InputError, match="does not solve mis"):
        list(diffuco.compare(tiny(), "mis", ["greedy", "sdp"], [1.0]))


class Everything(GraphByGraph):
    name, summary = "everything", "all nodes"

    def search(self, problem, graph, seed, deadline):
        return np.ones(graph.num_nodes, dtype=np.bool_)


def test_infeasible_answers_are_counted_and_told():
    graphs = [Graph.from_edges([(0, 1)]), Graph.from_edges([], num_nodes=2)]
    with pytest.warns(GraphWarning, match="everything: 1 of 2 answers infeasible, and still in the means") as told:
        everything, greedy = diffuco.compare(graphs, "mis", [Everything(), "greedy"], [1.0], device="cpu")
    assert len(told) == 1
    assert (everything.num_infeasible, greedy.num_infeasible) == (1, 0)
    assert summary(everything, best_known([everything, greedy]))["infeasible"] == 1


def test_a_model_of_ones_own_is_compared_under_a_name_of_its_own(models):
    class Mine(ModelMethod):
        name = "mine"

    methods = [ModelMethod(models["mis"]), Mine(models["mis"])]
    runs = diffuco.compare(tiny(), "mis", methods, [0.05], device="cpu")
    assert [run.method for run in runs] == ["diffuco", "mine"]


def test_weights_that_cannot_work_are_refused_and_others_told():
    with pytest.raises(InputError, match="node 1 weighs -2"):
        list(diffuco.compare([Graph.from_edges([(0, 1)], node_weights=[1, -2])], "mis", ["greedy"], [1.0]))
    with pytest.warns(GraphWarning, match="mis ignores the edge weights") as told:
        list(diffuco.compare([Graph.from_edges([(0, 1)], edge_weights=[2])], "mis", ["diffuco-ce"], [0.1]))
    assert len(told) == 1


def test_gap_is_relative_to_the_best_known():
    runs = [
        Run("a", 1.0, 0.5, np.array([-9.0, -10.0]), np.array([9.0, 10.0])),
        Run("b", None, 0.1, np.array([-10.0, -8.0]), np.array([10.0, 8.0])),
    ]
    optima = best_known(runs)
    assert optima.tolist() == [-10.0, -10.0]
    line = summary(runs[0], optima)
    assert line["gap"] == pytest.approx(0.05)
    assert line["gap_standard_error"] == pytest.approx(0.05)
    assert line["solved_to_reference"] == 0.5
    assert line["mean"] == 9.5


def test_command_prints_writes_and_draws(tmp_path, capsys):
    options = [
        "--dataset",
        "rb-tiny",
        "--problem",
        "mis",
        "--count",
        "3",
        "--methods",
        "diffuco,diffuco-ce,greedy,cp-sat",
    ]
    paths = ["--plot", str(tmp_path / "gap.png"), "--output", str(tmp_path / "gap.json")]
    assert main(["compare", *options, "--budget", "0.2,0.05", "--device", "cpu", *paths, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "gap.json").read_text())
    assert (tmp_path / "gap.png").stat().st_size > 10_000
    assert record["reference"] == "3 of 3 proven"
    assert record["weights"] == load_model(record["model"]).digest
    names = [(run["method"], run["budget_s"]) for run in record["runs"]]
    assert names[:3] == [("diffuco", 0.05), ("diffuco", 0.2), ("diffuco-ce", 0.05)]
    assert names[4:] == [("greedy", None), ("cp-sat", 0.05), ("cp-sat", 0.2)]
    assert all(run["gap"] >= 0 for run in record["runs"])


def test_own_graphs_are_compared_on(tmp_path, capsys):
    (tmp_path / "a.edges").write_text("a b\nb c\nc a\n")
    assert (
        main(["compare", "--graphs", str(tmp_path), "--problem", "mis", "--methods", "greedy", "--device", "cpu"]) == 0
    )
    out = capsys.readouterr().out
    assert f"mis on 1 graph of {tmp_path.name}" in out
    assert "nan" not in out
    for wrong in ([], ["--dataset", "rb-tiny", "--graphs", str(tmp_path)]):
        assert main(["compare", *wrong, "--problem", "mis"]) == 2
        assert "give either --dataset or --graphs" in capsys.readouterr().err


def test_command_without_references_takes_the_best_of_all(capsys, monkeypatch):
    def not_installed(*_: object, **__: object) -> None:
        raise InputError("a solver is not installed")

    monkeypatch.setattr("diffuco.evaluation.references.find_references", not_installed)
    options = ["--dataset", "ba-tiny", "--problem", "max-cut", "--count", "2", "--methods", "greedy,sdp"]
    assert main(["compare", *options, "--budget", "0.01", "--device", "cpu"]) == 0
    assert "best of all methods" in capsys.readouterr().out


def test_a_reference_that_is_beaten_counts_as_reached_and_as_a_negative_gap():
    ahead = Run("a", 1.0, 0.5, np.array([-11.0, -10.0]), np.array([11.0, 10.0]))
    line = summary(ahead, np.array([-10.0, -10.0]))
    assert line["gap"] == pytest.approx(-0.05)
    assert line["solved_to_reference"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "fast"], "give comma-separated seconds"),
        (["--budget", "0"], "seconds above 0"),
        (["--methods", "gredy"], "greedy"),
        (["--methods", "sdp"], "does not solve mis"),
        (["--count", "0"], "--count 1 or more"),
        (["--plot", "gap.xyz"], "picture format"),
    ],
)
def test_bad_input_is_one_line(options, message, capsys):
    assert main(["compare", "--dataset", "rb-tiny", "--problem", "mis", "--device", "cpu", *options]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert message in error[0]
