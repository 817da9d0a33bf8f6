import functools
import itertools
import logging
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffuco import ops
from diffuco.diffusion.decoding import MAX_TOKEN_SIZE, conditional_expectation_by_energy
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import conditional_expectation
from diffuco.ops.adjacency import DenseAdjacency
from diffuco.problems import Problem, all_problems, get_problem

DECODERS = [("numba", SparseBatch), ("numba", DenseBatch), ("torch", DenseBatch)]
TOKEN_SIZES = [1, 2, 3, 5, 8]
CONSTRAINED = ["mis", "mvc", "max-clique", "mds"]
KINDS_OF_PROBS = ["random", "zero-one", "half", "mixed"]

every_problem = pytest.mark.parametrize("problem", all_problems(), ids=lambda problem: problem.name)
every_token_size = pytest.mark.parametrize("token_size", TOKEN_SIZES)


@pytest.fixture(params=DECODERS, ids=lambda decoder: f"{decoder[0]}-{decoder[1].__name__}")
def batch_kind(request, monkeypatch):
    """The kind of batch a decoder takes, with that decoder in force."""
    implementation, kind = request.param
    monkeypatch.setattr(ops, "decoder_override", implementation)
    return kind


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def random_graph(num_nodes, density, seed, *, weighted=True):
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((num_nodes, num_nodes)) < density, 1))
    weights = {"edge_weights": rng.normal(size=len(edges)), "node_weights": rng.normal(size=num_nodes)}
    return Graph.from_edges(edges, num_nodes, **(weights if weighted else {}))


def with_node_weights(graph, seed=0):
    """The graph with node weights that constraints can be weighed against: none below 0, some equal, some 0."""
    rng = np.random.default_rng(seed)
    return replace(graph, node_weights=rng.choice([0.0, 1e-6, 0.3, 2.0, 2.0, rng.random(), 50.0], graph.num_nodes))


def without_node_weights(graph):
    return replace(graph, node_weights=None)


def with_energy_only(problem):
    """The same problem without what it states beyond its energy, as one of a user's may be."""
    kind = type(problem)
    return type(kind.__name__, (kind,), {"form": Problem.form, "local_field": Problem.local_field})()


@functools.cache
def small_graphs():
    """Empty, one node, no edges, complete, disconnected, sparse and dense; weights of both signs, and whole ones."""
    two_parts = Graph.from_edges([(0, 1), (1, 2), (0, 2), (4, 5), (5, 6)], num_nodes=8, edge_weights=[1, 1, -2, 1, 1])
    return (
        Graph.from_edges([], num_nodes=0),
        Graph.from_edges([], num_nodes=1),
        Graph.from_edges([], num_nodes=3),
        random_graph(9, 1.0, seed=1),
        two_parts,
        random_graph(7, 0.3, seed=2),
        random_graph(13, 0.1, seed=3),
        random_graph(17, 0.4, seed=4, weighted=False),
    )


@functools.cache
def batch_of(kind):
    return kind.from_graphs(small_graphs())


def collect(batch, parts):
    """Rows of the batch from one tensor per graph; padding is NaN."""
    values = torch.full((batch.num_rows, parts[0].shape[1]), torch.nan)
    for start, part in zip(batch.row_starts.tolist(), parts, strict=True):
        values[start : start + len(part)] = part
    return values


def probs_for(batch, kind, num_samples=3):
    generator = seeded(0)
    uniform = [torch.rand(size, num_samples, generator=generator) for size in batch.sizes.tolist()]
    change = {
        "random": lambda part: part,
        "zero-one": torch.round,
        "half": lambda part: torch.full_like(part, 0.5),
        "mixed": lambda part: (2 * part - 0.5).clamp(0, 1),
    }[kind]
    return collect(batch, [change(part) for part in uniform])


@functools.cache
def states_by_energy(problem, kind_of_probs, token_size):
    batch = batch_of(SparseBatch)
    return conditional_expectation_by_energy(problem, batch, probs_for(batch, kind_of_probs), token_size)


@every_problem
@pytest.mark.parametrize("token_size", [1, 2, 3])
def test_oracle_minimises_the_mean_energy_of_all_states(problem, token_size):
    graph = random_graph(5, 0.5, seed=5)
    probs = torch.rand(5, 1, generator=seeded(1))
    batch = SparseBatch.from_graphs([graph])
    states = torch.tensor(list(itertools.product([0.0, 1.0], repeat=5)), dtype=torch.float64).T  # [5, 32]
    energies = problem.energy(batch, states)[0]

    def mean_energy(values):
        return float((torch.where(states == 1, values, 1 - values).prod(0) * energies).sum())

    values = probs.double()
    order = sorted(range(5), key=lambda node: -float(probs[node]))
    for first in range(0, 5, token_size):
        token = order[first : first + token_size]
        options = []
        for configuration in range(2 ** len(token)):
            option = values.clone()
            for position, node in enumerate(token):
                option[node] = configuration >> position & 1
            options.append(option)
        values = min(options, key=mean_energy)
    assert torch.equal(conditional_expectation_by_energy(problem, batch, probs, token_size), values.float())


