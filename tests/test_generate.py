"""The generators obey their models: against plain statements of the rules, at the edges, and bit for bit uncompiled."""

import inspect
import itertools
import math
import os
import subprocess
import sys

import networkx
import numpy as np
import pytest

from diffuco.foundation.errors import InputError
from diffuco.graphs import kernels
from diffuco.graphs.generate import ba_graph, er_graph, mixed_graph, planar_union, random_qubo, rb_graph
from diffuco.graphs.graph import Graph


def rng_of(seed):
    return np.random.default_rng(seed)


def assert_canonical(graph):
    """Constructed directly, a graph must be what `from_edges` would have made of its edges, without a warning."""
    again = Graph.from_edges(
        graph.edges, graph.num_nodes, edge_weights=graph.edge_weights, node_weights=graph.node_weights
    )
    assert again.digest == graph.digest
    assert graph.edges.dtype == np.int64


def plain_rb_edges(num_cliques, clique_size, tightness, rng):
    """The model in the words of its definition, one draw after the other."""
    a = math.log(clique_size) / math.log(num_cliques)
    r = -a / math.log(1 - tightness)
    pairs_per_draw = int(tightness * num_cliques ** (2 * a))
    cliques = [range(i * clique_size, (i + 1) * clique_size) for i in range(num_cliques)]
    drawn = set()
    for _ in range(int(r * num_cliques * math.log(num_cliques) - 1)):
        i, j = rng.choice(num_cliques, size=2, replace=False)
        left = [pair for pair in itertools.product(cliques[i], cliques[j]) if pair not in drawn]
        chosen = rng.permutation(len(left))[:pairs_per_draw]
        drawn.update(left[c] for c in chosen)
    inside = {pair for clique in cliques for pair in itertools.combinations(clique, 2)}
    return inside | {(min(pair), max(pair)) for pair in drawn}


@pytest.mark.parametrize(("num_cliques", "clique_size", "tightness"), [(3, 3, 0.3), (4, 3, 0.6), (2, 4, 0.4)])
def test_rb_edge_counts_are_distributed_as_in_the_definition(num_cliques, clique_size, tightness):
    parameters = (num_cliques, clique_size, tightness)
    num_graphs = 3000
    ours = np.array([rb_graph(*parameters, rng_of(i)).num_edges for i in range(num_graphs)])
    plain = np.array([len(plain_rb_edges(*parameters, rng_of([1, i]))) for i in range(num_graphs)])
    assert ours.std() == pytest.approx(plain.std(), rel=0.1)
    assert abs(ours.mean() - plain.mean()) < 4 * math.hypot(ours.std(), plain.std()) / math.sqrt(num_graphs)
    support = np.arange(min(ours.min(), plain.min()), max(ours.max(), plain.max()) + 1)
    gap = [(ours <= edges).mean() - (plain <= edges).mean() for edges in support]
    assert np.abs(gap).max() < 1.95 * math.sqrt(2 / num_graphs)  # Kolmogorov-Smirnov at 0.1 %


def test_rb_edges_between_cliques_are_equally_likely():
    num_graphs, num_cliques, clique_size = 4000, 3, 3
    counts = np.zeros((9, 9))
    for i in range(num_graphs):
        edges = rb_graph(num_cliques, clique_size, 0.4, rng_of(i)).edges
        counts[edges[:, 0], edges[:, 1]] += 1
    clique = np.arange(9) // clique_size
    assert (counts[np.triu(np.equal.outer(clique, clique), 1)] == num_graphs).all()
    across = counts[np.less.outer(clique, clique)] / num_graphs
    mean = across.mean()
    assert np.abs(across - mean).max() < 4 * math.sqrt(mean * (1 - mean) / num_graphs)


def test_rb_draws_are_uniform_over_ordered_pairs_of_different_cliques():
    draws = kernels.count_draws(4, 120_000, rng_of(0))
    assert draws.sum() == 120_000
    assert (np.diag(draws) == 0).all()
    assert draws[~np.eye(4, dtype=bool)] == pytest.approx(10_000, rel=0.04)


