"""The programs in examples/ run and say what they found."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from diffuco import methods, read_graph
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


def test_large_graph_is_cut_with_a_progress_bar(run_example):
    first, last = run_example("examples/large_graph.py", "--nodes", 2000, "--seconds", 0.5).splitlines()
    assert first == "Graph(num_nodes=2000, num_edges=7984)"
    assert 5900 < int(re.match(r"(\d+) edges cut, found by \w+", last)[1]) < 6100


def test_reverse_diffusion_is_streamed(run_example):
    *steps, last = run_example("examples/stream_reverse_diffusion.py").splitlines()
    energies = [float(re.search(r"mean energy +(-?[\d.]+)", line)[1]) for line in steps]
    assert len(steps) == int(re.search(r"of (\d+):", steps[0])[1]) + 1
    assert energies[-1] < 0 < energies[0]
    assert last == "decoded and refined: 20 nodes, 0 conflicts"


def test_numbers_are_split_by_a_sampler(run_example):
    pytest.importorskip("dimod")
    first, second, last = run_example("examples/sample_dimod.py").splitlines()
    sums = [int(line.rpartition("= ")[2]) for line in (first, second)]
    assert [sum(map(int, line.partition(" =")[0].split(" + "))) for line in (first, second)] == sums
    assert sum(sums) == 207
    assert last.startswith(f"difference {abs(sums[0] - sums[1])},")


def test_model_for_graphs_of_ones_own_is_trained_and_compared(run_example):
    first, *models = run_example("examples/train_on_own_graphs.py", "--epochs", 2).splitlines()
    assert first.startswith("learns from 80 graphs")
    assert [line.split()[0] for line in models] == ["shipped", "own"]
    assert all(5 < float(re.search(r"sets of ([\d.]+)", line)[1]) < 15 for line in models)


@pytest.fixture(scope="module")
def kernel():
    """A process for the cells of all notebooks, as each one would import torch again."""
    manager = pytest.importorskip("jupyter_client").KernelManager()
    manager.start_kernel(cwd=ROOT / "examples")
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.ipynb")))
def test_notebook_runs_and_is_kept_with_its_output(name, kernel):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    forget = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("%reset -f")])
    nbclient.NotebookClient(forget, km=kernel).execute()
    notebook = nbformat.read(ROOT / "examples" / name, as_version=4)
    kept = [len(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    nbclient.NotebookClient(notebook, km=kernel, timeout=120).execute()
    ran = [len(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    assert [bool(number) for number in kept] == [bool(number) for number in ran]
    assert str(ROOT) not in (ROOT / "examples" / name).read_text()


def test_problems_of_ones_own_are_trained_solved_and_compared(run_example, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    lines = run_example("examples/custom_problem.py", "--epochs", 1).splitlines()
    assert [line.partition(" of")[0] for line in lines[::4]] == ["Minimum Bisection", "Minimum Total Dominating Set"]
    for first in (1, 5):
        samples, greedy, annealed = (float(line.split()[-1]) for line in lines[first : first + 3])
        assert annealed <= samples
        assert annealed < greedy


@pytest.mark.parametrize("name", ["bisection", "total_domination"])
def test_a_problem_of_ones_own_takes_at_most_40_lines(name):
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) <= 40


def test_method_of_ones_own_is_as_good_as_greedy(run_example, monkeypatch):
    monkeypatch.setattr("diffuco.methods._methods", dict(methods._methods))
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