@every_problem
@every_token_size
@pytest.mark.parametrize("kind_of_probs", KINDS_OF_PROBS)
def test_states_equal_those_found_by_full_energies(problem, batch_kind, token_size, kind_of_probs):
    batch = batch_of(batch_kind)
    states = conditional_expectation(problem, batch, probs_for(batch, kind_of_probs), token_size)
    assert torch.equal(torch.cat(batch.split(states)), states_by_energy(problem, kind_of_probs, token_size))


@every_problem
@pytest.mark.parametrize("kind", [SparseBatch, DenseBatch])
def test_a_problem_that_states_only_an_energy_is_decoded_too(problem, kind):
    graphs = [without_node_weights(graph) for graph in small_graphs()] if problem.name != "qubo" else small_graphs()
    batch = kind.from_graphs(graphs)
    probs = probs_for(batch, "mixed")
    states = conditional_expectation(with_energy_only(problem), batch, probs, token_size=2)
    assert torch.equal(states, conditional_expectation(problem, batch, probs, token_size=2))


@every_problem
def test_oracle_takes_both_kinds_of_batch(problem):
    batch = batch_of(DenseBatch)
    states = conditional_expectation_by_energy(problem, batch, probs_for(batch, "mixed"), token_size=3)
    assert torch.equal(torch.cat(batch.split(states)), states_by_energy(problem, "mixed", 3))
    assert not states[~batch.mask].any()


@every_problem
def test_each_graph_is_decoded_as_if_alone(problem, batch_kind):
    batch = batch_of(batch_kind)
    probs = probs_for(batch, "random")
    together = batch.split(conditional_expectation(problem, batch, probs, token_size=3))
    for graph, part, states in zip(small_graphs(), batch.split(probs), together, strict=True):
        assert torch.equal(conditional_expectation(problem, batch_kind.from_graphs([graph]), part, 3), states)


@every_problem
@pytest.mark.parametrize("implementation", ["numba", "torch"])
def test_padding_changes_nothing_and_becomes_zero(problem, implementation, monkeypatch):
    monkeypatch.setattr(ops, "decoder_override", implementation)
    tight = DenseBatch.from_graphs(small_graphs())
    wide = DenseBatch.from_graphs(small_graphs(), pad_to=22)
    parts = tight.split(probs_for(tight, "random"))
    narrow_states = conditional_expectation(problem, tight, collect(tight, parts), token_size=4)
    wide_states = conditional_expectation(problem, wide, collect(wide, parts), token_size=4)
    assert torch.equal(torch.cat(wide.split(wide_states)), torch.cat(tight.split(narrow_states)))
    assert not wide_states[~wide.mask].any()


@every_problem
@every_token_size
def test_energy_never_rises(problem, batch_kind, token_size):
    batch = batch_of(batch_kind)
    probs = probs_for(batch, "mixed", num_samples=5)
    states = conditional_expectation(problem, batch, probs, token_size)
    if batch_kind is DenseBatch:
        probs = probs.where(batch.mask[:, None], 0.0)
    assert (problem.energy(batch, states) <= problem.energy(batch, probs) + 1e-5).all()


def test_whole_graph_as_one_token_is_solved_exactly(batch_kind):
    graph = random_graph(MAX_TOKEN_SIZE, 0.4, seed=6)
    batch = batch_kind.from_graphs([graph])
    configurations = torch.arange(2**MAX_TOKEN_SIZE)
    states = (configurations >> torch.arange(MAX_TOKEN_SIZE)[:, None] & 1).double()
    for problem in all_problems():
        decoded = conditional_expectation(problem, batch, torch.rand(MAX_TOKEN_SIZE, 1), MAX_TOKEN_SIZE)
        best = problem.energy(batch, states).min()
        torch.testing.assert_close(problem.energy(batch, decoded.double())[0, 0], best)


@st.composite
def graphs_with_probs(draw):
    num_nodes = draw(st.integers(0, 11))
    pairs = list(itertools.combinations(range(num_nodes), 2))
    kept = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    edges = [pair for pair, keep in zip(pairs, kept, strict=True) if keep]
    value = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1, width=32))
    probs = draw(st.lists(value, min_size=num_nodes, max_size=num_nodes))
    if draw(st.booleans()):
        probs = probs[:1] * num_nodes
    # The smallest ties with 0 beside a larger weight: at TIE = 1e-9 itself, rounding would decide.
    weight = st.sampled_from([0.0, 1e-10, 1.0, 1.01, 3.5, 1000.0])
    weights = draw(st.none() | st.lists(weight, min_size=num_nodes, max_size=num_nodes))
    return Graph.from_edges(edges, num_nodes, node_weights=weights), torch.tensor(probs, dtype=torch.float32)[:, None]


