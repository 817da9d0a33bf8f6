"""The engine for a CPU against the network it computes."""

import numpy as np
import pytest
import torch

from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.graphs.generate import ba_graph, random_qubo, rb_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.solver import Solver
from diffuco.model.engine import tiled
from diffuco.model.engine.acceleration import sampling_engine
from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.engine.tiled import TiledGnn
from diffuco.model.gnn import Gnn, GnnConfig
from diffuco.ops import numba_products

CPU = torch.device("cpu")
CLOSE = {"rtol": 1e-2, "atol": 1e-2}
"""As messages have 16 bits."""


def network_of(**settings):
    torch.manual_seed(0)
    network = Gnn(GnnConfig(num_steps=4, num_layers=3, **settings))
    with torch.no_grad():
        for parameter in network.parameters():  # norms that do something
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network


def graphs_of(kind):
    rng = np.random.default_rng(0)
    if kind == "qubo":
        return [random_qubo(40, 0.3, rng), random_qubo(70, 0.1, rng)]
    return [ba_graph(90, 4, rng), rb_graph(5, 4, 0.5, rng), Graph(3, np.empty((0, 2), dtype=np.int64))]


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(tiled, "MIN_ROWS", 0)


@pytest.fixture(params=["floats", "bytes"])
def numbers(request, monkeypatch):
    """What is multiplied."""
    if request.param == "bytes" and not numba_products.has_bytes(64):
        pytest.skip("bytes are multiplied by AVX-512 VNNI alone, and nothing uses them without it")
    monkeypatch.setattr(numba_products, "has_bytes", lambda width: request.param == "bytes")
    return request.param


@pytest.mark.parametrize("kind", [SparseBatch, DenseBatch])
@pytest.mark.parametrize("num_samples", [1, 3])
@pytest.mark.parametrize(
    ("graphs", "settings"),
    [
        ("plain", {"num_hidden": 64}),
        ("plain", {"num_hidden": 16, "num_random_features": 0}),
        ("plain", {"num_hidden": 32, "node_weighted": True}),
        ("qubo", {"num_hidden": 32, "weighted": True}),
        ("plain", {"num_hidden": 32, "weighted": True}),
        ("plain", {"num_hidden": 48}),
        ("plain", {"num_hidden": 20}),
    ],
)
def test_logits_are_those_of_the_network(always, numbers, kind, num_samples, graphs, settings):
    network = network_of(**settings)
    batch = kind.from_graphs(graphs_of(graphs))
    x = torch.randint(2, (batch.num_rows, num_samples)).float()
    features = torch.randn(batch.num_rows, num_samples, network.num_random_features)
    step = torch.arange(num_samples) % 4 + 1
    with torch.inference_mode():
        expected = network(batch, x, step, features)
        found = TiledGnn(network, FlatParameters(network))(batch, x, step, features)
    real = batch.mask if isinstance(batch, DenseBatch) else slice(None)
    assert expected[real].std() > 0.1
    if numbers == "floats":
        torch.testing.assert_close(found[real], expected[real], **CLOSE)
    assert (found - expected)[real].std() < 0.1 * expected[real].std()


def test_later_parameters_count(always):
    network = network_of(num_hidden=16)
    parameters = FlatParameters(network)
    engine = TiledGnn(network, parameters)
    batch = SparseBatch.from_graphs(graphs_of("plain"))
    given = (batch, torch.zeros(batch.num_rows, 2), torch.ones(2, dtype=torch.int64), torch.zeros(batch.num_rows, 2, 5))
    with torch.inference_mode():
        before = engine(*given)
        parameters.vector.data.mul_(0.9)
        assert not torch.allclose(engine(*given), before)
        torch.testing.assert_close(engine(*given), network(*given), **CLOSE)


