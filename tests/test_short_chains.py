"""A dominating set of a graph with short chains extends to one of the graph, for one more node per triple."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import diffuco
import oracle
from diffuco.graphs.dominating_core import dominating_core
from diffuco.graphs.families import grid_graph
from diffuco.graphs.generate import ba_graph, er_graph
from diffuco.graphs.graph import Graph
from diffuco.graphs.short_chains import short_chains
from diffuco.methods.highs import Highs
from diffuco.problems import get_problem

MDS = get_problem("mds")


def rng(seed=0):
    return np.random.default_rng(seed)


def subdivided(graph, most, seed=0):
    """The graph with up to so many nodes on each edge."""
    edges, size = [], graph.num_nodes
    for u, v in graph.edges.tolist():
        more = int(rng((seed, u, v)).integers(0, most, endpoint=True))
        nodes = [u, *range(size, size + more), v]
        edges += pairwise(nodes)
        size += more
    return Graph.from_edges(edges, size)


def ring(size):
    return Graph.from_edges([(node, (node + 1) % size) for node in range(size)])


SMALL = [
    *(ring(size) for size in range(3, 12)),
    *(Graph.from_edges([(node, node + 1) for node in range(size)]) for size in (3, 4, 5, 9)),
    Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (4, 5), (5, 6), (6, 0)]),  # both chains come back to 0
    Graph.from_edges([(0, 1), (0, 2), (2, 3), (3, 4), (4, 1), (0, 5), (1, 6)]),  # its ends are neighbours already
    Graph.from_edges([*ring(7).edges.tolist(), (8, 9)], 11),
    *(subdivided(er_graph(4, 0.8, rng(seed)), 3, seed) for seed in range(12)),
]


@pytest.mark.parametrize("graph", [graph for graph in SMALL if graph.num_nodes <= 14], ids=str)
def test_dominating_sets_extend_to_those_of_the_graph_and_the_smallest_to_the_smallest(graph):
    short = short_chains(graph)
    if short is None:
        has_two = np.flatnonzero(graph.degrees == 2)
        assert len(has_two) < 3 or graph.num_nodes == 3 or graph.degrees.max() > 2
        return
    of_short, sizes = oracle.dominating_sets(short.graph)
    extended = short.extend(of_short, graph.num_nodes)
    assert all(diffuco.check(graph, MDS, state).feasible for state in extended.T)
    np.testing.assert_array_equal(extended.sum(axis=0), sizes + short.gain)
    assert sizes.min() + short.gain == oracle.dominating_sets(graph)[1].min()
    np.testing.assert_array_equal(short.restrict(extended), of_short)


def test_every_kind_of_chain_is_shortened():
    assert sum(short_chains(graph) is not None for graph in SMALL) > 20
    assert all(short_chains(ring(size)) for size in range(4, 12))
    assert short_chains(ring(3)) is None
    left = short_chains(subdivided(grid_graph(100, 0.2, rng()), 12)).graph
    assert short_chains(left) is None


def test_others_are_left_alone():
    weighted = replace(ring(30), node_weights=np.ones(30))
    for graph in (ba_graph(300, 3, rng()), weighted, Graph.from_edges([], 5), Graph.from_edges([], 0)):
        assert short_chains(graph) is None


@pytest.mark.parametrize("most", [3, 10])
def test_chains_are_shortened_before_other_nodes_are_taken_out_and_after(most):
    graph = subdivided(grid_graph(144, 0.25, rng()), most)
    core = dominating_core(graph)
    assert [type(step).__name__ for step in core.cores][:3] == ["ShortChains", "DominatingCore", "ShortChains"]
    assert core.graph.num_nodes < 0.5 * graph.num_nodes
    found = Highs().prove(MDS, core.graph, time_limit_s=60.0)
    best = Highs().prove(MDS, graph, time_limit_s=60.0)
    assert found.objective + core.gain == best.objective
    whole = core.extend(found.chosen[:, None], graph.num_nodes)[:, 0]
    checked = diffuco.check(graph, MDS, whole)
    assert (checked.feasible, checked.objective) == (True, best.objective)
    told = core.restrict(whole[:, None])
    np.testing.assert_array_equal(core.extend(told, graph.num_nodes)[:, 0], whole)


def test_roads_with_many_points_are_proven():
    graph = subdivided(grid_graph(900, 0.25, rng()), 10)
    solution = diffuco.solve(graph, "mds", time_limit_s=20.0, device="cpu")
    assert solution.optimal
    assert solution.objective == diffuco.solve(graph, "mds", method="highs").objective
