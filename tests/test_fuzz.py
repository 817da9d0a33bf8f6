"""A short run of the fuzzers; `make fuzz` is a long one."""

from dataclasses import replace

import pytest

import diffuco
import fuzz_answers
import fuzz_files
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem


def test_mutated_files_are_read_or_refused():
    outcomes, complaints = fuzz_files.run(seed=0, count=400)
    assert not complaints
    assert min(outcomes["read"], outcomes["refused"]) > 40  # mutations that mostly fail, or never, test little


def test_answers_are_what_they_claim():
    outcomes, complaints = fuzz_answers.run(seed=0, count=40)
    assert not complaints
    assert min(outcomes["proven"], outcomes["right"]) > 10


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("crash", "KeyError: 'x'"), ("change", "the file was changed"), ("twice", "AssertionError: an edge twice")],
)
def test_the_fuzzer_sees_what_is_wrong_with_a_file(tmp_path, monkeypatch, kind, wanted):
    path = tmp_path / "a.gr"
    path.write_text("p td 2 1\n1 2\n")

    def read(_):
        if kind == "crash":
            raise KeyError("x")
        if kind == "change":
            path.write_text("")
        edges = Graph.from_edges([(0, 1)]).edges
        return [Graph(2, edges.repeat(2, axis=0))] if kind == "twice" else []

    assert fuzz_files.complaint(path) == "read"
    monkeypatch.setattr(fuzz_files, "read_graphs", read)
    assert fuzz_files.complaint(path) == wanted


@pytest.mark.parametrize("bound", [True, False])
def test_the_fuzzer_sees_a_false_claim(monkeypatch, bound):
    path, problem = Graph.from_edges([(0, 1), (1, 2)]), get_problem("mis")
    worse = diffuco.solve(path, problem, start=[1], method="greedy")
    worse = replace(worse, chosen=~worse.chosen, optimal=not bound, bound=1.0 if bound else None)
    monkeypatch.setattr(diffuco, "solve", lambda *_, **__: worse)
    found = fuzz_answers.complaint(problem, path, "auto", 0)
    wanted = "claims the bound 1.0; the optimum is 2.0" if bound else "claims that 1.0 is optimal; 2.0 is"
    assert found == wanted
