"""Sets of the core extend to the smallest dominating sets of the graph, and `auto` searches the core alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import diffuco
import oracle
from diffuco.graphs import dominating_core as module
from diffuco.graphs import shrinking
from diffuco.graphs.components import component_numbers
from diffuco.graphs.dominating_core import dominating_core, settled_core
from diffuco.graphs.families import geometric_graph, grid_graph, power_law_graph, regular_graph, tree_graph
from diffuco.graphs.generate import ba_graph, er_graph, rb_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import auto as automatic
from diffuco.methods import cores, proofs
from diffuco.methods.base import Deadline, Settings
from diffuco.methods.highs import Highs
from diffuco.ops import numba_dominating_core as loops
from diffuco.ops.numba_waiting import NUMBER
from diffuco.problems import MinimumDominatingSet, get_problem

MDS = get_problem("mds")


def rng(seed=0):
    return np.random.default_rng(seed)


def smallest(graph):
    return Highs().prove(MDS, graph, time_limit_s=60.0).objective


def some_graph(seed, weights):
    """Graphs of which something is left, and others."""
    num_nodes, kind = int(rng(seed).integers(1, 11)), seed % 3
    if kind == 0:
        graph = er_graph(num_nodes, rng(seed).uniform(0.1, 0.6), rng(seed))
    else:
        graph = regular_graph(8, 3, rng(seed)) if kind == 1 else tree_graph(num_nodes, 3, 0.4, rng(seed))
    given = {
        "none": None,
        "whole": rng(seed).integers(0, 3, graph.num_nodes),
        "real": rng(seed).random(graph.num_nodes),
    }
    return replace(graph, node_weights=None if weights == "none" else given[weights].astype(float))


@pytest.mark.parametrize("weights", ["none", "whole", "real"])
@pytest.mark.parametrize("seed", range(40))
def test_sets_of_the_core_extend_to_sets_of_the_graph_and_the_smallest_to_the_smallest(seed, weights):
    graph = some_graph(seed, weights)
    core = dominating_core(graph)
    if core is None:  # nothing is settled
        return
    of_core, worth = oracle.dominating_sets(core.graph)
    extended = core.extend(of_core, graph.num_nodes)
    assert all(diffuco.check(graph, MDS, state).feasible for state in extended.T)
    found = graph.node_weights_or(1.0) @ extended
    assert (found <= worth + core.gain + 1e-9).all()
    assert worth.min() + core.gain == pytest.approx(oracle.dominating_sets(graph)[1].min())
    assert found.min() == pytest.approx(worth.min() + core.gain)


def test_graphs_of_which_nothing_is_settled_have_no_core():
    for graph in (regular_graph(3000, 3, rng()), ba_graph(3000, 4, rng()), rb_graph(12, 6, 0.3, rng(5))):
        assert dominating_core(graph) is None


LARGER = {
    "uniform": er_graph(120, 3 / 120, rng(1)),
    "power law": power_law_graph(300, 2.2, 2, rng(2)),
    "geometric": geometric_graph(200, 9.0, rng(3)),
    "mesh": grid_graph(225, 0.1, rng(4), triangles=True),
    "hub": ba_graph(200, 2, rng(6)),
    "pieces": er_graph(400, 2 / 400, rng(7)),
}


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("graph", LARGER.values(), ids=LARGER)
def test_a_core_has_the_optimum_and_is_a_part_of_the_graph_with_leaves(graph, is_weighted):
    if is_weighted:
        graph = replace(graph, node_weights=rng().integers(1, 4, graph.num_nodes).astype(float))
    core = settled_core(graph)
    assert core.is_finished
    assert (smallest(core.graph) if core.graph.num_nodes else 0) + core.gain == smallest(graph)
    num_kept = len(core.nodes)
    is_leaf = np.arange(core.graph.num_nodes) >= num_kept
    of_graph = {tuple(edge) for edge in graph.edges.tolist()}
    for u, v in core.graph.edges.tolist():
        if is_leaf[v]:
            assert core.chosen[core.nodes[u]]
        else:
            assert tuple(sorted(core.nodes[[u, v]])) in of_graph
    assert (core.graph.degrees[is_leaf] == 1).all()
    weights, of_core = graph.node_weights_or(1.0), core.graph.node_weights_or(1.0)
    np.testing.assert_array_equal(of_core[:num_kept], weights[core.nodes])


def test_chosen_nodes_do_not_join_pieces_of_what_is_left():
    """A hub that is chosen has a candidate in each of two cycles, which are left."""
    cycles = [(5 * c + i, 5 * c + (i + 1) % 5) for c in range(2) for i in range(5)]
    graph = Graph.from_edges([*cycles, (0, 10), (5, 10), (10, 11), (10, 12)])
    core = settled_core(graph)
    assert component_numbers(core.graph.num_nodes, core.graph.edges).max() + 1 == 2
    assert (core.nodes == 10).sum() == 2
    assert core.gain == -1
    assert smallest(core.graph) + core.gain == smallest(graph) == 5


def test_what_time_cut_short_is_a_core_too(monkeypatch):
    graph = power_law_graph(2000, 2.5, 1, rng())
    rest = loops.make_rest(graph.csr.indptr, graph.csr.indices, graph.node_weights_or(1.0))
    loops.shrink(rest, 700)
    kinds = rest.nodes[:, : loops.AROUND]
    assert 0 < rest.counts[loops.NUM_LEFT] == kinds.sum() < 4000
    assert rest.waiting.counts[NUMBER] == rest.waiting.is_waiting.sum() > 0
    u, v = graph.edges.T
    around = kinds.copy()
    np.add.at(around, u, kinds[v])
    np.add.at(around, v, kinds[u])
    np.testing.assert_array_equal(rest.nodes[:, loops.AROUND :], around)
    monkeypatch.setattr(shrinking, "LOOKS_AT_ONCE", 100)
    times = iter([0.0] * 8 + [9.0] * 2)
    for some in (module, shrinking):
        monkeypatch.setattr(some, "perf_counter", lambda: next(times))
    cut_short = dominating_core(graph, limit_s=1.0)
    assert not cut_short.is_finished
    assert cut_short.graph.num_nodes > 0
    monkeypatch.undo()
    assert dominating_core(graph).graph.num_nodes == 0
    assert smallest(cut_short.graph) + cut_short.gain == dominating_core(graph).gain


def test_the_search_for_a_core_ends_where_it_settles_little():
    assert dominating_core(er_graph(30_000, 8 / 30_000, rng())) is None
    assert dominating_core(er_graph(3000, 8 / 3000, rng())).graph.num_nodes > 2900  # so few that all are looked at


def test_long_paths_are_taken_out_from_their_ends():
    path = Graph.from_edges([(i, i + 1) for i in range(49_999)])
    core = dominating_core(path)
    assert (core.graph.num_nodes, core.gain) == (0, 16_667)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_auto_searches_the_core_and_answers_for_the_graph(monkeypatch, searched, is_weighted):
    graph = geometric_graph(1500, 8.0, rng())
    if is_weighted:
        graph = replace(graph, node_weights=rng().random(1500))
    monkeypatch.setattr(automatic, "prove", lambda *_: iter(()))
    found = diffuco.solve(graph, "mds", time_limit_s=0.3, device="cpu")
    assert [some.num_nodes for some in searched] == [dominating_core(graph).graph.num_nodes]
    assert searched[0].num_edges < 0.7 * graph.num_edges
    assert found.feasible
    assert found.graph.num_nodes == len(found.chosen) == len(found.states) == 1500
    assert found.reason.endswith(cores.FOLLOWS)
    for state, energy, objective in zip(found.states.T, found.energies, found.objectives, strict=True):
        verdict = diffuco.check(graph, "mds", state)
        assert verdict.feasible
        assert verdict.objective == pytest.approx(objective) == pytest.approx(energy)


@pytest.mark.parametrize("graph", [tree_graph(5000, 50, 0.2, rng()), power_law_graph(5000, 2.5, 2, rng())])
def test_auto_proves_sets_of_sparse_graphs_of_which_nothing_is_left(graph):
    solution = diffuco.solve(graph, "mds", device="cpu")
    expected = smallest(graph)
    assert (solution.objective, solution.bound, solution.optimal) == (expected, expected, True)
    assert (solution.feasible, solution.found_by) == (True, "enumeration")


def test_a_gpu_needs_more_time_for_a_core():
    graph = geometric_graph(3000, 8.0, rng())
    assert cores.core_of(MDS, graph, 0.09, is_sampled=True) is None
    assert cores.core_of(MDS, graph, 0.09) is not None


def test_samples_are_of_the_whole_graph_and_chains_of_its_core(monkeypatch):
    monkeypatch.setattr(cores, "is_small", lambda *_: False)
    graph = geometric_graph(300, 8.0, rng())
    settings = Settings(place=torch.device("cpu"))
    annealed = []
    monkeypatch.setattr(
        "diffuco.methods.contest.AnnealedSamples.anneal_from",
        lambda self, problem, batch, states, generator, clock: annealed.append(batch.num_rows) or states,
    )
    solution = automatic.contested(MDS, graph, settings)
    assert solution.feasible
    assert solution.graph is graph
    assert annealed == [cores.core_of(MDS, graph, None).graph.num_nodes]


def test_the_proof_beside_the_contest_is_of_the_core(monkeypatch):
    monkeypatch.setattr(cores, "is_small", lambda *_: False)
    graph, sizes = geometric_graph(300, 8.0, rng()), []

    def proving(problem, some, seed, limit_s):
        sizes.append(some.num_nodes)
        return Highs().solve_one(problem, some, seed, Deadline.after(limit_s))

    monkeypatch.setattr(automatic, "try_proof", proving)
    solution = automatic.contested(MDS, graph, Settings(place=torch.device("cpu")))
    assert sizes == [cores.core_of(MDS, graph, None).graph.num_nodes]
    assert (solution.found_by, solution.optimal, solution.graph) == ("highs", True, graph)
    assert solution.objective == diffuco.solve(graph, "mds", method="highs").objective


def test_a_core_that_took_all_of_its_time_is_known_for_shorter_limits(monkeypatch):
    graph = geometric_graph(3000, 8.0, rng())
    unfinished = settled_core(graph)._replace(is_finished=False)
    monkeypatch.setitem(cores.SETS, MinimumDominatingSet, lambda *_: unfinished._replace())
    first = cores.core_of(MDS, graph, 2.0)
    assert cores.core_of(MDS, graph, 1.0) is first
    assert cores.core_of(MDS, graph, 3.0) is not first


@pytest.mark.parametrize("weighted", [False, True])
def test_a_set_says_about_the_core_what_the_core_makes_of_it(weighted):
    graph = geometric_graph(400, 8.0, rng())
    graph = replace(graph, node_weights=rng().integers(1, 4, 400).astype(float)) if weighted else graph
    core = dominating_core(graph)
    found = diffuco.solve(graph, "mds", method="greedy")
    told = core.restrict(found.chosen[:, None])[:, 0]
    in_core = diffuco.check(core.graph, MDS, told)
    back = diffuco.check(graph, MDS, core.extend(told[:, None], graph.num_nodes)[:, 0])
    assert in_core.feasible
    assert back.feasible
    assert in_core.objective + core.gain == back.objective <= found.objective


def test_large_pieces_of_roads_are_tried_if_there_is_time():
    whole, ring = Graph.from_edges([]), Graph.from_edges([(node, (node + 1) % 12_000) for node in range(12_000)])
    dense = regular_graph(12_000, 3, rng())
    given = [(ring, 5.0), (ring, 7.0), (dense, 7.0)]
    assert [proofs.is_worth_a_try(MDS, graph, whole, limit_s) for graph, limit_s in given] == [False, True, False]
