"""A graph in parts: several processes over gloo, each with a share of its nodes, against one process."""

import json
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
import torch

from diffuco.cli import main
from diffuco.foundation.distributed import Group, joined_group
from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.batch.part import PartBatch
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.solver import Solver
from diffuco.model.engine import rowwise
from diffuco.model.gnn import Gnn, GnnConfig
from diffuco.problems import get_problem
from processes import start_group

NAMES = ("plain", "weighted", "no edges", "one node", "many")


@cache
def graphs():
    return {
        "plain": ba_graph(101, 4, np.random.default_rng(0)),
        "weighted": Graph.from_edges(
            [(0, 1), (0, 6), (1, 4), (2, 6), (3, 4)],
            8,
            edge_weights=[1.0, -2.0, 3.0, 0.5, 4.0],
            node_weights=[3.0, 1.0, 2.0, 0.0, 5.0, 1.0, 2.0, 4.0],
        ),
        "no edges": Graph.from_edges(np.empty((0, 2), dtype=np.int64), 5),
        "one node": Graph.from_edges(np.empty((0, 2), dtype=np.int64), 1),
    }


def batches(name):
    """The whole batch; `many` has graphs that begin and end within a part."""
    return SparseBatch.from_graphs(list(graphs().values()) if name == "many" else [graphs()[name]])


def sums(batch, x):
    """All that problems and networks ask of a batch; rows and graphs apart."""
    nodes = [
        batch.degrees[:, None],
        batch.neighbor_sum(x),
        batch.neighbor_product(x),
        batch.neighbor_sum(x[..., None].expand(-1, -1, 3), weighted=True)[..., 1],
        batch.spread(batch.graph_sum(x)),
        batch.squared_weight_sum()[:, None],
    ]
    if batch.node_weights is not None:
        nodes += [batch.relative_weights[:, None], batch.heaviest_around[:, None]]
        nodes.append(batch.by_heavier_end.neighbor_sum(x, weighted=True))
    return torch.cat(nodes, dim=1), torch.cat([batch.graph_sum(x), batch.graph_mean(x)], dim=1)


def states(batch):
    return torch.rand(batch.num_rows, 2, generator=torch.Generator().manual_seed(1))


def check_parts(folder):
    """Run by every process: the rows of its part against those of the whole batch, saved for the test to see."""
    with joined_group("cpu") as group:
        for name in NAMES:
            whole = batches(name)
            part, x = PartBatch(whole, group), states(whole)
            own, graphs = sums(part, x[part.rows])
            assert torch.equal(part.from_padded(x[None]), x[part.rows])
            problem = get_problem("max-cut")
            energy = problem.energy(part, x[part.rows])
            torch.save((group.join(own, whole.num_rows), graphs, energy), folder / f"{name}-{group.rank}.pt")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    start_group(3, check_parts, folder, folder=folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_parts_have_the_sums_of_the_whole(parts, name):
    whole = batches(name)
    x = states(whole)
    for rank in range(3):
        nodes, graphs, energy = torch.load(parts / f"{name}-{rank}.pt")
        expected = sums(whole, x)
        torch.testing.assert_close(nodes, expected[0])
        torch.testing.assert_close(graphs, expected[1])
        torch.testing.assert_close(energy, get_problem("max-cut").energy(whole, x))


@pytest.mark.parametrize("name", NAMES)
def test_one_part_is_the_whole(name):
    whole = batches(name)
    part, x = PartBatch(whole, Group(torch.device("cpu"))), states(whole)
    for found, expected in zip(sums(part, x), sums(whole, x), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", [{}, {"weighted": True}, {"node_weighted": True}], ids=str)
@pytest.mark.parametrize("rows_at_once", [3, 2**16])
def test_rows_at_a_time_give_the_logits_of_the_network(kind, rows_at_once, monkeypatch):
    monkeypatch.setattr(rowwise, "ROWS_AT_ONCE", rows_at_once)
    torch.manual_seed(0)
    network, batch = Gnn(GnnConfig(4, num_layers=2, num_hidden=8, **kind)), batches("many")
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, 0.5, 0.5)
    x, step = states(batch).round(), torch.tensor([1, 4])
    features = torch.randn(*x.shape, network.num_random_features)
    with torch.inference_mode():
        expected = network(batch, x, step, features)
    found = rowwise.RowwiseGnn(network)(batch, x, step, features)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def draw_in_parts(folder):
    """Run by every process: samples and a round of them."""
    with joined_group("cpu") as group:
        samples, again = draw(Solver("mis", "mis-sparse", group=group))
        torch.save((*samples, *again), folder / f"samples-{group.rank}.pt")


def draw(solver):
    batch = SparseBatch.from_graphs([graphs()["plain"]])
    samples = solver.sampler.draw(batch, 3, 1, seed=5)
    return samples, solver.sampler.draw_again(batch, samples.states, seed=6)


def test_two_processes_draw_the_samples_of_one(tmp_path):
    start_group(2, draw_in_parts, tmp_path, folder=tmp_path)
    samples, again = draw(Solver("mis", "mis-sparse", device="cpu"))
    first, second = (torch.load(tmp_path / f"samples-{rank}.pt") for rank in range(2))
    for one, other, expected in zip(first, second, (*samples, *again), strict=True):
        assert torch.equal(one, other)
        torch.testing.assert_close(one, expected, rtol=1e-3, atol=1e-4)


def test_a_command_in_two_processes_answers_as_in_one(tmp_path, capsys):
    write_graph(graphs()["plain"], tmp_path / "graph.txt")
    command = ["solve", "max-cut", str(tmp_path / "graph.txt"), "--model", "max-cut-sparse", "--samples", "2"]
    command += ["--refine", "none", "--device", "cpu", "--json", "--output", str(tmp_path / "solution.json")]
    printed = start_group(2, main, command, folder=tmp_path)
    assert main(command) == 0
    one = json.loads(capsys.readouterr().out)
    (line,) = [line for line in printed.splitlines() if line.startswith("{")]  # one process speaks for all
    assert [json.loads(line)[name] for name in ("solution", "energies")] == [
        one[name] for name in ("solution", "energies")
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "anneal"], "anneal runs in one process"),
        (["--time-limit", "1"], "several processes sample without a time limit"),
        (["--output", "all.jsonl"], "torchrun samples graphs in parts"),
    ],
)
def test_what_does_not_go_in_parts_is_refused(options, message, tmp_path, monkeypatch, capsys):
    write_graph(graphs()["plain"], tmp_path / "graph.txt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("diffuco.foundation.distributed.joined_group", pair)
    assert main(["solve", "mis", "graph.txt", *options]) == 2
    assert message in capsys.readouterr().err


@contextmanager
def pair(device):
    """A group of two of which this process is the first; nothing is sent."""
    yield Group(torch.device("cpu"), rank=0, size=2)
