"""NuMVC: its state is consistent after every step, it finds small covers, and `auto` keeps what it finds."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

import diffuco
from diffuco.graphs.generate import er_graph, rb_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import auto as automatic
from diffuco.methods import numvc
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.highs import Highs
from diffuco.methods.numvc import NuMvc
from diffuco.ops import numba_clique_cover as cover
from diffuco.ops import numba_cover_walk as loops
from diffuco.problems import get_problem

MIS = get_problem("mis")


def assert_consistent(graph: Graph, walk: loops.Walk) -> None:
    """What the walk keeps up to date is what its cover and weights say."""
    nodes = range(graph.num_nodes)
    covered = np.array([loops.in_cover(walk, node) for node in nodes])
    size, num_uncovered = walk.counts[loops.COVER_SIZE], walk.counts[loops.NUM_UNCOVERED]
    assert size == covered.sum()
    first = np.flatnonzero(np.arange(len(walk.twins)) < walk.twins)  # the first entry of every edge
    ends = np.stack([walk.neighbours[walk.twins[first]], walk.neighbours[first]], axis=1).astype(np.int64)
    assert {tuple(pair) for pair in ends.tolist()} == {tuple(sorted(pair)) for pair in graph.edges.tolist()}
    weights = walk.weights[first]
    assert np.array_equal(weights, walk.weights[walk.twins[first]])
    assert walk.counts[loops.TOTAL_WEIGHT] == weights.sum()
    assert sorted(walk.uncovered[:num_uncovered]) == first[~covered[ends].any(1)].tolist()
    scores = np.zeros(graph.num_nodes, dtype=np.int64)
    for (one, other), weight in zip(ends.tolist(), weights.tolist(), strict=True):
        if not covered[one] and not covered[other]:
            scores[[one, other]] += weight
        elif covered[one] != covered[other]:
            scores[one if covered[one] else other] -= weight
    assert [loops.score(walk, node) for node in nodes] == scores.tolist()


def test_the_node_to_give_up_has_the_highest_score_and_of_equals_changed_first():
    graph = er_graph(40, 0.2, np.random.default_rng(3))
    walk = loops.make_walk(graph.csr.indptr, graph.csr.indices, 0)
    for _ in range(50):
        loops.take_steps(walk, 3)
        cover = [node for node in range(40) if loops.in_cover(walk, node) and node != walk.counts[loops.LAST]]
        assert loops.cheapest(walk) == max(cover, key=lambda node: (loops.score(walk, node), -walk.changed[node]))


def test_loading_the_loops_does_not_count(monkeypatch):
    load = numvc.Walking.load

    def slowly() -> None:
        time.sleep(0.3)
        load()

    monkeypatch.setattr(numvc.Walking, "load", staticmethod(slowly))
    runs = []
    monkeypatch.setattr(numvc.Walking, "run", lambda self, deadline: runs.append(deadline.remaining_s))
    graph = er_graph(40, 0.2, np.random.default_rng(3))
    found = diffuco.solve(graph, "mis", method="numvc", time_limit_s=0.2, device="cpu")
    assert runs[0] > 0.1
    assert found.seconds["sample"] < 0.3


@pytest.mark.parametrize(("num_nodes", "mean_degree", "num_rounds"), [(30, 6, 40), (2000, 5, 3)])
def test_the_state_stays_consistent(num_nodes, mean_degree, num_rounds):
    graph = er_graph(num_nodes, mean_degree / num_nodes, np.random.default_rng(0))
    walk = loops.make_walk(graph.csr.indptr, graph.csr.indices, 0)
    assert_consistent(graph, walk)
    for _ in range(num_rounds):
        loops.take_steps(walk, 7)
        assert_consistent(graph, walk)
        best = walk.best
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


@pytest.mark.parametrize("seed", range(8))
def test_cliques_share_out_the_nodes_and_bound_the_best(seed):
    graph = er_graph(14, 0.1 + 0.1 * seed, np.random.default_rng(seed))
    adjacent = graph.csr.indptr, graph.csr.indices
    cliques = cover.share_out(*adjacent)
    edges = {tuple(edge) for edge in graph.edges.tolist()}
    for _ in range(4):
        fewer = cover.share_again(*adjacent, cliques, 5, seed)
        assert fewer.max() <= cliques.max()
        assert sorted(set(fewer.tolist())) == list(range(fewer.max() + 1))
        pairs = itertools.combinations(range(14), 2)
        assert all(pair in edges for pair in pairs if fewer[pair[0]] == fewer[pair[1]])
        cliques = fewer
    for problem in ("mis", "mvc"):
        found = diffuco.solve(graph, problem, method="numvc")
        best = Highs().prove(get_problem(problem), graph, time_limit_s=60.0).objective
        sign = get_problem(problem).sign
        assert sign * found.bound <= sign * best == sign * found.objective
        assert found.optimal == (found.bound == best)


def test_cliques_of_a_graph_made_of_them_are_found_and_end_the_search():
    rng = np.random.default_rng(0)
    pairs = itertools.combinations(range(20 * 12), 2)
    is_hidden = np.arange(20 * 12) % 12 == 0  # one node of every clique
    edges = [(a, b) for a, b in pairs if a // 12 == b // 12 or (rng.random() < 0.2 and not is_hidden[[a, b]].all())]
    started = time.perf_counter()
    solution = diffuco.solve(edges, "mis", method="numvc", time_limit_s=60.0)
    assert time.perf_counter() - started < 40
    assert (solution.objective, solution.bound, solution.optimal) == (20.0, 20.0, True)
    assert solution.reason == "no solution can be better, as a partition into cliques proves"


@pytest.fixture
def searches(monkeypatch):
    """A graph for NuMVC, whose answers have a gap, and what `auto` calls in its turn with which limit."""
    graph = rb_graph(60, 10, 0.4, np.random.default_rng(0))
    assert automatic.walks_pay(MIS, graph, torch.device("cpu"), 2.0)
    calls = []
    found = replace(diffuco.solve(graph, "mis", method="numvc"), optimal=False)
    greedy = diffuco.solve(graph, "mis", method="greedy")
    assert greedy.objective < found.objective

    def walk(self, walking, deadline):
        calls.append(("numvc", deadline.limit_s))
        return replace(found, bound=found.objective + calls[0][2])

    def prove(self, problem, graph, seed, deadline):
        calls.append(("cp-sat", deadline.limit_s))
        return replace(greedy, found_by="cp-sat", bound=found.objective)

    def anneal(self, problem, graphs, settings):
        calls.append(("anneal", settings.time_limit_s))
        return [replace(greedy, found_by="anneal")]

    monkeypatch.setattr(NuMvc, "go_on", walk)
    monkeypatch.setattr(CpSat, "solve_one", prove)
    monkeypatch.setattr(FlipAnnealing, "solve", anneal)
    return graph, found, calls


@pytest.mark.parametrize("is_close", [True, False])
def test_auto_proves_what_numvc_found_if_its_bound_is_close(searches, is_close):
    graph, found, calls = searches
    calls.append(("gap", None, 1 if is_close else 40))
    solution = diffuco.solve(graph, "mis", device="cpu", time_limit_s=2.0)
    _, first, second, *others = calls
    assert first == ("numvc", pytest.approx(0.5))
    assert (solution.objective, solution.found_by, solution.optimal) == (found.objective, "numvc", is_close)
    if is_close:
        assert (second, others) == (("cp-sat", pytest.approx(0.7)), [])
        assert solution.reason.endswith("no solution can be better, as cp-sat proves")
    else:
        assert [second[0], *(name for name, _ in others)] == ["numvc", "anneal"]
        assert solution.reason == "numvc was ahead of anneal"
        assert solution.bound == found.objective + 40


def test_seconds_are_those_of_all_searches(monkeypatch):
    monkeypatch.setattr(automatic, "CLOSE", -1.0)  # no proof ends it early
    graph = rb_graph(60, 10, 0.4, np.random.default_rng(0))
    solution = diffuco.solve(graph, "mis", device="cpu", time_limit_s=1.0)
    assert not solution.optimal
    assert sum(solution.seconds.values()) > 0.9


def test_a_limit_that_is_over_leaves_a_cover():
    graph = rb_graph(60, 10, 0.4, np.random.default_rng(0))
    (solution,) = diffuco.solve([graph], "mis", method="numvc", time_limit_s=1e-6)
    assert solution.objective > 30
