import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import oracle
from diffuco import ops
from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.batch import DenseBatch, SparseBatch, dense, make_batch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.ops import reference


@st.composite
def graph_lists(draw):
    graphs = []
    for _ in range(draw(st.integers(1, 4))):
        num_nodes = draw(st.integers(0, 9))
        possible = [(u, v) for u in range(num_nodes) for v in range(u + 1, num_nodes)]
        edges = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        weights = rng.normal(size=len(edges)) if draw(st.booleans()) else None
        node_weights = rng.normal(size=num_nodes) if draw(st.booleans()) else None
        graphs.append(Graph.from_edges(edges, num_nodes, edge_weights=weights, node_weights=node_weights))
    return graphs


@settings(max_examples=60, deadline=None)
@given(graph_lists(), st.booleans(), st.integers(0, 99))
def test_dense_and_sparse_agree_on_every_operation(graphs, weighted, seed):
    sparse, dense = SparseBatch.from_graphs(graphs), DenseBatch.from_graphs(graphs)
    per_graph = [torch.randn(graph.num_nodes, 3, 2, generator=oracle.seeded(seed)) for graph in graphs]
    values = torch.cat(per_graph)
    padded = torch.full((dense.num_rows, 3, 2), float("nan"))
    for rows, given_values in zip(dense.split(padded), per_graph, strict=True):
        rows.copy_(given_values)

    finite = padded.nan_to_num()  # a matrix product multiplies padding by 0, so it has to be finite there
    pairs = [
        (sparse.neighbor_sum(values, weighted=weighted), dense.neighbor_sum(finite, weighted=weighted)),
        (sparse.degrees, dense.degrees),
        (sparse.node_weights_or(0.5), dense.node_weights_or(0.5)),
        (sparse.squared_weight_sum(), dense.squared_weight_sum()),
        (sparse.spread(sparse.graph_sum(values)), dense.spread(dense.graph_sum(padded))),
    ]
    if any(graph.node_weights is not None for graph in graphs):
        pairs += [
            (sparse.relative_weights, dense.relative_weights),
            (sparse.heaviest_around, dense.heaviest_around),
            (
                sparse.by_heavier_end.neighbor_sum(values, weighted=True),
                dense.by_heavier_end.neighbor_sum(finite, weighted=True),
            ),
        ]
        assert_close(sparse.heaviest, dense.heaviest)
    for from_sparse, from_dense in pairs:
        for one, other in zip(sparse.split(from_sparse), dense.split(from_dense), strict=True):
            assert_close(one, other)
    assert_close(sparse.graph_sum(values), dense.graph_sum(padded))
    assert_close(sparse.graph_mean(values), dense.graph_mean(padded))
    assert sparse.sizes.tolist() == dense.sizes.tolist() == [graph.num_nodes for graph in graphs]


