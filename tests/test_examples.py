"""The programs in examples/ run and say what they found."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from diffuco import read_graph
from diffuco.baselines import methods
from diffuco.graphs.datasets import get_dataset

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run_example(monkeypatch, capsys):
    """Run a program as `python PROGRAM ARGUMENTS...` does, in this process; gives what it prints."""

    def run(program: str, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [program, *map(str, arguments)])
        runpy.run_path(str(ROOT / program), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_networkx_graph_is_solved_under_its_own_labels(run_example):
    assert re.fullmatch(r"[67] of 15 families: \w+(, \w+)*\n", run_example("examples/solve_networkx.py"))


def test_problem_of_ones_own_trains_and_is_solved(run_example):
    lines = run_example("examples/custom_problem.py", 30).splitlines()
    greedy, mean, best = (float(line.split()[-1]) for line in lines)
    assert best > mean > 0.7 * greedy


def test_method_of_ones_own_is_as_good_as_greedy(run_example, monkeypatch):
    monkeypatch.setattr("diffuco.baselines.methods._methods", dict(methods._methods))
    greedy, own = (float(line.split()[-1]) for line in run_example("examples/custom_method.py", 5).splitlines())
    assert own >= greedy


def test_reverse_process_is_drawn(run_example, tmp_path):
    path = tmp_path / "path.gif"
    options = ("--step-factor", 1, "--frames-per-state", 1, "--out", path)
    assert "Independent set of" in run_example("examples/draw_reverse_process.py", *options)
    assert path.read_bytes().startswith(b"GIF89a")


def test_bundled_graph_is_the_one_it_says():
    text = (ROOT / "examples/rb-small.clq").read_text()
    index = int(re.match(r"c graph (\d+) of the test split of the dataset rb-small\n", text)[1])
    assert read_graph(ROOT / "examples/rb-small.clq").digest == get_dataset("rb-small").graph("test", index).digest


def test_moving_picture_of_the_readme_is_small():
    assert (ROOT / "docs/reverse-diffusion.gif").stat().st_size < 1_500_000