@pytest.mark.parametrize("subset_size", [0, 1, 4, 5, 8, 9, 20])
def test_subsets_have_their_size_and_are_uniform(subset_size):
    num_cells, num_subsets = 9, 5000
    order, rng = np.arange(num_cells), rng_of(0)
    together = np.zeros((num_cells, num_cells))
    for _ in range(num_subsets):
        cells = np.zeros(num_cells, dtype=bool)
        kernels.mark_subset(cells, subset_size, order, rng)
        assert cells.sum() == min(subset_size, num_cells)
        together += np.outer(cells, cells)
    size = min(subset_size, num_cells)
    assert np.diag(together) / num_subsets == pytest.approx(size / num_cells, abs=0.03)
    pairs = together[~np.eye(num_cells, dtype=bool)] / num_subsets
    assert pairs == pytest.approx(size * (size - 1) / num_cells / (num_cells - 1), abs=0.03)


def test_draws_exclude_each_other_in_one_orientation_and_merge_across_orientations():
    # Two draws of 8 of the 16 pairs between two cliques: all 16 if in one orientation, else two independent halves.
    edges_inside = 2 * 6
    across = np.array([len(kernels.rb_edges(2, 4, 2, 8, rng_of(i))) - edges_inside for i in range(2000)])
    assert (across == 16).mean() == pytest.approx(0.5, abs=0.04)
    merged = across[across < 16]
    assert merged.min() >= 8
    assert merged.mean() == pytest.approx(12, abs=0.15)


def test_rb_without_draws_is_separate_cliques():
    graph = rb_graph(5, 3, 1.0, rng_of(0))
    assert graph.edges.tolist() == [
        list(e) for i in range(5) for e in itertools.combinations(range(3 * i, 3 * i + 3), 2)
    ]
    assert rb_graph(3, 2, 0.1, rng_of(0)).num_edges == 3  # int(0.1 * 4) = 0 pairs per draw


@pytest.mark.parametrize("seed", range(5))
def test_generated_graphs_are_canonical(seed):
    assert_canonical(rb_graph(7, 5, 0.4, rng_of(seed)))
    assert_canonical(ba_graph(40, 4, rng_of(seed)))
    assert_canonical(er_graph(40, 0.3, rng_of(seed)))
    assert_canonical(planar_union(40, 2, rng_of(seed)))
    assert_canonical(random_qubo(40, 0.3, rng_of(seed)))


def test_ba_grows_from_a_star_by_the_given_number_of_attachments():
    assert ba_graph(5, 4, rng_of(0)).edges.tolist() == [[0, 1], [0, 2], [0, 3], [0, 4]]
    graph = ba_graph(60, 3, rng_of(0))
    assert np.bincount(graph.edges[:, 1], minlength=60).tolist() == [0, 1, 1, 1] + [3] * 56


def test_ba_degrees_are_distributed_as_networkx_has_them():
    num_graphs = 1500
    ours = np.array([np.sort(ba_graph(15, 2, rng_of(i)).degrees) for i in range(num_graphs)])
    theirs = np.array(
        [sorted(d for _, d in networkx.barabasi_albert_graph(15, 2, seed=i).degree()) for i in range(num_graphs)]
    )
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / num_graphs)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4.5 * error + 1e-9).all()


def test_ba_first_attachment_is_proportional_to_degree():
    hits = sum([0, 3] in ba_graph(4, 2, rng_of(i)).edges.tolist() for i in range(3000))
    # Star 1-0-2: the centre holds 2 of 4 entries; it is missed only by drawing both leaves, 1/2 * 1/3.
    assert hits / 3000 == pytest.approx(5 / 6, abs=0.03)


def test_er_pairs_are_present_independently_with_the_given_probability():
    num_graphs, n, p = 4000, 6, 0.35
    present = np.zeros((num_graphs, n, n))
    for i in range(num_graphs):
        edges = er_graph(n, p, rng_of(i)).edges
        present[i, edges[:, 0], edges[:, 1]] = 1
    upper = np.triu_indices(n, 1)
    pairs = present[:, upper[0], upper[1]]
    assert pairs.mean(axis=0) == pytest.approx(p, abs=0.035)
    assert pairs.sum(axis=1).var() == pytest.approx(15 * p * (1 - p), rel=0.1)


