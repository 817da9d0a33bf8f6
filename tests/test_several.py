"""Several answers to one graph: distinct, feasible, best first, through every door."""

import json
from dataclasses import replace

import numpy as np
import pytest

import diffuco
import oracle
from diffuco.foundation.errors import InputError
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.problems import all_problems

SQUARE = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)])


@pytest.mark.parametrize("problem", all_problems(), ids=str)
def test_answers_are_distinct_feasible_and_best_first(problem):
    graph = er_graph(14, 0.3, np.random.default_rng(0))
    if not problem.uses_node_weights or problem.name == "qubo":
        weighted = oracle.weighted_graph()
        graph = weighted if problem.uses_node_weights else replace(weighted, node_weights=None)
    answers = diffuco.solve(graph, problem.name, solutions=4, device="cpu")
    values = [problem.sign * answer.objective for answer in answers]
    assert 1 < len(answers) <= 4
    assert values == sorted(values)
    assert all(answer.feasible for answer in answers)
    assert [diffuco.check(graph, problem, answer).objective for answer in answers] == [a.objective for a in answers]
    assert len({answer.chosen.tobytes() for answer in answers}) == len(answers)
    assert answers[0].objective == pytest.approx(diffuco.solve(graph, problem.name, device="cpu").objective)


def test_all_optima_are_found_and_called_optimal():
    answers = diffuco.solve(SQUARE, "mvc", solutions=2, device="cpu")
    assert sorted(answer.nodes for answer in answers) == [[0, 2], [1, 3]]
    assert [answer.optimal for answer in answers] == [True, True]


def test_a_cut_with_its_sides_exchanged_is_the_same_cut():
    cuts = diffuco.solve(SQUARE, "max-cut", solutions=3, device="cpu")
    assert cuts[0].objective == 4
    assert len({tuple(cut.chosen ^ cut.chosen[0]) for cut in cuts}) == len(cuts)
    assert all(cut.objective < 4 for cut in cuts[1:])


def test_every_graph_gets_its_list_and_the_start_counts():
    lists = diffuco.solve([SQUARE, SQUARE], "mis", method="greedy", start=[[0], [1, 3]], solutions=2, device="cpu")
    assert [[answer.objective for answer in answers] for answers in lists] == [[2, 2], [2, 2]]
    empty = Graph.from_edges([], num_nodes=0)
    assert [answer.objective for answer in diffuco.solve(empty, "mis", solutions=3, device="cpu")] == [0]


def test_without_a_feasible_state_annealing_finds_some(models):
    answers = diffuco.solve(SQUARE, "mis", model=models["mis"], samples=2, decode="none", solutions=2, device="cpu")
    assert [answer.feasible for answer in answers] == [True, True]


@pytest.mark.parametrize(("problem", "method"), [("mis", "greedy"), ("max-cut", "anneal")])
def test_states_energies_and_objectives_belong_together(problem, method):
    graph = er_graph(30, 0.2, np.random.default_rng(0))
    for answer in diffuco.solve(graph, problem, method=method, solutions=8, device="cpu"):
        checked = [answer.problem.check(graph, state).objective for state in answer.states.T]
        assert answer.objectives == pytest.approx(checked)
        assert answer.energies == pytest.approx([answer.problem.sign * value for value in checked])


def test_command_shows_all_of_them(run, house, tmp_path):
    outcome = run("solve", "mis", house, "--solutions", 3)
    assert outcome.code == 0
    assert sum(line.startswith("2 nodes: ") for line in outcome.out.splitlines()) == 3
    record = json.loads(run("solve", "mis", house, "--solutions", 3, "--json").out)
    assert [one["objective"] for one in record["solutions"]] == [2, 2, 2]
    assert len({tuple(one["solution"]) for one in record["solutions"]}) == 3
    assert record["solution"] == record["solutions"][0]["solution"]
    assert run("solve", "mis", house, "--solutions", 3, "--output", tmp_path / "found.jsonl").code == 0
    (line,) = (tmp_path / "found.jsonl").read_text().splitlines()
    assert len(json.loads(line)["solutions"]) == 3
    both = json.loads(run("solve", "mis", house, house, "--solutions", 2, "--json").out)
    assert [len(record["solutions"]) for record in both] == [2, 2]
    assert "solutions" not in json.loads(run("solve", "mis", house, "--json").out)


def test_a_worse_solution_has_a_gap_of_its_own(run, tmp_path):
    (tmp_path / "square.edges").write_text("1 2\n2 3\n3 4\n4 1\n")
    command = ("solve", "mis", tmp_path / "square.edges", "--solutions", 3)
    record = json.loads(run(*command, "--json").out)
    assert [(one["objective"], one["gap"]) for one in record["solutions"]] == [(2, 0), (2, 0), (1, 1)]
    assert "2 (100.0 %)" in run(*command).out


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--solutions", "0"], "solutions is 0; give a whole number, 1 or more"),
        (["--solutions", "2", "--output", "found.parquet"], "found.parquet: Parquet files hold one solution per graph"),
    ],
)
def test_command_refuses_in_one_line(run, house, options, complaint):
    outcome = run("solve", "mis", house, *options)
    (line,) = outcome.err.splitlines()
    assert outcome.code == 2
    assert complaint in line


def test_fewer_than_one_is_refused():
    with pytest.raises(InputError, match="solutions is 0; give a whole number, 1 or more"):
        diffuco.solve(SQUARE, "mis", solutions=0)