def test_parameters_of_a_trained_network_are_packed_once_and_memory_is_used_again(always):
    network = network_of(num_hidden=16)
    engine = TiledGnn(network, FlatParameters(network), is_trained=True)
    for graphs in ("plain", "qubo"):
        batch = SparseBatch.from_graphs(graphs_of(graphs))
        for num_samples in (2, 2, 1):
            x = torch.randint(2, (batch.num_rows, num_samples)).float()
            features = torch.randn(batch.num_rows, num_samples, 5)
            given = (batch, x, torch.ones(num_samples, dtype=torch.int64), features)
            with torch.inference_mode():
                torch.testing.assert_close(engine(*given), network(*given), **CLOSE)


def test_small_batches_and_gradients_are_left_to_the_network():
    network = network_of(num_hidden=16)
    engine = TiledGnn(network, FlatParameters(network))
    batch = SparseBatch.from_graphs(graphs_of("plain"))
    given = (batch, torch.zeros(batch.num_rows, 2), torch.ones(2, dtype=torch.int64), torch.zeros(batch.num_rows, 2, 5))
    with torch.inference_mode():
        assert torch.equal(engine(*given), network(*given))
    assert engine(*given).requires_grad


def test_narrow_networks_are_tiled_on_a_cpu():
    assert sampling_engine(network_of(num_hidden=64), CPU) == "tiled"
    assert sampling_engine(network_of(num_hidden=128), CPU) == "reference"


def test_samples_of_a_large_graph_are_as_good(monkeypatch):
    graph = ba_graph(4500, 4, np.random.default_rng(1))
    options = {"samples": 4, "step_factor": 1, "refine": 0}
    (found,) = Solver("max-cut", "max-cut-ba-small", device="cpu").solve([graph], **options)
    monkeypatch.setattr(tiled, "MIN_ROWS", 10**9)
    (expected,) = Solver("max-cut", "max-cut-ba-small", device="cpu").solve([graph], **options)
    assert np.mean(found.objectives) == pytest.approx(np.mean(expected.objectives), rel=1e-3)


def test_rows_with_gaps_between_them_are_refused():
    import numba

    from diffuco.ops.numba_vectors import load, row_type, store

    @numba.njit
    def copy_first(source, target):
        store(load(source, 0), target, 0)

    rows = np.arange(64, dtype=np.float32).reshape(4, 16).view(row_type(16))[:, 0]
    target = np.zeros_like(rows)
    copy_first(rows[1:], target)
    assert target["row"][0].tolist() == rows["row"][1].tolist()
    with pytest.raises(numba.TypingError, match="gaps between its rows"):
        copy_first(rows[::2], target)


@pytest.mark.parametrize("width", [16, 48, 64])
def test_products_are_those_of_the_rounded_numbers(numbers, width):
    import numba

    from diffuco.ops.numba_products import BLOCK, add_product, factor_type, keep, packed
    from diffuco.ops.numba_vectors import load, row_type

    @numba.njit
    def multiply(given, factors, matrix, sums):
        for row in range(len(given)):
            keep(load(given, row), factors, row)
        add_product(sums, factors, matrix, 0)

    rng = np.random.default_rng(width)
    rows = rng.normal(size=(BLOCK, width)).astype(np.float32)
    rows[1], rows[2] = 0.0, 1e4 * rows[2]
    matrix = rng.normal(size=(width, width)).astype(np.float32)
    matrix[:, 3], matrix[:, 4] = 0.0, 1e-3 * matrix[:, 4]
    before = rng.normal(size=(BLOCK, width)).astype(np.float32)
    sums = before.copy()
    factors = np.zeros(BLOCK, dtype=factor_type(width))
    multiply(rows.view(row_type(width))[:, 0], factors, packed(matrix), sums.view(row_type(width))[:, 0])
    if numbers == "bytes":
        assert factors["row"].dtype == np.uint8
        rows, matrix = rounded(rows, 1), rounded(matrix, 0)
    np.testing.assert_allclose(sums, before + rows @ matrix, rtol=2e-5, atol=2e-5)


def rounded(numbers, axis):
    """Numbers as multiples of a part in 127 of the largest in their row or column."""
    scale = np.maximum(np.abs(numbers).max(axis, keepdims=True), 1e-30) / np.float32(127)
    return np.rint(numbers / scale) * scale
