"""Training on a folder of graphs: what is read, what is picked, what is held back and how a run continues."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from diffuco.cli import main
from diffuco.foundation.errors import InputError
from diffuco.graphs.collection import Collection, split_of
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.model import read_card
from diffuco.training.fitting import CPU, GPU, fit_recipe
from diffuco.training.parts import choose_parts
from processes import start_group

CPU_DEVICE, GPU_DEVICE = torch.device("cpu"), torch.device("cuda")
SHORT = ("--set", "anneal_epochs=2", "--set", "num_layers=1", "--set", "num_hidden=8", "--set", "validate_every=5")


def collection(name: str = "ba-tiny", count: int = 100) -> Collection:
    return Collection.of(name, get_dataset(name).graphs("train", count))


def of_size(num_nodes: int, count: int = 60) -> Collection:
    rng = np.random.default_rng(0)
    return Collection.of("mine", [ba_graph(num_nodes, 4, rng) for _ in range(count)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty single graphs, compressed and not, and a TU collection with what comes along with it."""
    path = tmp_path_factory.mktemp("own") / "mine"
    path.mkdir()
    for number, graph in enumerate(get_dataset("ba-tiny").graphs("train", 40)):
        write_graph(graph, path / f"{number}.{('clq', 'graph.gz')[number % 2]}")
    many = get_dataset("rb-tiny").graphs("train", 20)
    firsts = np.cumsum([1, *(graph.num_nodes for graph in many)])
    edges = [f"{u + first}, {v + first}" for graph, first in zip(many, firsts, strict=False) for u, v in graph.edges]
    (path / "X_A.txt").write_text("\n".join(edges) + "\n")
    indicator = [str(number + 1) for number, graph in enumerate(many) for _ in range(graph.num_nodes)]
    (path / "X_graph_indicator.txt").write_text("\n".join(indicator) + "\n")
    (path / "X_graph_labels.txt").write_text("1\n" * 20)
    (path / "README.txt").write_text("not a graph\n")
    return path


@pytest.mark.parametrize("num_nodes", [30, 300, 3000])
@pytest.mark.parametrize(("device", "means"), [(CPU_DEVICE, CPU), (GPU_DEVICE, GPU)])
def test_batches_shrink_with_the_graphs_and_memory_suffices(num_nodes, device, means):
    fit = fit_recipe("mis", of_size(num_nodes, 40), device)
    assert fit.num_bytes <= means.num_bytes
    assert 1 <= fit.config.graphs_per_batch <= 32
    assert fit.config.total_steps >= 900
    assert fit == fit_recipe("mis", of_size(num_nodes, 40), device)
    if num_nodes == 30:
        assert fit.seconds <= 1.1 * means.seconds


def test_graphs_that_fill_the_memory_are_differentiated_step_by_step_or_refused():
    some = list(collection().members)

    def with_one_of(num_nodes: int) -> Collection:
        candidates = (Graph.from_edges([(0, other)], num_nodes) for other in range(1, 100))
        return Collection.of("mine", [*some, next(graph for graph in candidates if split_of(graph) == "train")])

    assert fit_recipe("mis", with_one_of(60_000), CPU_DEVICE).config.steps_per_chunk == 1
    with pytest.raises(InputError, match="mine: a graph of 3000000 nodes is too large"):
        fit_recipe("mis", with_one_of(3_000_000), CPU_DEVICE)


def test_weights_are_used_where_the_problem_knows_them():
    plain = collection("ba-tiny")
    doubled, heavy = (
        Collection.of("w", [replace(g, edge_weights=np.full(g.num_edges, weight)) for g in plain.members])
        for weight in (2.0, 200.0)
    )
    assert not fit_recipe("max-cut", plain, CPU_DEVICE).config.weighted
    cut = fit_recipe("max-cut", doubled, CPU_DEVICE).config
    assert cut.weighted
    assert fit_recipe("max-cut", heavy, CPU_DEVICE).config.start_temperature == pytest.approx(
        100 * cut.start_temperature, rel=0.1
    )
    ignored = fit_recipe("mis", doubled, CPU_DEVICE).config
    assert (ignored.weighted, ignored.start_temperature) == (False, 0.1)
    costly = Collection.of("w", [replace(g, node_weights=np.full(g.num_nodes, 30.0)) for g in plain.members])
    for problem in ("mis", "mvc", "max-clique", "mds"):
        config = fit_recipe(problem, costly, CPU_DEVICE).config
        assert (config.weighted, config.start_temperature) == (True, 3.0)
        seen = choose_parts(config).network.config
        assert (seen.weighted, seen.node_weighted) == (False, True)
    assert not fit_recipe("max-cut", costly, CPU_DEVICE).config.weighted
    seen = choose_parts(cut).network.config
    assert (seen.weighted, seen.node_weighted) == (True, False)
    assert fit_recipe("qubo", collection("qubo-tiny"), CPU_DEVICE).config.weighted


