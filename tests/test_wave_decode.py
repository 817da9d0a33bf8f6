"""Decoding in waves gives what decoding node by node gives."""

import numpy as np
import pytest
import torch

from diffuco import ops
from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.families import grid_graph, power_law_graph
from diffuco.graphs.generate import ba_graph, er_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import adjacency_of, conditional_expectation, with_float64_degrees
from diffuco.ops import numba_decode, torch_wave_decode
from diffuco.problems import get_problem


def graphs(rng):
    return [
        er_graph(60, 0.1, rng),
        Graph.from_edges([], num_nodes=4),
        ba_graph(80, 4, rng),
        power_law_graph(120, 2.2, 1, rng),
        Graph.from_edges([], num_nodes=0),
    ]


def probabilities(num_rows, rng):
    """Ties, zeros and ones beside numbers in between."""
    probs = rng.random((num_rows, 3)) ** 3
    probs[::3], probs[1::5], probs[2::7] = 0.0, 1.0, 0.5
    return torch.from_numpy(probs).float()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["mis", "mvc", "max-cut", "qubo"])
def test_quadratic_energies_are_decoded_as_in_the_loop(name, weighted, seed):
    rng = np.random.default_rng(seed)
    chosen = [with_weights(graph, rng) if weighted else graph for graph in graphs(rng)]
    batch = SparseBatch.from_graphs(chosen)
    form = get_problem(name).form(with_float64_degrees(batch))
    adjacency = adjacency_of(form.edges or batch, weighted=form.edges is not None)
    probs = probabilities(batch.num_rows, rng)
    waves = torch_wave_decode.decode_quadratic(probs, adjacency, form.linear, form.edge)
    assert torch.equal(waves, numba_decode.decode_quadratic(probs, adjacency, form.linear, form.edge, 0.0, 1))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_cover_energies_are_decoded_as_in_the_loop(weighted, seed):
    rng = np.random.default_rng(seed)
    chosen = [with_weights(graph, rng) if weighted else graph for graph in graphs(rng)]
    batch = SparseBatch.from_graphs(chosen)
    form = get_problem("mds").form(with_float64_degrees(batch))
    adjacency = adjacency_of(batch, weighted=False)
    probs = probabilities(batch.num_rows, rng)
    waves = torch_wave_decode.decode_cover(probs, adjacency, form.penalty, form.costs)
    assert torch.equal(waves, numba_decode.decode_cover(probs, adjacency, form.penalty, 1, form.costs))
    assert 0 < waves.sum() < waves.numel()


def with_weights(graph, rng):
    edges, nodes = rng.integers(1, 9, graph.num_edges) / 4, rng.integers(1, 9, graph.num_nodes) / 4
    return Graph.from_edges(graph.edges, num_nodes=graph.num_nodes, edge_weights=edges, node_weights=nodes)


@pytest.mark.parametrize("name", ["mis", "max-cut", "mds"])
@pytest.mark.parametrize("at_once", [1, 2**24])
def test_samples_are_decoded_in_parts_that_fit_the_memory(monkeypatch, name, at_once):
    rng = np.random.default_rng(0)
    batch = SparseBatch.from_graphs([ba_graph(200, 4, rng)])
    probs = probabilities(batch.num_rows, rng)
    expected = conditional_expectation(get_problem(name), batch, probs)
    shapes = []
    for function in ("decode_quadratic", "decode_cover"):
        decode = getattr(torch_wave_decode, function)
        monkeypatch.setattr(
            torch_wave_decode, function, lambda p, *rest, decode=decode: shapes.append(p.shape[1]) or decode(p, *rest)
        )
    monkeypatch.setattr(torch_wave_decode, "ENTRIES_AT_ONCE", at_once)
    monkeypatch.setattr(ops, "_stays_on_gpu", lambda _: True)
    assert torch.equal(conditional_expectation(get_problem(name), batch, probs), expected)
    assert shapes == ([1, 1, 1] if at_once == 1 else [3])


@pytest.mark.parametrize("name", ["mis", "mds"])
@pytest.mark.parametrize("is_long", [True, False])
def test_states_that_take_too_many_waves_are_decoded_by_the_loop(monkeypatch, name, is_long):
    """A mesh of equal states is decided row by row, one of random numbers in a few waves."""
    rng = np.random.default_rng(0)
    batch = SparseBatch.from_graphs([grid_graph(900, 0.0, rng, triangles=True)])
    probs = torch.zeros(batch.num_rows, 2) if is_long else torch.from_numpy(rng.random((batch.num_rows, 2)))
    expected, loops = conditional_expectation(get_problem(name), batch, probs), []
    for function in ("decode_quadratic", "decode_cover"):
        decode = getattr(numba_decode, function)
        monkeypatch.setattr(
            numba_decode, function, lambda *given, decode=decode: loops.append(decode(*given)) or loops[-1]
        )
    monkeypatch.setattr(torch_wave_decode, "WAVES", 30)
    monkeypatch.setattr(ops, "_stays_on_gpu", lambda _: True)
    assert torch.equal(conditional_expectation(get_problem(name), batch, probs), expected)
    assert len(loops) == is_long


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["mis", "max-cut", "mds"])
def test_a_gpu_decodes_large_graphs_as_the_cpu_does(name):
    rng = np.random.default_rng(0)
    graph = ba_graph(20_000, 4, rng)
    probs = torch.from_numpy(rng.random((graph.num_nodes, 2)) ** 3).float()
    states = [
        conditional_expectation(get_problem(name), SparseBatch.from_graphs([graph], place), probs.to(place)).cpu()
        for place in ("cpu", "cuda")
    ]
    assert torch.equal(*states)
