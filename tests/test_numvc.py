"""NuMVC: its state is consistent after every step, it finds small covers, and `auto` keeps what it finds."""

import numpy as np
import pytest
import torch

import diffuco
from diffuco.graphs.generate import er_graph, rb_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import auto as automatic
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.highs import Highs
from diffuco.methods.numvc import NuMvc
from diffuco.ops import numba_cover_walk as loops
from diffuco.problems import get_problem

MIS = get_problem("mis")


def assert_consistent(graph: Graph, walk: loops.Walk) -> None:
    """What the walk keeps up to date is what its cover and weights say."""
    covered = walk.nodes[:, loops.IN_COVER].astype(bool)
    size, num_uncovered = walk.counts[loops.COVER_SIZE], walk.counts[loops.NUM_UNCOVERED]
    assert sorted(walk.cover[:size]) == np.flatnonzero(covered).tolist()
    ends, weights = walk.edges[:, :2], walk.edges[:, loops.WEIGHT]
    assert {tuple(pair) for pair in ends.tolist()} == {tuple(sorted(pair)) for pair in graph.edges.tolist()}
    waiting = ~covered[ends].any(1)
    assert sorted(walk.uncovered[:num_uncovered]) == np.flatnonzero(waiting).tolist()
    assert walk.counts[loops.TOTAL_WEIGHT] == weights.sum()
    scores = np.zeros(graph.num_nodes, dtype=np.int64)
    for (first, second), weight in zip(ends.tolist(), weights.tolist(), strict=True):
        if not covered[first] and not covered[second]:
            scores[[first, second]] += weight
        elif covered[first] != covered[second]:
            scores[first if covered[first] else second] -= weight
    assert np.array_equal(walk.nodes[:, loops.SCORE], scores)


@pytest.mark.parametrize(
    ("graph", "num_rounds"),
    [(er_graph(30, 0.2, np.random.default_rng(0)), 40), (er_graph(5000, 0.001, np.random.default_rng(1)), 3)],
    ids=["scanned", "drawn from"],
)
def test_the_state_stays_consistent(graph, num_rounds):
    walk = loops.make_walk(graph.csr.indptr, graph.csr.indices, 0)
    assert (walk.counts[loops.COVER_SIZE] > loops.SCANNED) == (graph.num_nodes == 5000)
    assert_consistent(graph, walk)
    for _ in range(num_rounds):
        loops.take_steps(walk, 7)
        assert_consistent(graph, walk)
        best = walk.nodes[:, loops.BEST].astype(bool)
        assert best[graph.edges].any(1).all()
        assert best.sum() == walk.counts[loops.BEST_SIZE]
    loops.forget(walk)
    assert_consistent(graph, walk)


@pytest.mark.parametrize("problem", ["mis", "mvc"])
def test_optima_are_found(problem):
    graphs = [rb_graph(12, 5, 0.3, np.random.default_rng(seed)) for seed in range(3)]
    for graph in graphs:
        found = diffuco.solve(graph, problem, method="numvc")
        exact = Highs().prove(get_problem(problem), graph, time_limit_s=60.0)
        assert (found.objective, found.feasible) == (exact.objective, True)
        again = diffuco.solve(graph, problem, method="numvc")
        assert np.array_equal(found.chosen, again.chosen)


@pytest.mark.parametrize(("edges", "size"), [([], 3), ([(0, 1)], 1), ([(0, 1), (1, 2), (2, 0)], 1)])
def test_tiny_graphs(edges, size):
    assert diffuco.solve(Graph.from_edges(edges, 3 if size > 1 else None), "mis", method="numvc").objective == size


def test_it_takes_neither_other_problems_nor_weights():
    weighted = Graph.from_edges([(0, 1)], node_weights=[1.0, 2.0])
    with pytest.raises(diffuco.InputError, match="numvc takes no node weights"):
        diffuco.solve(weighted, "mis", method="numvc")
    assert not NuMvc().solves(get_problem("mds"))


def test_auto_keeps_what_it_finds(monkeypatch):
    graph = rb_graph(60, 10, 0.4, np.random.default_rng(0))
    assert automatic.walks_pay(MIS, graph, torch.device("cpu"), 2.0)
    calls = []
    found = diffuco.solve(graph, "mis", method="numvc", time_limit_s=0.2)

    def solve(self, problem, graphs, settings):
        calls.append(settings.time_limit_s)
        return [found]

    monkeypatch.setattr(NuMvc, "solve", solve)
    monkeypatch.setattr(automatic, "prove", lambda *_: iter(()))
    monkeypatch.setattr(FlipAnnealing, "solve", lambda *_: [diffuco.solve(graph, "mis", method="greedy")])
    solution = diffuco.solve(graph, "mis", device="cpu", time_limit_s=2.0)
    assert calls == [1.0]
    assert (solution.objective, solution.found_by) == (found.objective, "numvc")
    assert solution.reason == "numvc was ahead of greedy"