def test_too_few_graphs_are_refused_with_a_remedy():
    with pytest.raises(InputError, match=r"5 different graphs .* edges, too few to train on .*; add graphs"):
        fit_recipe("mis", collection(count=5), CPU_DEVICE)
    with pytest.raises(InputError, match="0 different graphs"):
        fit_recipe("mis", Collection.of("mine", [Graph.from_edges([], num_nodes=3)] * 50), CPU_DEVICE)


def test_train_resume_and_evaluate_on_the_graphs_held_back(run, folder, tmp_path):
    command = ("train", "--graphs", folder, "--problem", "mis", "--out", tmp_path / "run", *SHORT, "--device", "cpu")
    stopped = run(*command, "--stop-after", 0)
    assert "the model so far is " in stopped.out
    assert Path(re.search(r"the model so far is (\S+);", stopped.out)[1]).exists()
    assert stopped.code == 0, stopped.err
    assert "mine: learns from" in stopped.out
    assert "held back" in stopped.out
    assert "on this CPU" in stopped.out
    finished = run(*command, "--resume")
    assert finished.code == 0, finished.err
    assert "measure it: diffuco evaluate --model" in finished.out
    parts = json.loads((tmp_path / "run" / "graphs.json").read_text())["splits"]
    assert sum(map(len, parts.values())) == 60
    model = tmp_path / "run" / "best.safetensors"
    evaluated = run("evaluate", "--model", model, "--graphs", folder, "--reference", "best-known", "--json")
    record = json.loads(evaluated.out)
    assert (record["dataset"], record["split"]) == ("mine", "test")
    assert record["graphs"] == len(parts["test"]) == record["reference"]["proven"]
    everything = run(
        "evaluate", "--method", "greedy", "--problem", "mis", "--graphs", folder, "--split", "all", "--json"
    )
    assert json.loads(everything.out)["graphs"] == 60
    assert read_card(model)["graphs"]["count"] == len(parts["train"])


def test_a_run_that_cannot_be_is_refused_before_graphs_are_read(run, house, tmp_path, monkeypatch):
    def reading(_):
        raise AssertionError("graphs are read")

    assert run("train", "mis-tiny", "--out", tmp_path, "--device", "cpu", "--stop-after", 0).code == 0
    monkeypatch.setattr("diffuco.cli.inputs.load_collection", reading)
    command = ("train", "--graphs", house, "--out", tmp_path)
    for options, hint in (
        (("mis", "--set", "num_step=3"), "did you mean 'num_steps'?"),
        (("mis", "--seed", -1), "seed is -1; give a whole number"),
        (("mis",), f"{tmp_path} already holds a run; continue it with --resume"),
        (("max-cut", "--resume"), f"{tmp_path}: this run is for mis, not max-cut; give --problem mis or another --out"),
        (("misses",), "unknown problem 'misses'"),
    ):
        outcome = run(*command, "--problem", *options)
        assert (outcome.code, outcome.out, len(outcome.errors)) == (2, "", 1)
        assert hint in outcome.err


def test_a_run_is_not_continued_on_other_graphs(run, folder, tmp_path):
    copy = tmp_path / "mine"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    command = ("train", "--graphs", copy, "--problem", "mis", "--out", tmp_path / "run", *SHORT, "--stop-after", 0)
    assert run(*command).code == 0
    (copy / "0.clq").unlink()
    refused = run(*command, "--resume")
    assert (refused.code, len(refused.errors)) == (2, 1)
    assert "other graphs" in refused.err


def test_a_bad_file_is_one_line_and_nothing_is_trained(run, folder, tmp_path):
    copy = tmp_path / "mine"
    copy.mkdir()
    (copy / "bad.clq").write_text("p edge 2 1\ne 1 x\n")
    outcome = run("train", "--graphs", copy, "--problem", "mis", "--out", tmp_path / "run")
    assert (outcome.code, len(outcome.errors)) == (2, 1)
    assert "bad.clq:2" in outcome.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "name a recipe"),
        (("mis-tiny", "--problem", "mis"), "--problem is for --graphs"),
        (("mis-tiny", "--graphs", ".", "--problem", "mis"), "not both"),
        (("--graphs", "."), "--graphs needs --problem"),
        (("--graphs", "no-such-folder", "--problem", "mis"), "no such folder"),
    ],
)
def test_train_refuses_what_does_not_fit_together(run, arguments, complaint):
    outcome = run("train", *arguments)
    assert (outcome.code, len(outcome.errors)) == (2, 1)
    assert complaint in outcome.err


@pytest.mark.parametrize("arguments", [(), ("--dataset", "rb-tiny", "--graphs", ".")])
def test_evaluate_wants_one_kind_of_graphs(run, models, arguments):
    outcome = run("evaluate", "--model", models["mis"], *arguments)
    assert (outcome.code, len(outcome.errors)) == (2, 1)
    assert "either --dataset or --graphs" in outcome.err


def test_processes_share_a_run_on_own_graphs(folder, tmp_path):
    command = ["train", "--graphs", str(folder), "--problem", "mds", "--out", str(tmp_path / "run")]
    printed = start_group(2, main, [*command, *SHORT, "--device", "cpu"], folder=tmp_path)
    assert printed.count("learns from") == 1
    assert (tmp_path / "run" / "graphs.json").exists()
