"""Sets of the core of a graph extend to the largest sets of the graph, and `auto` searches the core alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import diffuco
import oracle
from diffuco.foundation.progress import following
from diffuco.graphs import set_core as module
from diffuco.graphs import shrinking
from diffuco.graphs.families import geometric_graph, grid_graph, power_law_graph, regular_graph, tree_graph
from diffuco.graphs.generate import ba_graph, er_graph, rb_graph
from diffuco.graphs.set_core import cover_core, set_core
from diffuco.methods import auto as automatic
from diffuco.methods import cores
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.base import Settings
from diffuco.methods.highs import Highs
from diffuco.ops import numba_set_core as loops
from diffuco.ops.numba_waiting import NUMBER
from diffuco.problems import get_problem

MIS, MVC = get_problem("mis"), get_problem("mvc")


def rng(seed=0):
    return np.random.default_rng(seed)


def of_all_sets(graph):
    """All independent sets of a graph and what they weigh. [N, sets], [sets]."""
    states = oracle.all_states(graph.num_nodes).T.astype(bool)
    u, v = graph.edges.T
    sets = states[:, ~(states[u] & states[v]).any(axis=0)]
    return sets, graph.node_weights_or(1.0) @ sets


WEIGHTS = {
    "none": lambda _: None,
    "whole": lambda size: rng(size).integers(1, 6, size).astype(float),
    "real": lambda size: rng(size).integers(1, 60, size) / 10 if size % 2 else rng(size).random(size),
}


def with_weights(graph, kind):
    return replace(graph, node_weights=WEIGHTS[kind](graph.num_nodes))


def largest(graph):
    return Highs().prove(MIS, graph, time_limit_s=60.0).objective


def some_graph(seed):
    """Graphs of which something is left, and others."""
    num_nodes, kind = int(rng(seed).integers(1, 14)), seed % 3
    if kind == 0:
        return er_graph(num_nodes, rng(seed).uniform(0.2, 0.8), rng(seed))
    return regular_graph(num_nodes + 8, 3, rng(seed)) if kind == 1 else ba_graph(num_nodes + 4, 3, rng(seed))


@pytest.fixture
def _always(monkeypatch):
    """Also cores that leave out next to nothing."""
    monkeypatch.setattr(module, "LEAST_YIELD", 0.0)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", WEIGHTS)
def test_sets_of_the_core_extend_to_sets_of_the_graph_and_the_largest_to_the_largest(seed, kind):
    graph = with_weights(some_graph(seed), kind)
    core = set_core(graph)
    if core is None:  # nothing can be taken out, as the degrees tell
        assert graph.degrees.min() >= 3 or kind != "none"
        return
    of_core, weights = of_all_sets(core.graph)
    extended = core.extend(of_core, graph.num_nodes)
    u, v = graph.edges.T
    assert not (extended[u] & extended[v]).any()
    own = graph.node_weights_or(1.0)
    np.testing.assert_allclose(own @ extended, weights + core.gain, rtol=1e-12)
    assert weights.max() + core.gain == pytest.approx(of_all_sets(graph)[1].max(), rel=1e-12)
    covers = cover_core(graph)
    np.testing.assert_array_equal(covers.extend(~of_core, graph.num_nodes), ~extended)
    of_left = core.graph.node_weights_or(1.0) @ ~of_core
    np.testing.assert_allclose(own @ ~extended, of_left + covers.gain, rtol=1e-12)


LARGER = {
    "uniform": er_graph(120, 4 / 120, rng(1)),
    "power law": power_law_graph(300, 2.2, 2, rng(2)),
    "geometric": geometric_graph(200, 9.0, rng(3)),
    "grid": grid_graph(225, 0.1, rng(4), triangles=True),
    "rb": rb_graph(12, 6, 0.3, rng(5)),
    "hub": ba_graph(400, 2, rng(6)),
}


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("family", LARGER)
def test_a_core_is_a_graph_from_which_nothing_can_be_taken_out_and_has_the_optimum(family, kind):
    graph = with_weights(LARGER[family], kind)
    core = set_core(graph)
    if core is None:
        assert family == "rb"
        return
    left = core.graph
    assert core.is_finished
    keys = left.edges @ [left.num_nodes, 1]
    assert (np.diff(keys) > 0).all()
    assert (left.edges[:, 0] < left.edges[:, 1]).all()
    assert left.num_nodes == 0 or left.degrees.min() >= (3 if kind == "none" else 2)
    assert (largest(left) if left.num_nodes else 0) + core.gain == pytest.approx(largest(graph), rel=1e-9)


def test_a_core_that_time_cut_short_is_a_core_too():
    graph = power_law_graph(2000, 2.5, 3, rng())
    rest = loops.make_rest(graph.csr.indptr, graph.csr.indices)
    loops.shrink(rest, 500)
    assert 0 < rest.counts[loops.NUM_LEFT] < 2000
    assert rest.counts[loops.NUM_LEFT] == (rest.nodes[:, loops.STANDS_FOR] == np.arange(2000)).sum()
    assert rest.waiting.counts[NUMBER] == rest.waiting.is_waiting.sum() > 0
    left = np.flatnonzero(rest.nodes[:, loops.STANDS_FOR] == np.arange(2000))
    degrees = [loops.gather(rest, int(node), rest.near) for node in left]
    np.testing.assert_array_equal(rest.nodes[left, loops.DEGREE], degrees)
    u, v = loops.edges_left(rest).T
    np.testing.assert_array_equal(rest.nodes[:, loops.DEGREE][u] > 0, True)
    np.testing.assert_array_equal(rest.nodes[:, loops.STANDS_FOR][v], v)
    assert not rest.nodes[:, loops.INSIDE].any()


def test_the_clock_ends_the_search_for_a_core(monkeypatch):
    monkeypatch.setattr(shrinking, "LOOKS_AT_ONCE", 100)
    graph = er_graph(2000, 3 / 2000, rng())
    times = iter([0.0] * 8 + [9.0] * 2)
    for some in (module, shrinking):
        monkeypatch.setattr(some, "perf_counter", lambda: next(times))
    cut_short = set_core(graph, limit_s=1.0)
    assert not cut_short.is_finished
    monkeypatch.undo()
    whole = set_core(graph)
    assert whole.graph.num_nodes < cut_short.graph.num_nodes < 2000
    assert largest(cut_short.graph) + cut_short.gain == largest(graph)


def test_the_search_for_a_core_ends_where_it_takes_out_little():
    random = er_graph(30_000, 8 / 30_000, rng())
    assert set_core(random) is None
    assert set_core(ba_graph(3000, 4, rng())) is None
    assert set_core(er_graph(3000, 8 / 3000, rng())).graph.num_nodes > 2900  # so few that all are looked at


def test_nodes_are_taken_out_where_that_pays():
    sparse = power_law_graph(600, 2.2, 1, rng())
    assert cores.core_of(MIS, sparse, 0.01) is None
    core = cores.core_of(MIS, sparse, None)
    assert core.graph.num_nodes == 0
    assert cores.core_of(MIS, sparse, 0.01) is core  # it is known now
    assert cores.core_of(MVC, sparse, None).gain == 600 - core.gain
    assert cores.core_of(MIS, with_weights(sparse, "real"), None).graph.num_nodes < 60
    assert cores.core_of(MIS, power_law_graph(60, 2.2, 1, rng()), None) is None  # exact solvers need no help
    left = cores.core_of(MIS, er_graph(1000, 5 / 1000, rng()), None)
    assert cores.core_of(MIS, left.graph, None) is None


@pytest.mark.parametrize("problem", ["mis", "mvc"])
def test_auto_searches_the_core_and_answers_for_the_graph(monkeypatch, searched, problem):
    graph, seen = er_graph(1500, 5 / 1500, rng()), []
    monkeypatch.setattr(automatic, "prove", lambda *_: iter(()))
    with following(seen.append):
        found = diffuco.solve(graph, problem, time_limit_s=0.3, device="cpu")
    assert [some.num_nodes for some in searched] == [set_core(graph).graph.num_nodes]
    assert searched[0].num_nodes < 1300
    assert found.feasible
    assert found.graph.num_nodes == len(found.chosen) == len(found.states) == 1500
    assert found.reason.endswith(cores.FOLLOWS)
    for state, energy, objective in zip(found.states.T, found.energies, found.objectives, strict=True):
        verdict = diffuco.check(graph, problem, state)
        assert verdict.feasible
        assert (verdict.objective, get_problem(problem).sign * verdict.objective) == (objective, pytest.approx(energy))
    assert "taking out nodes" in seen[0].doing
    told = [progress.best for progress in seen if progress.best is not None]
    assert (max if problem == "mis" else min)(told) == found.objective


@pytest.mark.parametrize("problem", ["mis", "mvc"])
@pytest.mark.parametrize("graph", [tree_graph(5000, 50, 0.2, rng()), power_law_graph(5000, 2.5, 3, rng())])
def test_auto_proves_sets_of_sparse_graphs_of_which_nothing_is_left(problem, graph):
    solution = diffuco.solve(graph, problem, device="cpu")
    expected = largest(graph) if problem == "mis" else 5000 - largest(graph)
    assert (solution.objective, solution.bound, solution.optimal) == (expected, expected, True)
    assert solution.feasible


def test_graphs_of_which_nothing_is_left_are_proven_after_others_that_are_not(monkeypatch):
    monkeypatch.setattr("diffuco.methods.highs.Highs.solve_one", lambda *_: None)
    hard, easy = [regular_graph(500, 3, rng(seed)) for seed in range(4)], tree_graph(500, 50, 0.1, rng())
    solutions = diffuco.solve([*hard, easy], "mis", device="cpu")
    assert [solution.optimal for solution in solutions] == [False] * 4 + [True]


def test_what_is_left_is_as_promising_as_the_graph(monkeypatch):
    """A mesh with loose ends may leave a core that looks as if exact solvers had no chance."""
    given = []

    def proof_limit(problem, graph, limit_s, whole):
        given.append((graph.num_nodes, whole.num_nodes))
        return 0.0

    monkeypatch.setattr("diffuco.methods.proofs.proof_limit", proof_limit)
    graph = er_graph(1000, 5 / 1000, rng())
    diffuco.solve(graph, "mis", time_limit_s=0.2, device="cpu")
    assert given == [(set_core(graph).graph.num_nodes, 1000)]


def test_models_sample_cores_without_weights(monkeypatch):
    graph = er_graph(automatic.LARGE_NODES + 5000, 4 / 15_000, rng())
    settings, contested = Settings(time_limit_s=1.0, place=torch.device("meta")), []

    def recording(problem, some, settings, whole):
        contested.append(some.num_nodes)
        return FlipAnnealing().solve(problem, [some], Settings(time_limit_s=0.1))[0]

    monkeypatch.setattr(automatic, "contested", recording)
    monkeypatch.setattr(automatic, "LARGE_NODES", 1000)
    (solution,) = automatic.Automatic().solve(MIS, [graph], settings)
    assert contested == [set_core(graph).graph.num_nodes]
    assert (solution.graph, solution.feasible) == (graph, True)
