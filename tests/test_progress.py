"""Progress: whoever waits for a search sees how far it is."""

import re

import numpy as np
import pytest

import diffuco
from diffuco.foundation.progress import following
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import er_graph


@pytest.mark.parametrize(
    ("problem", "options", "doing"),
    [
        ("mis", {"method": "anneal", "time_limit_s": 0.1}, "searching, steps"),
        ("mis", {"method": "anneal"}, "annealing 1,000 sweeps, chains 32 of 32"),
        ("mis", {"method": "rlsa", "time_limit_s": 0.1}, "annealing, steps"),
        ("mis", {"samples": 2}, "sampling, steps 1 of"),
        ("mis", {"method": "diffuco", "time_limit_s": 0.1}, "searching, steps"),
        ("mis", {"method": "cp-sat"}, "cp-sat, solutions"),
        ("max-clique", {"method": "clique-search"}, "clique search, rounds"),
        ("mds", {"method": "highs"}, "highs, at most 60 s"),
    ],
)
def test_a_search_reports_what_it_does_and_the_best_so_far(problem, options, doing):
    graph, seen = get_dataset("rb-tiny").graph("validation", 0), []
    with following(seen.append):
        solution = diffuco.solve(graph, problem, device="cpu", **options)
    assert any(str(report).startswith(doing) for report in seen)
    found = [report.best for report in seen if report.best is not None]
    assert all(best <= solution.objective if solution.problem.sense == "max" else True for best in found)
    if options.get("method") in ("cp-sat", "clique-search", "highs"):
        assert found[-1] == solution.objective
    num_reports = len(seen)
    diffuco.solve(graph, problem, device="cpu", **options)
    assert len(seen) == num_reports  # nobody follows any more


def test_the_best_so_far_is_in_the_units_of_the_weights():
    graph, seen = diffuco.Graph.from_edges([(0, 1), (1, 2)], edge_weights=[5e12, 3e12]), []
    with following(seen.append):
        solution = diffuco.solve(graph, "max-cut", method="anneal", time_limit_s=0.05)
    assert solution.objective == 8e12
    assert max(report.best for report in seen if report.best) == pytest.approx(8e12)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_command_shows_it_on_a_terminal_only(run, tmp_path, monkeypatch, is_terminal):
    write_graph(get_dataset("rb-tiny").graph("validation", 0), tmp_path / "graph.clq")
    monkeypatch.setattr("diffuco.cli.console.shows_progress", lambda: is_terminal)
    monkeypatch.setattr("diffuco.cli.console.SHOWN_AFTER_S", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the captured stream for a terminal
    monkeypatch.setenv("COLUMNS", "120")
    outcome = run("solve", "mis", tmp_path / "graph.clq", "--method", "anneal", "--time-limit", 0.5)
    assert outcome.code == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", outcome.err)
    assert (re.search(r"best so far \d+ 0:00:0", shown) is not None) == is_terminal


def test_local_search_reports_the_best_so_far():
    graph, seen = er_graph(80, 0.2, np.random.default_rng(0)), []
    diffuco.solve(graph, "mvc", method="numvc", time_limit_s=0.1)  # compiled loops
    with following(seen.append):
        solution = diffuco.solve(graph, "mvc", method="numvc", time_limit_s=0.5)
    assert not solution.optimal  # else it would stop before it reports
    assert str(seen[-1]).startswith("exchanging nodes, steps ")
    assert seen[-1].best >= solution.objective