@pytest.mark.parametrize("name", CONSTRAINED)
@pytest.mark.parametrize(("implementation", "kind"), DECODERS)
@settings(max_examples=40, deadline=None)
@given(case=graphs_with_probs(), token_size=st.integers(1, 6))
def test_constraints_always_hold(name, implementation, kind, case, token_size):
    graph, probs = case
    problem, batch = get_problem(name), kind.from_graphs([graph])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops, "decoder_override", implementation)
        states = conditional_expectation(problem, batch, probs, token_size)
    assert set(states.ravel().tolist()) <= {0.0, 1.0}
    assert torch.equal(states, conditional_expectation_by_energy(problem, batch, probs, token_size))
    if graph.num_nodes:
        assert not problem.violations(batch, states).any()


@pytest.mark.parametrize("name", ["mis", "mds"])
def test_number_of_threads_changes_nothing(name):
    graphs = [random_graph(60, 0.1, seed) for seed in range(5)]
    batch = SparseBatch.from_graphs(graphs)
    probs = torch.rand(batch.num_rows, 7, generator=seeded(2))
    num_threads = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(conditional_expectation(get_problem(name), batch, probs, token_size=3))
    finally:
        torch.set_num_threads(num_threads)
    assert all(torch.equal(result, results[0]) for result in results)


def test_chunks_of_graphs_give_the_states_of_the_whole_batch(monkeypatch):
    batch = batch_of(DenseBatch)
    monkeypatch.setattr(ops, "decoder_override", "torch")
    for problem in all_problems():
        whole = conditional_expectation(problem, batch, probs_for(batch, "random"), token_size=3)
        with monkeypatch.context() as patch:
            patch.setattr(ops.torch_decode, "BYTES_PER_CHUNK", 10_000)
            assert torch.equal(conditional_expectation(problem, batch, probs_for(batch, "random"), 3), whole)


@every_problem
def test_large_sparse_graph_is_decided_by_local_fields_in_seconds(problem):
    batch = SparseBatch.from_graphs([ba_graph(20_000, 4, np.random.default_rng(0))])
    probs = torch.rand(batch.num_rows, 2, generator=seeded(3))
    conditional_expectation(problem, batch, probs[:, :1])  # compiles
    start = time.process_time()
    states = conditional_expectation(problem, batch, probs)
    assert time.process_time() - start < 5
    assert not problem.violations(batch, states).any()
    order = probs[:, 0].argsort(descending=True, stable=True)
    for position in [*range(0, batch.num_rows, 997), *range(batch.num_rows - 5, batch.num_rows)]:
        values = probs[:, :1].double()
        values[order[:position]] = states[order[:position], :1].double()
        node = order[position]
        # A chosen hub stands in a product as a tiny number that is divided out again; well away from a tie.
        field = float(problem.local_field(batch, values)[node, 0])
        assert float(states[node, 0]) == (field < 0) or abs(field) < 1e-4