@pytest.mark.parametrize("num_nodes", [3, 4, 30])
def test_a_planar_layer_is_planar_and_nothing_can_be_added(num_nodes):
    layer = planar_union(num_nodes, 1, rng_of(num_nodes))
    assert layer.num_edges == 3 * num_nodes - 6
    assert networkx.check_planarity(networkx.Graph(layer.edges.tolist()))[0]


def test_planar_layers_are_drawn_independently():
    union = planar_union(50, 2, rng_of(0))
    assert 3 * 50 - 6 < union.num_edges <= 2 * (3 * 50 - 6)
    with pytest.raises(InputError, match="2 nodes"):
        planar_union(2, 1, rng_of(0))


def test_mixed_graphs_have_the_asked_degrees():
    dense, sparse = (mixed_graph(300, kind, 0.2, 5.0, rng_of(kind)) for kind in range(2))
    assert dense.degrees.mean() == pytest.approx(0.2 * 299, rel=0.05)
    assert sparse.degrees.mean() == pytest.approx(5, rel=0.1)
    assert mixed_graph(300, 2, 0.2, 5.0, rng_of(2)).degrees.mean() == pytest.approx(12, rel=0.05)


def test_er_extremes():
    assert er_graph(0, 0.5, rng_of(0)).num_nodes == 0
    assert er_graph(1, 1.0, rng_of(0)).num_edges == 0
    assert er_graph(30, 0.0, rng_of(0)).num_edges == 0
    assert er_graph(30, 1.0, rng_of(0)).num_edges == 435
    assert er_graph(30_000, 1e-300, rng_of(0)).num_edges == 0
    sparse = er_graph(30_000, 1e-5, rng_of(0))
    assert sparse.num_edges == pytest.approx(4500, rel=0.1)
    assert_canonical(sparse)


def test_qubo_weights_are_the_integers_of_the_beasley_family():
    graph = random_qubo(300, 0.5, rng_of(0))
    assert graph.density == pytest.approx(0.5, abs=0.02)
    assert set(graph.edge_weights) == set(range(-100, 101)) - {0}
    assert set(random_qubo(5000, 0.0, rng_of(0)).node_weights) == set(range(-100, 101))
    assert graph.edge_weights.mean() == pytest.approx(0, abs=2)


@pytest.mark.parametrize(
    ("generator", "parameters", "complaint"),
    [
        (rb_graph, (1, 5, 0.5), "1 clique in"),
        (rb_graph, (5, 1, 0.5), "size 1"),
        (rb_graph, (5, 5, 0.0), "tightness 0"),
        (rb_graph, (5, 5, 1.01), "tightness 1.01"),
        (rb_graph, (5, 5, math.nan), "tightness nan"),
        (ba_graph, (4, 4), "4 attachments in a BA graph of 4 nodes"),
        (ba_graph, (4, 0), "0 attachments"),
        (er_graph, (4, 1.5), "probability 1.5"),
        (er_graph, (-1, 0.5), "-1 nodes"),
        (random_qubo, (4, -0.1), "probability -0.1"),
    ],
)
def test_impossible_parameters_are_refused(generator, parameters, complaint):
    with pytest.raises(InputError, match=complaint):
        generator(*parameters, rng_of(0))


def print_digests() -> None:
    rng = np.random.default_rng(0)
    for tightness in (0.3, 0.5, 0.8, 0.95):
        print(rb_graph(8, 5, tightness, rng).digest, ba_graph(50, 4, rng).digest)


def test_uncompiled_kernels_give_the_same_graphs_bit_for_bit(capsys):
    print_digests()
    compiled = capsys.readouterr().out
    header = "import numpy as np\nfrom diffuco.graphs.generate import ba_graph, rb_graph\n"
    program = f"{header}{inspect.getsource(print_digests)}print_digests()"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    uncompiled = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert compiled.count("\n") == 4
    assert compiled == uncompiled.stdout, uncompiled.stderr


def test_importing_the_generators_does_not_import_numba():
    code = "import sys, diffuco.graphs.datasets; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
