"""Cuts of the core of a graph extend to the best cuts of the graph, and `auto` searches the core alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import diffuco
import oracle
from diffuco.foundation.progress import following
from diffuco.graphs.cut_core import MOST, cut_core
from diffuco.graphs.families import power_law_graph, tree_graph
from diffuco.graphs.generate import ba_graph, er_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import auto as automatic
from diffuco.methods import cores
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.base import Settings
from diffuco.methods.linear import integers
from diffuco.problems import get_problem

CUT = get_problem("max-cut")
NARROW = "max-cut-hubs-24"


def rng(seed=0):
    return np.random.default_rng(seed)


def of_all_cuts(graph):
    """All cuts of a graph and what each is worth. [N, 2^N], [2^N]."""
    states = oracle.all_states(graph.num_nodes).T.astype(bool)
    u, v = graph.edges.T
    return states, graph.edge_weights_or(1.0) @ (states[u] != states[v])


def triangles(count):
    """A chain of triangles, each with a corner in common with the next: not bipartite."""
    first = 2 * np.arange(count)
    return Graph.from_edges(np.concatenate([np.stack([first + a, first + b], 1) for a, b in ((0, 1), (0, 2), (1, 2))]))


@pytest.mark.parametrize("weights", ["none", "signs", "real"])
@pytest.mark.parametrize("seed", range(25))
def test_a_cut_of_the_core_extends_to_the_best_cut_of_the_graph_with_these_sides(seed, weights):
    graph = er_graph(rng(seed).integers(1, 11), rng(seed).uniform(0.2, 0.9), rng(seed))
    if weights != "none":
        given = {
            "signs": rng(seed).choice([-1.0, 0.0, 1.0], graph.num_edges),
            "real": rng(seed).normal(size=len(graph.edges)),
        }
        graph = replace(graph, edge_weights=given[weights])
    core = cut_core(graph)
    of_core, worth = of_all_cuts(core.graph)
    states, whole = of_all_cuts(graph)
    u, v = graph.edges.T
    extended = core.extend(of_core, graph.num_nodes)
    found = graph.edge_weights_or(1.0) @ (extended[u] != extended[v])
    best = [whole[(states[core.nodes] == some[:, None]).all(0)].max() for some in of_core.T]
    np.testing.assert_allclose(found, best)
    np.testing.assert_allclose(worth + core.gain, best)
    assert (extended[core.nodes] == of_core).all()


@pytest.mark.parametrize("graph", [power_law_graph(300, 2.2, 1, rng()), er_graph(300, 0.01, rng())])
def test_all_nodes_of_a_small_core_have_many_neighbors_and_none_is_taken_out_with_a_neighbor(graph):
    core = cut_core(graph)
    assert 0 < core.graph.num_nodes < graph.num_nodes / 2
    assert core.graph.degrees.min() > MOST
    assert (core.graph.edge_weights != 0).all()
    taken = np.concatenate([layer.nodes for layer in core.layers] + [core.nodes])
    assert sorted(taken) == list(range(graph.num_nodes))
    for layer in core.layers:
        assert not np.isin(layer.neighbors[layer.weights != 0], layer.nodes).any()


@pytest.mark.parametrize("graph", [triangles(200), tree_graph(300, 300, 0.01, rng()), Graph.from_edges([], 3)])
def test_nothing_is_left_of_some_graphs_and_auto_proves_their_cuts(graph):
    core = cut_core(graph)
    assert core.graph.num_nodes == 0
    solution = diffuco.solve(graph, "max-cut")
    assert (solution.objective, solution.bound, solution.optimal) == (core.gain, core.gain, True)
    assert solution.energies == [-core.gain]


def test_auto_searches_the_core_and_answers_for_the_graph(monkeypatch, searched):
    monkeypatch.setattr(type(CUT), "proof_nodes", -1)
    monkeypatch.setattr(type(CUT), "proof_edges", -1)
    graphs = [power_law_graph(200, 2.2, 1, rng(1)), ba_graph(50, 4, rng())]
    seen = []
    with following(seen.append):
        found = diffuco.solve(graphs[0], "max-cut", time_limit_s=0.3)
    assert searched[0].num_nodes < 100
    assert found.feasible
    assert found.graph.num_nodes == len(found.chosen) == len(found.states) == 200
    assert max(progress.best for progress in seen if progress.best is not None) == found.objective
    assert found.reason.endswith(cores.FOLLOWS)
    assert found.energies == [-objective for objective in found.objectives]
    assert max(found.objectives) == found.objective
    searched.clear()
    together = diffuco.solve(graphs, "max-cut")
    assert sorted(graph.num_nodes for graph in searched) == sorted([cut_core(graphs[0]).graph.num_nodes, 50])
    assert together[0].objective == found.objective
    assert [solution.graph.num_nodes for solution in together] == [200, 50]


def test_bounds_are_those_of_the_whole_graph(monkeypatch):
    graph = power_law_graph(200, 2.2, 1, rng(1))
    exact = diffuco.solve(graph, "max-cut", method="highs")
    core = cut_core(graph)
    (found,) = FlipAnnealing().solve(CUT, [core.graph], Settings())
    lifted = cores.lifted(core, graph, replace(found, bound=found.objective + 1))
    assert lifted.bound == lifted.objective + 1
    assert cores.lifted(core, graph, replace(found, optimal=True)).bound == lifted.objective
    assert lifted.objective == found.objective + core.gain == exact.objective


@pytest.mark.parametrize("size", [1.0, 1e90, 1e-90, 1e-250])
def test_decimals_stay_decimals_at_any_size(size):
    plain = power_law_graph(90, 2.2, 1, rng(90))
    decimals = np.round(rng().uniform(-1, 1, plain.num_edges), 2)
    graph = replace(plain, edge_weights=decimals * size)
    core = cut_core(graph)
    assert core.graph.num_nodes == 8
    if size == 1.0:
        integers(core.graph.edge_weights)  # otherwise an InputError
    solution = diffuco.solve(graph, "max-cut")
    assert solution.optimal
    assert solution.objective == pytest.approx(
        size * diffuco.solve(replace(plain, edge_weights=decimals), "max-cut", method="cp-sat").objective
    )


def test_nodes_are_taken_out_where_that_pays():
    sparse = power_law_graph(300, 2.2, 1, rng())
    assert cores.core_of(CUT, sparse, 0.01) is None
    core = cores.core_of(CUT, sparse, 1.0)
    assert core is not None
    assert cores.core_of(CUT, sparse, None) is cores.core_of(CUT, sparse, 0.01) is core  # it is known now
    assert cores.core_of(CUT, ba_graph(300, 4, rng()), None) is None
    assert cores.core_of(CUT, Graph.from_edges([], 0), None) is None
    assert cores.core_of(get_problem("max-clique"), sparse, None) is None


def test_a_sample_of_a_model_is_of_the_whole_graph_and_the_core_is_annealed_from_it(monkeypatch):
    graph = ba_graph(300, 3, rng())
    calls = []

    def anneal(problem, batch, states, schedule, **_):
        calls.append(states)
        return states

    monkeypatch.setattr("diffuco.methods.anneal.anneal", anneal)
    monkeypatch.setattr("diffuco.methods.contest.timed_step", lambda model, batch, clock: (clock, 1e-3))
    solution = automatic.sampled_on_cpu(CUT, graph, NARROW, Settings(time_limit_s=1.0))
    assert solution.found_by == NARROW  # coin flips are not annealed here
    assert calls[0].shape[0] == cut_core(graph).graph.num_nodes < 300
    assert (solution.graph, len(solution.chosen)) == (graph, 300)
    assert solution.objective > 0.9 * diffuco.solve(graph, "max-cut", method="anneal").objective


def test_without_memory_for_samples_the_core_is_annealed_and_told_as_the_graph(monkeypatch):
    graph, told = ba_graph(300, 3, rng()), []
    graph = replace(graph, edge_weights=np.full(graph.num_edges, 100.0))
    monkeypatch.setattr("diffuco.methods.contest.fits", lambda *_: False)
    with following(lambda seen: told.append(seen.best)):
        solution = automatic.sampled_on_cpu(CUT, graph, NARROW, Settings(time_limit_s=0.5))
    assert (solution.graph, solution.found_by) == (graph, "anneal")
    assert max(filter(None, told)) == solution.objective


@pytest.mark.parametrize("limit_s", [None, 2.0])
def test_the_contest_samples_the_whole_graph_and_anneals_the_core(monkeypatch, limit_s):
    graph, sizes, told = ba_graph(300, 3, rng()), [], []

    def anneal(problem, batch, states, schedule, **_):
        sizes.append(states.shape[0])
        return states

    monkeypatch.setattr("diffuco.methods.anneal.anneal", anneal)
    monkeypatch.setattr("diffuco.methods.contest.annealed_on", lambda problem, batch: "cuda")  # both kinds of chains
    with following(lambda seen: told.append(seen.best)):
        solution = automatic.contested(CUT, graph, Settings(time_limit_s=limit_s))
    assert set(sizes) == {cut_core(graph).graph.num_nodes}
    assert solution.found_by != "anneal"
    assert (solution.graph, len(solution.chosen)) == (graph, 300)
    assert solution.objective > diffuco.solve(graph, "max-cut", method="greedy").objective
    assert solution.objective == diffuco.check(graph, CUT, solution.chosen).objective
    assert limit_s is None or max(filter(None, told)) <= solution.objective


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_large_cores_leave_the_search_to_samples(monkeypatch, device):
    graph = ba_graph(automatic.LARGE_NODES, 3, rng())
    settings = Settings(time_limit_s=10.0, place=torch.device(device))
    is_contested = automatic.is_contested(CUT, graph, settings)
    assert is_contested == (device == "meta")
    core = cut_core(graph)
    assert automatic.is_searched(core, CUT, graph, settings, is_sampled=is_contested)
    monkeypatch.setattr(automatic, "SAMPLED_CORE", {"cpu": 1000, "cuda": 1000})
    assert not automatic.is_searched(core, CUT, graph, settings, is_sampled=is_contested)
    if device == "cpu":  # without a limit nothing is sampled there
        assert automatic.is_searched(core, CUT, graph, Settings(), is_sampled=False)


@pytest.mark.parametrize("is_searched", [True, False])
def test_looking_for_a_core_counts_as_time(monkeypatch, is_searched):
    limits = []

    def solve_left(self, problem, graphs, settings, wholes):
        limits.append(settings.time_limit_s)
        return FlipAnnealing().solve(problem, graphs, Settings())

    monkeypatch.setattr(automatic, "is_searched", lambda *_, **__: is_searched)
    monkeypatch.setattr(automatic.Automatic, "solve_left", solve_left)
    (solution,) = automatic.Automatic().solve(CUT, [power_law_graph(300, 2.2, 1, rng())], Settings(time_limit_s=5.0))
    automatic.Automatic().solve(CUT, [ba_graph(300, 4, rng())], Settings(time_limit_s=5.0))
    assert solution.graph.num_nodes == 300
    assert 4.5 < limits[0] < limits[1] == 5.0
