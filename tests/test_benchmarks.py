"""The programs in benchmarks/ print a table, write what they measured, and do neither while a test fails."""

import importlib
import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import diffuco
from diffuco import ops
from diffuco.graphs.batch import DenseBatch
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import random_qubo
from diffuco.graphs.graph import Graph
from diffuco.model.gnn import Gnn, GnnConfig
from diffuco.training.parts import choose_parts
from diffuco.training.recipes import get_recipe

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SPEEDS = {"tflop_per_s", "gb_per_s", "share_of_tflop_per_s", "share_of_gb_per_s", "floor_s"}


@pytest.fixture
def load(monkeypatch):
    """Import a module that the programs share."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


@pytest.fixture(scope="module")
def limits():
    """What the programs measure on this CPU before anything else, once for all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module("evidence").measured_limits(torch.device("cpu"))


@pytest.fixture
def _plain_pytest(monkeypatch):
    """The programs run pytest without its plugins, which take longer to import than these tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def run_benchmark(load, limits, monkeypatch, capsys, tmp_path):
    """Run a program without its tests; gives the table and the record."""
    monkeypatch.setattr(load("evidence"), "measured_limits", lambda device: limits)

    def run(name, *arguments, skip_tests=True):
        path = tmp_path / "deep" / "record.json"
        options = ("--json", path, *(["--skip-tests"] if skip_tests else []))
        monkeypatch.setattr(ops, "decoder_override", ops.decoder_override)  # which decode.py sets
        monkeypatch.setattr(sys, "argv", [f"/somewhere/{name}", *map(str, (*arguments, *options))])
        runpy.run_path(str(BENCHMARKS / name), run_name="__main__")
        return capsys.readouterr().out, json.loads(path.read_text())

    return run


def test_record_says_what_ran_where(run_benchmark):
    table, record = run_benchmark("generate.py", "ba-tiny", "--count", 4, "--repeats", 1)
    assert (
        record["command"]
        == "python benchmarks/generate.py ba-tiny --count 4 --repeats 1 --json record.json --skip-tests"
    )
    assert record["tests"] == "skipped"
    assert record["settings"] == {"names": ["ba-tiny"], "count": 4, "repeats": 1}
    assert {"commit", "hardware", "torch", "date"} < record.keys()
    assert all(limit > 0 for limit in record["limits"].values())
    (measured,) = record["measurements"]
    assert measured["one_core"] > 0 < measured["share_of_gb_per_s"]
    assert "ba-tiny" in table
    assert "limits: copies" in table


def test_read(run_benchmark):
    table, record = run_benchmark("read.py", "--nodes", 50, "--edges", 200)
    reading, listing = record["measurements"]
    assert (reading["nodes"], reading["edges"]) <= (50, 200)
    assert reading["gb_per_s"] > 0 < listing["seconds"]
    assert "graph to neighbour lists" in table


def test_train_step(run_benchmark):
    table, record = run_benchmark("train_step.py", "mis-tiny", "--passes", 1, "--device", "cpu")
    (measured,) = record["measurements"]
    assert measured.keys() > SPEEDS | {"ms", "first_s", "peak_gib", "ms_by_padded_size"}
    assert (measured["engine"], measured["shape"]) == ("reference", "16 x 6 x 4 x 3")
    assert min(measured["ms_by_padded_size"].values()) <= measured["ms"] <= max(measured["ms_by_padded_size"].values())
    assert "16 x 6 x 4 x 3" in table


@pytest.mark.parametrize(
    "network",
    [
        ("--model", "mis-rb-small", "--dataset", "rb-tiny"),
        ("--recipe", "max-cut-tiny"),
        ("--recipe", "mis-tiny", "--large", 50),
    ],
)
def test_sample(run_benchmark, network):
    options = ("--graphs", 3, "--samples", 2, "--step-factor", 1, "--repeats", 1, "--device", "cpu")
    table, record = run_benchmark("sample.py", *network, *options)
    measured, _ = record["measurements"]
    assert [one["engine"] for one in record["measurements"]] == ["reference", "tiled"]
    assert measured.keys() > SPEEDS | {"sample_s", "collect_s", "first_s"}
    weights = "random" if "--recipe" in network else "trained"
    assert measured["weights"] == weights
    assert f"{weights} weights" in " ".join(table.split())


def test_decode(run_benchmark):
    options = ("--datasets", "rb-tiny", "--graphs", 3, "--samples", 2, "--problems", "mis", "--token-sizes", 1)
    decoders = ("numba-sparse", "torch-cpu")
    table, record = run_benchmark(
        "decode.py", *options, "--decoders", *decoders, "--repeats", 1, "--threads", torch.get_num_threads()
    )
    assert [measured["decoder"] for measured in record["measurements"]] == list(decoders)
    assert all(measured["directed_edges_per_s"] > 0 for measured in record["measurements"])
    assert "torch-cpu" in table


def test_import_of_networkx(run_benchmark):
    table, record = run_benchmark("import_networkx.py", "--repeats", 1)
    rows = {(measured["time"], measured["of"]): measured for measured in record["measurements"]}
    assert len(rows) == 6
    assert rows["clock_ms", "least"]["with"] > 0 < rows["processor_ms", "median"]["without"]
    assert rows["announcement_ms", "least"]["difference"] > 0
    assert "announcement" in table


def test_qubo(run_benchmark, tmp_path):
    rng = np.random.default_rng(0)
    for family in ("small", "smaller"):
        (tmp_path / family).mkdir()
        write_graph(random_qubo(12, 0.5, rng), tmp_path / family / f"{family}.sparse.gz")
    (tmp_path / "best_known.csv").write_text("instance,best_known\nsmall,-1e6\n")
    table, record = run_benchmark("qubo.py", tmp_path, "--budgets", 0.01, "--device", "cpu")
    rows = {(measured["family"], measured["method"]): measured for measured in record["measurements"]}
    assert len(rows) == 3 * 4
    assert rows["all", "diffuco"]["instances"] == 2
    assert rows["small", "sa"]["gap"] > 0.9
    assert rows["smaller", "tabu"]["solved_to_reference"] == 1
    assert "best known" in table


def test_refine(run_benchmark):
    options = ("--sets", "mis:rb-tiny", "mds:ba-tiny", "--graphs", 2, "--chains", 2, "--sweeps", 2)
    annealers = ("numba-sparse", "torch-cpu")
    table, record = run_benchmark(
        "refine.py", *options, "--annealers", *annealers, "--repeats", 1, "--threads", torch.get_num_threads()
    )
    started = [measured for measured in record["measurements"] if measured["sweeps"] == 0]
    assert [(m["set"], m["start"]) for m in started] == [
        (pair, start) for pair in ("mis:rb-tiny", "mds:ba-tiny") for start in ("random", "model")
    ]
    for measured in record["measurements"]:
        before = next(m for m in started if (m["set"], m["start"]) == (measured["set"], measured["start"]))
        assert measured["mean"] <= before["mean"]
        assert measured["sweeps"] == 0 or measured["ns_per_proposal"] > 0
    assert "torch-cpu" in table


def test_memory_of_solving(run_benchmark):
    table, record = run_benchmark("memory.py", "--nodes", 200, "--edges", 400, "--device", "cpu")
    (measured,) = record["measurements"]
    assert measured["feasible"]
    assert {"predicted_gib", "measured_gib"} < measured.keys()
    assert "predicted_gib" in table


def test_memory_of_training(run_benchmark):
    options = ("--steps", 2, 4, "--steps-per-chunk", 2, "--device", "cpu")
    table, record = run_benchmark("memory.py", "--recipe", "mis-tiny", *options)
    assert [measured["steps"] for measured in record["measurements"]] == [2, 4]
    assert [measured["steps_at_once"] for measured in record["measurements"]] == [2, 2]
    assert all(measured.keys() > SPEEDS | {"peak_gib"} for measured in record["measurements"])
    assert "16 x 6 x 4 x 3" in table


def test_serve(run_benchmark):
    phases = ("--clients", 4, "--seconds", 0.4, "--single-seconds", 0.2, "--warm-up-seconds", 0.1)
    table, record = run_benchmark("serve.py", *phases, "--step-factor", 1)
    one, many = record["measurements"]
    assert (one["clients"], many["clients"]) == (1, 4)
    for measured in (one, many):
        assert measured["answers"] > 0 == measured["wrong"] + measured["other_statuses"] + measured["refused_429"]
        assert measured["answers"] == pytest.approx(measured["answers_per_s"] * measured["seconds"])
    assert one["mean_batch"] == 1 <= many["mean_batch"] <= 4
    assert many["memory_mib_last"] > 50
    assert "times the throughput of one client" in table


@pytest.mark.usefixtures("_plain_pytest")
@pytest.mark.parametrize(
    "text", ["def test_one():\n    assert False, 'wrong'\n", "import nothing_of_this_name\n", "x = 1\n"]
)
def test_nothing_is_reported_while_a_test_does_not_pass(load, tmp_path, text):
    path = tmp_path / "test_red.py"
    path.write_text(text)
    with pytest.raises(SystemExit, match=r"no speed to report while .*test_red\.py do not pass: .+") as stopped:
        load("evidence").require_green([str(path)])
    assert "\n" not in str(stopped.value)


@pytest.mark.usefixtures("_plain_pytest")
def test_green_tests_are_named_and_run_once(load, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "test_green.py"
    path.write_text("def test_one():\n    pass\n")
    evidence = load("evidence")
    passed = evidence.require_green([str(path)])
    assert passed.startswith(f"{path}: 1 passed")
    monkeypatch.setattr("subprocess.run", None)
    assert evidence.require_green([str(path)]) == passed
    path.write_text("def test_one():\n    assert False\n")
    with pytest.raises(TypeError):  # it would run again
        evidence.require_green([str(path)])


def test_benchmark_stops_before_it_measures(load, run_benchmark, monkeypatch):
    def refuse(tests, *, skip):
        assert tests == ("tests/test_generate.py",)
        assert not skip
        raise SystemExit("red")

    monkeypatch.setattr(load("evidence"), "require_green", refuse)
    with pytest.raises(SystemExit, match="red"):
        run_benchmark("generate.py", "ba-tiny", skip_tests=False)


@pytest.mark.parametrize("weighted", [False, True])
def test_arithmetic_is_that_of_the_network(load, weighted):
    from torch.utils.flop_counter import FlopCounterMode  # imports triton, which other tests have to do first

    roofline = load("roofline")
    num_samples, config = 3, GnnConfig(num_steps=4, num_layers=2, num_hidden=16, weighted=weighted)
    graphs = [Graph.from_edges([(i, (i + 1) % 7) for i in range(7)]) for _ in range(2)]
    batch = DenseBatch.from_graphs(graphs)
    model = Gnn(config)
    inputs = (torch.rand(14, num_samples), torch.ones(num_samples, dtype=torch.long), torch.rand(14, num_samples, 5))
    step_encoding = 2 * num_samples * config.num_steps * config.num_hidden
    with FlopCounterMode(display=False) as counter:
        logits = model(batch, *inputs)
    options = {"over_lists": False, "float_bytes": 4}
    assert counter.get_total_flops() == step_encoding + roofline.forward_work(config, graphs, 3, **options).flop
    with FlopCounterMode(display=False) as counter:
        logits.sum().backward()
    assert counter.get_total_flops() == step_encoding + roofline.backward_work(config, graphs, 3, **options).flop


def test_chunks_cost_another_pass_forward(load):
    roofline = load("roofline")
    config = get_recipe("mis-tiny")
    graphs = [Graph.from_edges([(0, 1), (1, 2)])]
    options = {"over_lists": True, "float_bytes": 2}
    forward = roofline.forward_work(choose_parts(config).network.config, graphs, config.samples_per_graph, **options)
    whole = roofline.train_step_work(config, graphs, **options)
    chunks = roofline.train_step_work(replace(config, steps_per_chunk=2), graphs, **options)
    assert chunks == whole + forward * config.num_steps


def test_planted_graphs_hide_an_independent_set_of_one_node_per_clique(monkeypatch, tmp_path):
    arguments = ["planted.py", str(tmp_path / "planted"), "--cliques", "8", "--count", "2"]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(BENCHMARKS / "planted.py"), run_name="__main__")
    graphs = [diffuco.read_graph(path) for path in sorted((tmp_path / "planted").iterdir())]
    assert [graph.num_nodes for graph in graphs] == [8 * 5] * 2
    assert [solution.objective for solution in diffuco.solve(graphs, "mis", method="highs")] == [8, 8]


def test_own_graphs(run_benchmark, tmp_path):
    (tmp_path / "cycle.edges").write_text("a b\nb c\nc d\nd e\ne a\n")
    (tmp_path / "notes.md").write_text("no graph")
    files = (tmp_path / "cycle.edges", tmp_path / "notes.md")
    options = ("--problems", "mis", "max-cut", "--limit", 0.05, "--seeds", 2, "--device", "cpu")
    table, record = run_benchmark("own_graphs.py", *files, *options)
    independent, cut = record["measurements"]
    assert (independent["behind"], independent["only_others_prove"]) == (0, False)
    assert cut["answers"]["auto"]["objectives"] == [4, 4]
    assert set(independent["answers"]) == {"auto", "anneal", "bifurcation", "cp-sat", "highs", "numvc"}
    assert "cycle.edges" in table


def test_no_record_names_a_place_on_a_machine():
    records = sorted(BENCHMARKS.parent.glob("experiments/results/*.json"))
    assert records
    assert [path.name for path in records if '"/' in path.read_text()] == []
