"""Clique search: what it proves is the largest clique, at all densities and sizes, and what it stops at is bounded."""

import itertools

import networkx
import numpy as np
import pytest

import diffuco
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import proofs
from diffuco.methods.clique import CliqueSearch
from diffuco.methods.exact import ExactResult
from diffuco.ops import numba_clique
from diffuco.ops.numba_degeneracy import greedy_clique, order_nodes
from diffuco.problems import get_problem

CLIQUE = get_problem("max-clique")


def search(graph: Graph, time_limit_s: float = 60.0, seed: int = 0) -> ExactResult:
    result = CliqueSearch().prove(CLIQUE, graph, time_limit_s=time_limit_s, seed=seed)
    verdict = CLIQUE.check(graph, result.chosen)
    assert verdict.feasible
    assert verdict.objective == result.objective <= result.bound
    assert result.proven == (result.bound == result.objective)
    return result


def random_graph(num_nodes: int, density: float, seed: int) -> Graph:
    return er_graph(num_nodes, density, np.random.default_rng(seed))


def clique_number(graph: Graph) -> int:
    as_networkx = networkx.Graph(graph.edges.tolist())
    as_networkx.add_nodes_from(range(graph.num_nodes))
    return max(map(len, networkx.find_cliques(as_networkx)), default=0)


def planted_graph(num_nodes: int, clique_size: int, density: float, seed: int) -> Graph:
    """A clique among nodes that have more neighbours than its own, as in Sanchis' graphs: degrees mislead."""
    rng = np.random.default_rng(seed)
    inside = np.arange(num_nodes) < clique_size
    u, v = np.triu_indices(num_nodes, 1)
    is_edge = rng.random(len(u)) < np.where(inside[u] | inside[v], 0.75 * density, density)
    return Graph.from_edges(
        rng.permutation(num_nodes)[np.stack([u, v], 1)[is_edge | (inside[u] & inside[v])]], num_nodes
    )


@pytest.mark.parametrize("whole_nodes", [4096, 0], ids=["whole", "node by node"])
@pytest.mark.parametrize("density", [0.0, 0.05, 0.2, 0.5, 0.8, 0.9, 0.97, 1.0])
def test_small_graphs_of_all_densities(density, whole_nodes, monkeypatch):
    monkeypatch.setattr(numba_clique, "WHOLE_NODES", whole_nodes)
    for seed in range(30):
        graph = random_graph(seed % 27 if density < 0.9 else seed % 20, density, seed)
        result = search(graph)
        assert result.proven
        assert result.objective == clique_number(graph)


@pytest.mark.parametrize(("num_nodes", "density"), [(65, 0.5), (130, 0.4), (200, 0.3), (70, 0.75)])
def test_graphs_of_several_words(num_nodes, density, monkeypatch):
    graph = random_graph(num_nodes, density, seed=1)
    assert search(graph).objective == clique_number(graph)
    monkeypatch.setattr(numba_clique, "WHOLE_NODES", 0)
    assert search(graph).objective == clique_number(graph)


def test_disconnected_graphs():
    cliques = [itertools.combinations(range(start, start + size), 2) for start, size in ((0, 5), (5, 9), (20, 7))]
    result = search(Graph.from_edges(list(itertools.chain(*cliques)), 40))
    assert (result.objective, result.proven) == (9, True)
    assert np.flatnonzero(result.chosen).tolist() == list(range(5, 14))


def test_dense_graphs_as_their_complements():
    """The largest clique of a complement of triangles takes one node of each; a colouring proves it."""
    triangles = {(3 * i + a, 3 * i + b) for i in range(40) for a, b in ((0, 1), (0, 2), (1, 2))}
    graph = Graph.from_edges([pair for pair in itertools.combinations(range(120), 2) if pair not in triangles], 120)
    result = search(graph)
    assert (result.objective, result.proven) == (40, True)


def test_a_clique_that_degrees_hide_is_found_and_proven():
    result = search(planted_graph(200, 45, 0.7, seed=0))
    assert (result.objective, result.proven) == (45, True)


@pytest.mark.parametrize("num_looks", [1, 2, 5, 10])
def test_a_search_that_is_stopped_tells_a_clique_and_a_bound(num_looks, monkeypatch):
    graph = random_graph(200, 0.9, seed=0)
    clock = itertools.count()
    monkeypatch.setattr("diffuco.methods.clique.time.perf_counter", lambda: next(clock))
    stopped = search(graph, time_limit_s=num_looks)
    assert not stopped.proven
    assert 39 <= stopped.objective <= 41 <= stopped.bound < 200


@pytest.mark.parametrize("whole_nodes", [4096, 0], ids=["whole", "node by node"])
def test_bounds_hold_wherever_a_search_stops(whole_nodes, monkeypatch):
    monkeypatch.setattr(numba_clique, "WHOLE_NODES", whole_nodes)
    graph = random_graph(80, 0.7, seed=3)
    best = clique_number(graph)
    order = order_nodes(graph.csr.indptr, graph.csr.indices)
    space = numba_clique.make_space(order, greedy_clique(order))
    num_stops = 0
    while not numba_clique.advance(order, space, 500):
        assert len(numba_clique.best_clique(space)) <= best
        assert max(len(numba_clique.best_clique(space)), space.progress[numba_clique.BOUND]) >= best
        num_stops += 1
    assert num_stops > 20
    assert len(numba_clique.best_clique(space)) == best


def test_large_sparse_graphs_are_proven_at_once():
    rng = np.random.default_rng(0)
    edges = np.unique(np.sort(rng.integers(0, 20_000, (40_000, 2)), axis=1), axis=0)
    planted = list(itertools.combinations(range(100, 20_000, 2500), 2))
    graph = Graph.from_edges(np.unique(np.concatenate([edges[edges[:, 0] < edges[:, 1]], planted]), axis=0), 20_000)
    solution = diffuco.solve(graph, "max-clique", device="cpu")
    assert (solution.objective, solution.optimal, solution.found_by) == (8, True, "clique-search")
    assert solution.reason == "proven optimal by clique-search"
    assert np.flatnonzero(solution.chosen).tolist() == list(range(100, 20_000, 2500))


@pytest.mark.parametrize("graph", [random_graph(150, 0.7, seed=5), random_graph(5000, 0.002, seed=6)], ids=str)
def test_the_same_seed_gives_the_same_clique(graph):
    first, second = search(graph, seed=7), search(graph, seed=7)
    assert first.proven
    assert np.array_equal(first.chosen, second.chosen)
    assert search(graph, seed=8).objective == first.objective


def test_auto_keeps_what_was_found_without_a_proof(monkeypatch):
    monkeypatch.setattr(proofs, "EXACT_S", 0.05)
    monkeypatch.setattr(proofs, "SPARSE_EXACT_S", 0.05)
    solution = diffuco.solve(random_graph(400, 0.9, seed=0), "max-clique", device="cpu")
    assert not solution.optimal
    assert solution.objective <= solution.bound