@pytest.mark.parametrize("margin", [0.95e-9, 1.05e-9])
def test_hub_of_many_updates_collects_no_rounding_error(batch_kind, margin):
    # Node 0 covers all leaves and is chosen first. The last leaf's field then is -margin, from the hub's product alone,
    # which has been updated as many times as there are leaves: a loss of 5e-11 decides otherwise.
    num_leaves, center, hub = 20_000 if batch_kind is SparseBatch else 200, 0, 1
    leaves = np.arange(2, num_leaves + 2)
    graph = Graph.from_edges([(end, leaf) for end in (center, hub) for leaf in leaves])
    batch, problem = batch_kind.from_graphs([graph]), get_problem("mds")
    probs = 0.1 + 0.9 * torch.rand(batch.num_rows, 1, generator=seeded(4), dtype=torch.float64)
    probs[: num_leaves // 2] = 1.0
    probs[-1] = 0.05
    probs[hub] = 1 - (1 + margin) / problem.penalty
    states = conditional_expectation(problem, batch, probs)
    assert states[:, 0].nonzero().ravel().tolist() == [center, num_leaves + 1 if margin > 1e-9 else hub]


@pytest.mark.parametrize("margin", [0.95e-9, 1.05e-9])
@pytest.mark.parametrize("decode", [conditional_expectation, conditional_expectation_by_energy])
def test_a_field_is_negative_from_the_width_of_a_tie(batch_kind, decode, margin):
    # The first node's field is -margin: -1 + penalty * p for mis, 1 - penalty * (1 - p) for mvc.
    batch = batch_kind.from_graphs([Graph.from_edges([(0, 1)])])
    for name, neighbor in (("mis", (1 - margin) / 1.01), ("mvc", 1 - (1 + margin) / 1.01)):
        probs = torch.tensor([[1.0], [neighbor]], dtype=torch.float64)
        states = decode(get_problem(name), batch, probs)
        assert states.ravel().tolist() == ([1, 0] if margin > 1e-9 else [0, 1])


def test_dense_adjacency_lists_the_neighbors_of_the_sparse_one():
    sparse = batch_of(SparseBatch)
    dense = batch_of(DenseBatch)
    csr = DenseAdjacency(dense.sizes, dense.weights).to_csr()
    for start, dense_start, size in zip(sparse.row_starts, csr.row_starts, sparse.sizes.tolist(), strict=True):
        for node in range(size):
            first, last = sparse.indptr[start + node : start + node + 2]
            dense_first, dense_last = csr.indptr[dense_start + node : dense_start + node + 2]
            assert torch.equal(sparse.indices[first:last] - start, csr.indices[dense_first:dense_last] - dense_start)
            assert torch.equal(sparse.weights[first:last], csr.weights[dense_first:dense_last])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_states_have_the_type_of_the_probabilities(batch_kind, dtype):
    batch = batch_of(batch_kind)
    probs = probs_for(batch, "random").to(dtype)
    before = probs.clone()
    states = conditional_expectation(get_problem("mis"), batch, probs)
    assert states.dtype == dtype
    assert states.shape == probs.shape
    assert torch.equal(probs.nan_to_num(), before.nan_to_num())


@every_problem
def test_nothing_to_decode_gives_nothing(problem, batch_kind):
    empty = batch_kind.from_graphs([Graph.from_edges([], num_nodes=0)])
    assert conditional_expectation(problem, empty, torch.empty(0, 3)).shape == (0, 3)
    assert (
        conditional_expectation(problem, batch_of(batch_kind), probs_for(batch_of(batch_kind), "random", 0)).numel()
        == 0
    )


@pytest.mark.parametrize("decode", [conditional_expectation, conditional_expectation_by_energy])
def test_unusable_input_is_refused_with_a_remedy(decode):
    batch = SparseBatch.from_graphs([Graph.from_edges([(0, 1)])])
    problem, probs = get_problem("mis"), torch.full((2, 1), 0.5)
    for token_size in (0, -1, 17):
        with pytest.raises(InputError, match="give 1 to 16"):
            decode(problem, batch, probs, token_size)
    for bad in (torch.nan, -0.1, 1.5, torch.inf):
        with pytest.raises(InputError, match=r"NaN or outside 0\.\.1"):
            decode(problem, batch, torch.tensor([[0.5], [bad]]))
    with pytest.raises(InputError, match=r"expected \[N, S\]"):
        decode(problem, batch, torch.full((3, 1), 0.5))


def test_missing_triton_is_named_with_a_remedy(monkeypatch):
    monkeypatch.setattr(ops, "decoder_override", "triton")
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "diffuco.ops.triton_decode", raising=False)
    monkeypatch.delattr(ops, "triton_decode", raising=False)
    batch = batch_of(DenseBatch)
    for name in ("mis", "mds"):
        with pytest.raises(InputError, match="pip install triton"):
            conditional_expectation(get_problem(name), batch, probs_for(batch, "random"))


def test_gpu_default_is_triton_where_it_works_and_torch_elsewhere(monkeypatch, caplog):
    gpu = torch.device("cuda")
    monkeypatch.setitem(sys.modules, "triton.runtime", None)
    ops.triton_works.cache_clear()
    with caplog.at_level(logging.DEBUG):
        assert ops.implementations(gpu)["decode dense"] == "torch"
    assert ops._made_for(gpu, ops.torch_decode, "triton_decode") is ops.torch_decode
    assert "Triton does not work" in caplog.text
    ops.triton_works.cache_clear()
    monkeypatch.setattr(ops, "triton_works", lambda: True)
    assert ops.implementations(gpu)["decode dense"] == "triton"
    assert ops.implementations(torch.device("cpu"))["decode dense"] == "numba"


@pytest.mark.gpu
@every_problem
@every_token_size
@pytest.mark.parametrize("kind", [SparseBatch, DenseBatch])
def test_gpu_gives_the_states_of_the_cpu(problem, kind, token_size):
    batch = batch_of(kind)
    probs = probs_for(batch, "mixed")
    expected = conditional_expectation(problem, batch, probs, token_size)
    states = conditional_expectation(problem, kind.from_graphs(small_graphs(), "cuda"), probs.cuda(), token_size)
    assert states.is_cuda
    assert torch.equal(states.cpu(), expected)