@settings(max_examples=30, deadline=None)
@given(graph_lists(), st.integers(0, 99))
def test_gradient_of_neighbor_sum_agrees(graphs, seed):
    sparse, dense = SparseBatch.from_graphs(graphs), DenseBatch.from_graphs(graphs)
    values = torch.randn(sparse.num_rows, 2, generator=oracle.seeded(seed), dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(values.shape, generator=oracle.seeded(seed + 1), dtype=torch.float64)
    padded = torch.zeros(dense.num_rows, 2, dtype=torch.float64)
    rows = torch.cat([torch.arange(s, s + n) for s, n in zip(dense.row_starts, dense.sizes, strict=True)])
    (one,) = torch.autograd.grad((sparse.neighbor_sum(values, weighted=True) * upstream).sum(), values)
    spread = padded.index_copy(0, rows, values)
    (other,) = torch.autograd.grad((dense.neighbor_sum(spread, weighted=True)[rows] * upstream).sum(), values)
    assert_close(one, other)


@pytest.mark.parametrize("kind", [SparseBatch, DenseBatch])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neighbor_product_and_its_gradient_are_exact_at_zeros_too(kind, dtype):
    for graph in oracle.unweighted_graphs()[1:]:
        n, batch = graph.num_nodes, kind.from_graphs([graph])
        states = torch.from_numpy(oracle.all_states(n).T)
        values = torch.cat([states, torch.rand(n, 3, generator=oracle.seeded(0))], dim=1).to(dtype).requires_grad_()
        neighbors = [graph.edges[(graph.edges == node).any(1)].sum(1) - node for node in range(n)]
        expected = torch.stack([values[others].prod(0) for others in neighbors])
        found = batch.neighbor_product(values)
        upstream = torch.rand(found.shape, generator=oracle.seeded(1), dtype=dtype)
        slopes = (torch.autograd.grad((each * upstream).sum(), values)[0] for each in (found, expected))
        assert_close(found, expected, atol=1e-6, rtol=1e-5)
        assert_close(*slopes, atol=1e-6, rtol=1e-5)


@settings(max_examples=30, deadline=None)
@given(graph_lists(), st.booleans(), st.integers(0, 99))
def test_sums_in_float64_equal_the_reference(graphs, weighted, seed):
    batch = SparseBatch.from_graphs(graphs)
    values = torch.randn(batch.num_rows, 3, generator=oracle.seeded(seed), dtype=torch.float64)
    weights = batch.weights if weighted else None
    found = ops.neighbor_sum(values, batch.indptr, batch.indices, weights)
    assert found.dtype == torch.float64
    assert_close(found, reference.csr_neighbor_sum(values, batch.indptr, batch.indices, weights))


def test_a_single_column_is_summed_with_the_stride_of_fast_loops(monkeypatch):
    batch = SparseBatch.from_graphs([Graph.from_edges([(0, 1), (1, 2)])])
    strides = []

    def summed(values, *rows):
        strides.append(values.stride())
        return original(values, *rows)

    original = reference.csr_neighbor_sum
    monkeypatch.setattr(reference, "csr_neighbor_sum", summed)
    column = torch.tensor([[1.0, 2.0, 4.0]]).T  # its stride along the single column is 3
    assert batch.neighbor_sum(column).ravel().tolist() == [2.0, 5.0, 2.0]
    assert strides == [(1, 1)]


def test_selecting_graphs_on_the_device_equals_building_them():
    graphs = oracle.small_graphs()
    whole = DenseBatch.from_graphs(graphs, pad_to=9)
    part = whole.select(torch.tensor([6, 3]))
    fresh = DenseBatch.from_graphs([graphs[6], graphs[3]], pad_to=9)
    assert torch.equal(part.adjacency, fresh.adjacency)
    assert torch.equal(part.mask, fresh.mask)
    assert torch.equal(part.node_weights.nan_to_num(-9), fresh.node_weights.nan_to_num(-9))
    assert torch.equal(part.weights, fresh.weights)


@pytest.mark.parametrize("kind", [SparseBatch, DenseBatch])
def test_node_weights_are_the_problems_default_where_a_graph_has_none(kind):
    path = [(0, 1), (1, 2)]
    plain, weighted = Graph.from_edges(path), Graph.from_edges(path, num_nodes=4, node_weights=[4, 1, 2, 0])
    assert kind.from_graphs([plain]).node_weights is None
    assert kind.from_graphs([plain]).relative_weights is None
    batch = kind.from_graphs([plain, weighted])
    for default in (0.0, 1.0):
        first, second = batch.split(batch.node_weights_or(default))
        assert (first.tolist(), second.tolist()) == ([default] * 3, [4, 1, 2, 0])
        assert kind.from_graphs([plain]).node_weights_or(default).tolist() == [default] * 3
    assert batch.heaviest.tolist() == [1, 4]
    assert [part.tolist() for part in batch.split(batch.relative_weights)] == [[1, 1, 1], [1, 0.25, 0.5, 0]]
    # The last node is alone and weighs nothing: the least penalty.
    assert [part.tolist() for part in batch.split(batch.heaviest_around)] == [[1, 1, 1], [1, 1, 0.5, 2**-10]]


def test_sparse_graphs_get_a_sparse_batch_on_a_cpu():
    ring = Graph.from_edges([(i, (i + 1) % 200) for i in range(200)])
    assert isinstance(make_batch([ring]), SparseBatch)


def test_edges_are_cleaned_with_a_warning():
    with pytest.warns(GraphWarning, match="1 self-loop and 2 repeated edges"):
        graph = Graph.from_edges([(2, 1), (1, 2), (0, 0), (1, 2), (0, 1)], edge_weights=[5.0, 6.0, 7.0, 8.0, 9.0])
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_weights.tolist() == [9.0, 5.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: Graph.from_edges([(0, 5)], num_nodes=3),
        lambda: Graph.from_edges([(-1, 0)], num_nodes=3),
        lambda: Graph.from_edges([(0.5, 1.0)]),
        lambda: Graph.from_edges([(0, 1, 2)]),
        lambda: Graph.from_edges([(0, 1)], edge_weights=[float("nan")]),
        lambda: Graph.from_edges([(0, 1)], edge_weights=[1.0, 2.0]),
        lambda: Graph.from_edges([(0, 1)], node_weights=[1.0]),
        lambda: Graph.from_edges([(0, 1)], labels=["a", "b", "c"], num_nodes=2),
        lambda: Graph.from_edges([], num_nodes=-1),
    ],
)
def test_graphs_that_make_no_sense_are_refused(call):
    with pytest.raises(InputError):
        call()


@pytest.mark.parametrize("num_nodes", [50, 2**15 - 1, 2**15, 2**16 + 1])
def test_csr_is_that_of_scipy_for_any_size_of_indices(num_nodes):
    random = np.random.default_rng(0)
    ends = np.unique(np.sort(random.choice(num_nodes, (400, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    graph = Graph.from_edges(ends, num_nodes, edge_weights=random.random(len(ends)))
    (u, v), shape = graph.edges.T, (num_nodes, num_nodes)
    upper = scipy.sparse.coo_array((graph.edge_weights, (u, v)), shape=shape)
    expected = scipy.sparse.csr_array(upper + upper.T)
    expected.sort_indices()
    assert all(map(np.array_equal, graph.csr, (expected.indptr, expected.indices, expected.data)))


def test_csr_lists_every_edge_from_both_ends():
    graph = oracle.small_graphs()[-1]
    indptr, indices, weights = graph.csr
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    for node in range(graph.num_nodes):
        matrix[node, indices[indptr[node] : indptr[node + 1]]] = weights[indptr[node] : indptr[node + 1]]
    assert np.array_equal(matrix, matrix.T)
    assert np.array_equal(matrix[graph.edges[:, 0], graph.edges[:, 1]], graph.edge_weights)
    assert np.count_nonzero(matrix) == 2 * graph.num_edges


def test_matrices_are_the_same_however_many_graphs_are_taken_at_once(monkeypatch):
    graphs = get_dataset("qubo-tiny").graphs("train", 5)
    whole = DenseBatch.from_graphs(graphs)
    monkeypatch.setattr(dense, "GRAPHS_AT_ONCE", 2)
    parts = DenseBatch.from_graphs(graphs)
    assert torch.equal(whole.adjacency, parts.adjacency)
    assert torch.equal(whole.weights, parts.weights)
