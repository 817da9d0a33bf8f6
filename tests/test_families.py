"""The families of sparse graphs: what their parameters promise, at any size, and the datasets made of them."""

import numpy as np
import pytest

from diffuco.graphs import families
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.families import FAMILIES
from diffuco.pretrained.choice import has_hubs


def degrees(graph):
    return np.bincount(graph.edges.ravel(), minlength=graph.num_nodes)


def make(family, num_nodes, first=0.5, second=0.5, seed=0):
    return FAMILIES[family](num_nodes, first, second, np.random.default_rng(seed))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("first", "second"), [(0.0, 0.0), (0.5, 0.5), (0.999, 0.999)])
def test_edges_are_simple_sorted_and_determined_by_the_seed(family, first, second):
    graph = make(family, 300, first, second)
    u, v = graph.edges.T
    assert (u < v).all()
    assert v.max() < 300
    assert (np.diff(u * 300 + v) > 0).all()
    assert np.array_equal(graph.edges, make(family, 300, first, second).edges)


@pytest.mark.parametrize("family", FAMILIES)
def test_mean_degree_does_not_grow_with_the_graph(family):
    small, large = (2 * graph.num_edges / graph.num_nodes for graph in (make(family, 1000), make(family, 30_000)))
    assert large == pytest.approx(small, rel=0.2)


@pytest.mark.parametrize(("num_nodes", "degree"), [(100, 3), (11, 4), (101, 3), (6, 3), (40, 20)])
def test_regular_graphs_are_regular(num_nodes, degree):
    graph = families.regular_graph(num_nodes, degree, np.random.default_rng(1))
    missing = degree - degrees(graph)
    assert missing.min() == 0
    assert missing.sum() == num_nodes * degree % 2


def test_every_regular_graph_of_six_nodes_is_found():
    rng = np.random.default_rng(0)
    found = {families.regular_graph(6, 2, rng).edges.tobytes() for _ in range(1000)}
    assert len(found) == 60 + 10  # hexagons and pairs of triangles


def test_degrees_of_a_power_law_have_its_exponent():
    drawn = degrees(families.power_law_graph(200_000, 2.5, 2, np.random.default_rng(0)))
    tail = [np.mean(drawn >= least) for least in (10, 40)]
    assert np.log(tail[0] / tail[1]) / np.log(4) == pytest.approx(1.5, abs=0.1)
    assert np.mean(drawn >= 2) > 0.99


def test_a_ring_is_rewired_by_its_share():
    ring = families.small_world_graph(1000, 3, 0.0, np.random.default_rng(0))
    assert (degrees(ring) == 6).all()
    moved = families.small_world_graph(1000, 3, 0.2, np.random.default_rng(0))
    kept = len(set(map(tuple, ring.edges)) & set(map(tuple, moved.edges)))
    assert kept / ring.num_edges == pytest.approx(0.8, abs=0.03)


def test_points_are_joined_if_they_are_near():
    rng = np.random.default_rng(5)
    graph = families.geometric_graph(200, 8.0, rng)
    points = np.random.default_rng(5).random((200, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    near = np.argwhere(np.triu(distances <= np.sqrt(8 / (np.pi * 199)), 1))
    assert np.array_equal(graph.edges, near)


def test_grids_have_their_edges_and_triangles_their_diagonals():
    square = families.grid_graph(25, 0.0, np.random.default_rng(0))
    assert square.num_edges == 40
    assert degrees(square).max() == 4
    whole = families.grid_graph(25, 0.0, np.random.default_rng(0), triangles=True)
    assert whole.num_edges == 40 + 16
    assert set(map(tuple, square.edges)) < set(map(tuple, whole.edges))
    assert set((whole.edges[:, 1] - whole.edges[:, 0]).tolist()) == {1, 4, 5, 6}
    holes = families.grid_graph(10_000, 0.3, np.random.default_rng(0))
    assert holes.num_edges / 19_800 == pytest.approx(0.7, abs=0.02)
    assert families.grid_graph(23, 0.0, np.random.default_rng(0)).num_nodes == 23


def test_communities_have_the_degrees_they_should():
    graph = families.community_graph(10_000, 20, 6.0, 1.0, np.random.default_rng(0))
    u, v = graph.edges.T
    assert 2 * np.mean(u // 20 == v // 20) * graph.num_edges / 10_000 == pytest.approx(6.0, abs=0.15)
    assert 2 * np.mean(u // 20 != v // 20) * graph.num_edges / 10_000 == pytest.approx(1.0, abs=0.05)


def test_a_tree_without_more_edges_is_a_tree():
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = families.tree_graph(500, 20, 0.0, np.random.default_rng(0))
    u, v = graph.edges.T
    assert graph.num_edges == 499
    assert connected_components(coo_array((np.ones(499), (u, v)), shape=(500, 500)))[0] == 1
    assert (v - u).max() <= 20
    path = families.tree_graph(5, 1, 0.0, np.random.default_rng(0))
    assert path.edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


@pytest.mark.parametrize("name", ["sparse", "sparse-weighted"])
def test_test_sets_have_an_equal_part_for_every_family(name):
    dataset = get_dataset(name)
    parts = [dataset.part("test", index) for index in range(dataset.sizes["test"])]
    assert parts == np.repeat(list(FAMILIES), 20).tolist()
    assert dataset.part("train", 0) is None
    grid = dataset.graph("test", parts.index("grid"))
    assert degrees(grid).max() == 4
    sizes = [dataset.graph("validation", index).num_nodes for index in range(100)]
    assert min(sizes) >= 100
    assert max(sizes) <= 1000
    assert np.median(sizes) < 400


def test_a_set_can_have_some_families_only():
    dataset = get_dataset("hubs")
    parts = [dataset.part("test", index) for index in range(dataset.sizes["test"])]
    assert parts == np.repeat(["preferential", "power-law"], 100).tolist()
    assert {dataset.parameters("train", index)["family"] for index in range(40)} == {2, 3}
    assert np.mean([has_hubs(dataset.graph("train", index)) for index in range(40)]) > 0.8


def test_weights_are_signs_or_normal():
    dataset = get_dataset("sparse-weighted")
    for index in range(20):
        weights = dataset.graph("train", index).edge_weights
        if dataset.parameters("train", index)["kind"] == 0:
            assert set(weights.tolist()) == {-1.0, 1.0}
        else:
            assert len(set(weights.tolist())) == len(weights)
            assert abs(weights.mean()) < 0.3


def test_a_degree_too_large_for_random_exchanges_is_refused():
    from diffuco.foundation.errors import InputError

    with pytest.raises(InputError, match="degree 5 in a regular graph of 5 nodes"):
        families.regular_graph(5, 5, np.random.default_rng(0))
