"""Cuts that leave out no edge are found and proven without a search."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import diffuco
from diffuco.graphs import two_sides as module
from diffuco.graphs.families import grid_graph, tree_graph
from diffuco.graphs.generate import ba_graph, er_graph
from diffuco.graphs.graph import Graph
from diffuco.graphs.two_sides import shows_conflict, two_sides
from diffuco.methods import auto as automatic
from diffuco.methods.base import Settings
from diffuco.methods.whole_cut import whole_cut
from diffuco.problems import MaximumCut, get_problem

CUT = get_problem("max-cut")


def rng(seed=0):
    return np.random.default_rng(seed)


def signed(graph, hidden):
    """Weights that a hidden cut satisfies: edges between its sides are positive."""
    u, v = graph.edges.T
    sizes = rng(1).integers(0, 4, graph.num_edges).astype(float)  # some are 0
    return replace(graph, edge_weights=np.where(hidden[u] != hidden[v], sizes, -sizes))


@pytest.mark.parametrize("seed", range(30))
def test_sides_are_found_exactly_where_enumeration_cuts_all_there_is(seed):
    graph = er_graph(7, 0.25, rng(seed))
    if seed % 2:
        graph = replace(graph, edge_weights=rng(seed).choice([-1.5, 0.0, 2.0], graph.num_edges))
    weights = graph.edge_weights_or(1.0)
    u, v = graph.edges.T
    choices = (np.arange(2**7)[:, None] >> np.arange(7) & 1).astype(bool)
    best = max((weights[(x[u] != x[v])].sum() for x in choices), default=0.0)
    sides = two_sides(graph)
    assert (sides is not None) == (best == weights[weights > 0].sum())
    if sides is not None:
        assert weights[sides[u] != sides[v]].sum() == best


@pytest.mark.parametrize(
    "graph",
    [
        grid_graph(900, 0.2, rng()),
        tree_graph(800, 50, 0.0, rng()),
        Graph(900, np.empty((0, 2), dtype=np.int64)),
        signed(ba_graph(500, 4, rng()), rng(2).random(500) < 0.5),
    ],
    ids=["grid", "tree", "no edges", "signed"],
)
def test_auto_proves_them(graph):
    weights = graph.edge_weights_or(1.0)
    on_a_gpu = automatic.contested(CUT, graph, Settings(time_limit_s=1.0))
    for solution in (diffuco.solve(graph, "max-cut", time_limit_s=1.0), on_a_gpu):
        assert (solution.objective, solution.optimal) == (weights[weights > 0].sum(), True)
        assert (solution.feasible, solution.found_by) == (True, "two-sides")


def test_an_odd_cycle_is_seen_wherever_it_is(monkeypatch):
    path = [*((node, node + 1) for node in range(2000)), *((0, leaf) for leaf in range(2001, 2020))]
    far = Graph.from_edges([*path, (1998, 2000)])
    assert not shows_conflict(Graph.from_edges(path))
    assert shows_conflict(far)
    assert shows_conflict(ba_graph(3000, 4, rng()))
    monkeypatch.setattr(module, "LOOKED_AT", 10)
    assert not shows_conflict(far)
    assert two_sides(far) is None


def test_other_problems_are_left_alone():
    class Bisection(MaximumCut):
        name = "my-bisection"

    tree = tree_graph(50, 10, 0.0, rng())
    assert whole_cut(get_problem("mis"), tree, 0) is None
    assert whole_cut(Bisection(), tree, 0) is None
    assert torch.equal(torch.from_numpy(whole_cut(CUT, tree, 0).chosen), torch.from_numpy(two_sides(tree)))
