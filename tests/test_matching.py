"""Matchings of graphs with two sides are as large as can be, and prove their largest independent sets."""

import numpy as np
import pytest

import diffuco
from diffuco.graphs import set_core as module
from diffuco.graphs.families import grid_graph, tree_graph
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.graphs.set_core import set_core
from diffuco.graphs.two_sides import two_sides
from diffuco.methods.highs import Highs
from diffuco.ops.numba_matching import NONE, enlarge, is_largest, largest_set, make_matching
from diffuco.problems import get_problem


def rng(seed=0):
    return np.random.default_rng(seed)


def with_two_sides(num_nodes, num_edges, seed):
    """A random graph of which every edge crosses, numbered at random."""
    first, second = rng(seed).permutation(num_nodes), rng(seed + 1)
    half = num_nodes // 2
    ends = np.stack([second.integers(0, half, num_edges), second.integers(half, num_nodes, num_edges)], axis=1)
    return Graph.from_edges(np.unique(first[ends], axis=0), num_nodes)


def matched(graph):
    """A largest matching and the times that it was enlarged."""
    matching, rounds = make_matching(graph.csr.indptr, graph.csr.indices, two_sides(graph)), 0
    while not is_largest(matching):
        before = (matching.mates != NONE).sum()
        enlarge(matching)
        assert (matching.mates != NONE).sum() > before
        rounds += 1
    return matching, rounds


GRAPHS = {
    "edge": Graph.from_edges([(0, 1)]),
    "no edges": Graph(3, np.empty((0, 2), dtype=np.int64)),
    "empty": Graph(0, np.empty((0, 2), dtype=np.int64)),
    "star": Graph.from_edges([(0, leaf) for leaf in range(1, 9)]),
    "grid": grid_graph(400, 0.15, rng()),
    "tree": tree_graph(300, 10, 0.0, rng()),
    "sparse": with_two_sides(300, 450, 1),
    "dense": with_two_sides(61, 400, 2),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_set_of_a_largest_matching_is_a_largest_set(graph):
    matching, _ = matched(graph)
    pairs = np.flatnonzero(matching.mates != NONE)
    mates = matching.mates[pairs]
    np.testing.assert_array_equal(matching.mates[mates], pairs)
    edges = set(map(tuple, graph.edges.tolist()))
    assert all((min(pair), max(pair)) in edges for pair in zip(pairs.tolist(), mates.tolist(), strict=True))
    chosen = largest_set(matching)
    u, v = graph.edges.T
    assert not (chosen[u] & chosen[v]).any()
    assert chosen.sum() == graph.num_nodes - len(pairs) // 2
    if graph.num_nodes:
        assert chosen.sum() == Highs().prove(get_problem("mis"), graph, time_limit_s=60.0).objective


def test_paths_of_several_lengths_are_needed():
    assert matched(GRAPHS["grid"])[1] > 2


@pytest.mark.parametrize("problem", ["mis", "mvc"])
def test_auto_proves_sets_of_graphs_with_two_sides_of_which_no_node_could_be_taken_out(problem):
    graph = grid_graph(2500, 0.0, rng())
    solution = diffuco.solve(graph, problem, time_limit_s=2.0, device="cpu")
    assert (solution.objective, solution.optimal, solution.feasible) == (1250, True, True)


def test_without_time_the_graph_is_what_is_left(monkeypatch):
    graph = with_two_sides(3000, 15_000, 5)
    assert set_core(graph).graph.num_nodes == 0
    monkeypatch.setattr(module, "perf_counter", iter(np.arange(1000.0)).__next__)
    core = set_core(graph, limit_s=2.5)
    assert (core.graph.num_nodes > 2000, core.is_finished) == (True, False)


def test_odd_rings_have_no_two_sides_but_what_is_left_may_have():
    grid = grid_graph(900, 0.0, rng())
    ring = 900 + np.stack([np.arange(5), (np.arange(5) + 1) % 5], axis=1)
    graph = Graph.from_edges(np.concatenate([grid.edges, ring]))
    assert two_sides(graph) is None
    core = set_core(graph)
    assert (core.graph.num_nodes, core.gain) == (0, 452)
    assert set_core(er_graph(2000, 6 / 2000, rng())).graph.num_nodes > 1000
