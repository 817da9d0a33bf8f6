"""The fused engine against the network it computes: compiled where there is a GPU, interpreted elsewhere."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from diffuco.diffusion.loss import later_costs_advantage, step_cost, surrogate
from diffuco.diffusion.noise import make_noise
from diffuco.diffusion.randomness import RowRandom
from diffuco.diffusion.reverse import Steps, predict, reverse_process
from diffuco.foundation.distributed import Group
from diffuco.graphs.batch import DenseBatch, SparseBatch, neighbor_lists
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference import sampler as sampling
from diffuco.inference.sampler import Sampler
from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.gnn import Gnn, GnnConfig
from diffuco.ops import reference
from diffuco.ops.capture import CapturedCalls
from diffuco.pretrained import load_model
from diffuco.problems import get_problem
from diffuco.training.data import TrainingGraphs
from diffuco.training.parts import choose_parts
from diffuco.training.recipes import get_recipe
from diffuco.training.step import TrainStep
from kernels import DEVICE, INTERPRETED, MARKS, compile_in_a_process, importing_kernels

with importing_kernels():
    from diffuco.model.engine.fused import FusedGnn
    from diffuco.model.engine.replayed import ReplayedGnn
    from diffuco.ops import triton_gnn, triton_neighbor_sum

pytestmark = [*MARKS, pytest.mark.usefixtures("_poisoned_memory")]


@pytest.fixture(autouse=True)
def _tiny_tiles(monkeypatch):
    """Tiles of few rows, and fewer programs than tiles."""
    if INTERPRETED:
        launches = {"ENCODE": 3, "FORWARD": 3, "SUMS": 7, "BACKWARD": 2, "ENCODE_BACKWARD": 2}
        for name, programs in launches.items():
            monkeypatch.setattr(triton_gnn, name, triton_gnn.Launch(rows=16, num_warps=4, num_programs=programs))
        monkeypatch.setattr(triton_gnn, "NEIGHBOR_COLUMNS", 32)
        monkeypatch.setattr(triton_gnn, "NORM_ROWS", 16)


def graphs(weighted=False):
    """Sizes below, at and above a tile, a node without neighbours, a graph without edges."""
    rng = np.random.default_rng(0)
    trees = [ba_graph(size, 2, rng) for size in ((5, 19) if weighted else (16, 19))]
    bare = [Graph.from_edges([(0, 1)], num_nodes=3), Graph.from_edges(np.empty((0, 2), np.int64), num_nodes=2)]
    if not weighted:
        return [*trees, *bare]
    return [
        Graph.from_edges(
            graph.edges,
            num_nodes=graph.num_nodes,
            edge_weights=50 * rng.normal(size=graph.num_edges),
            node_weights=50 * rng.normal(size=graph.num_nodes),
        )
        for graph in trees
    ]


def batch_of(kind, weighted):
    chosen = graphs(weighted)
    if kind == "sparse":
        return SparseBatch.from_graphs(chosen, DEVICE)
    batch = DenseBatch.from_graphs(chosen, DEVICE, pad_to=21)
    batch.lists = batch.wide_lists = neighbor_lists(chosen, 21, DEVICE) if kind == "lists" else None
    return batch


def network(**settings):
    torch.manual_seed(0)
    model = Gnn(GnnConfig(**{"num_steps": 3, "num_layers": 2, "num_hidden": 16, "num_random_features": 2} | settings))
    for parameter in model.parameters():  # norms start as 1 and 0, which hides mistakes
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model.to(DEVICE)


def logits_and_gradients(model, batch, dtype, num_samples=2):
    """Of the reference and of the fused network, for one random combination of the logits."""
    torch.manual_seed(1)
    parameters = FlatParameters(model)
    x = (torch.rand(batch.num_rows, num_samples, device=DEVICE) < 0.5).float()
    step = torch.randint(1, model.config.num_steps + 1, (num_samples,), device=DEVICE)
    features = torch.randn(batch.num_rows, num_samples, model.num_random_features, device=DEVICE)
    direction = torch.randn(batch.num_rows, num_samples, device=DEVICE)
    for denoiser in (model, FusedGnn(model, parameters, dtype=dtype, calls_at_once=3)):
        parameters.gradient.zero_()
        # Two calls, differentiated together, and room for a third.
        calls = [
            denoiser(batch, x, step, features),
            denoiser(batch, 1 - x, 1 + step % model.config.num_steps, features),
        ]
        sum(batch.graph_sum(logits * direction).sum() for logits in calls).backward()
        yield torch.cat([torch.cat(batch.split(logits.detach())) for logits in calls]), parameters.gradient.clone()


def relative_error(got, expected):
    return ((got - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("dense", {}),
        ("lists", {"num_random_features": 0, "num_layers": 1}),
        ("sparse", {"num_steps": 15}),
        ("dense", {"weighted": True}),
        ("lists", {"weighted": True, "num_random_features": 0}),
        ("dense", {"node_weighted": True}),
        ("sparse", {"node_weighted": True, "num_layers": 1}),
    ],
)
def test_logits_and_gradients_are_those_of_the_network(kind, settings):
    model = network(**settings)
    batch = batch_of(kind, model.config.weighted or model.config.node_weighted)
    expected, got = logits_and_gradients(model, batch, torch.float32)
    assert relative_error(got[0], expected[0]) < 1e-4
    assert relative_error(got[1], expected[1]) < 1e-4


def test_float16_stays_close():
    expected, got = logits_and_gradients(network(), batch_of("dense", weighted=False), torch.float16)
    assert relative_error(got[0], expected[0]) < 1e-2
    assert relative_error(got[1], expected[1]) < 0.1  # a few nodes: one rectifier that flips counts


def test_sampling_without_gradients_gives_the_same_logits():
    model, batch = network(num_layers=1), batch_of("lists", weighted=False)
    parameters = FlatParameters(model)
    fused = FusedGnn(model, parameters, dtype=torch.float32)
    x, step = torch.ones(batch.num_rows, 1, device=DEVICE), torch.tensor([2], device=DEVICE)
    features = torch.zeros(batch.num_rows, 1, 2, device=DEVICE)
    with torch.no_grad():
        quiet = fused(batch, x, step, features)
    assert torch.equal(quiet, fused(batch, x, step, features))
    assert not torch.cat(batch.split(quiet)).isnan().any()
    assert not quiet.view(batch.num_graphs, -1)[-1, 2:].any()  # padding


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_sparse_sum_is_the_reference_sum(weighted, scaled, monkeypatch):
    batch = SparseBatch.from_graphs(graphs(weighted=True), DEVICE)
    lists = batch.wide_lists if weighted else batch.wide_lists._replace(weights=None)
    values = torch.randn(batch.num_rows, 3, 16, device=DEVICE)
    scale = torch.rand(batch.num_rows, device=DEVICE) if scaled else None
    expected = reference.csr_neighbor_sum(values.flatten(1), batch.indptr, batch.indices, lists.weights)
    expected = expected.view(values.shape) * (1 if scale is None else scale[:, None, None])
    got = torch.empty_like(values)
    triton_gnn.neighbor_sum(lists, values, got, scale)
    assert torch.allclose(got, expected, atol=1e-4)
    monkeypatch.setattr(triton_neighbor_sum, "HUB_DEGREE", 5)
    rows = triton_neighbor_sum.OrderedRows.of(lists)
    assert 0 < rows.num_hubs < batch.num_rows
    assert batch.degrees.max() > 8
    for elements, at_once in ((1024, 64), (256, 8)):  # several rows of a tile; several tiles of a hub
        monkeypatch.setattr(triton_neighbor_sum, "NARROW", triton_neighbor_sum.Shape(elements, num_warps=2))
        monkeypatch.setattr(triton_neighbor_sum, "HUB_NEIGHBORS_AT_ONCE", at_once)
        ordered = torch.full_like(values, torch.nan)
        triton_neighbor_sum.ordered_neighbor_sum(rows, lists.weights, values, ordered, scale)
        assert torch.allclose(ordered, expected, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_with_lists_sums_and_differentiates_as_with_matrices(weighted):
    with_lists, with_matrices = batch_of("lists", weighted=True), batch_of("dense", weighted=True)
    values = torch.randn(with_lists.num_rows, 3, device=DEVICE, requires_grad=True)
    factors = torch.randn(with_lists.num_rows, 3, device=DEVICE)
    outcomes = []
    for batch in (with_lists, with_matrices):
        summed = batch.neighbor_sum(values, weighted=weighted)
        outcomes.append((summed, *torch.autograd.grad((summed * factors).sum(), values)))
    for got, expected in zip(*outcomes, strict=True):
        assert torch.allclose(got, expected, atol=1e-4)


def test_activations_are_freed_by_the_backward_pass():
    model, batch = network(num_layers=1, num_random_features=0), batch_of("dense", weighted=False)
    fused = FusedGnn(model, FlatParameters(model), dtype=torch.float32)
    x, step = torch.ones(batch.num_rows, 1, device=DEVICE), torch.tensor([2], device=DEVICE)
    loss = fused(batch, x, step, torch.zeros(batch.num_rows, 1, 0, device=DEVICE)).sum()
    tape = weakref.ref(fused.tape)
    loss.backward()
    assert tape() is None


def test_calls_differentiated_apart_are_refused():
    model, batch = network(num_layers=1, num_random_features=0), batch_of("lists", weighted=False)
    fused = FusedGnn(model, FlatParameters(model), dtype=torch.float32, calls_at_once=2)
    x, step = torch.ones(batch.num_rows, 1, device=DEVICE), torch.tensor([2], device=DEVICE)
    features = torch.zeros(batch.num_rows, 1, 0, device=DEVICE)
    first, _ = fused(batch, x, step, features), fused(batch, x, step, features)
    first.sum().backward()
    with pytest.raises(RuntimeError, match="differentiate them together"):
        fused(batch, x, step, features)


def test_gradient_that_overflows_is_dropped():
    model, batch = network(num_layers=1), batch_of("dense", weighted=False)
    parameters = FlatParameters(model)
    logits = FusedGnn(model, parameters, dtype=torch.float32)(
        batch,
        torch.ones(batch.num_rows, 1, device=DEVICE),
        torch.tensor([1], device=DEVICE),
        torch.zeros(batch.num_rows, 1, 2, device=DEVICE),
    )
    batch.graph_sum(logits * torch.inf).sum().backward()
    assert not parameters.gradient.any()


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from diffuco.ops import triton_gnn_backward, triton_gnn_forward, triton_neighbor_sum

half = {"h", "h_next", "summed", "messages", "d_h", "d_messages", "d_sum", "d_first", "d_normal", "d_values"}
half |= {"first_kept"}
whole = {"starts", "sizes", "extents", "step", "graph_ids", "pointers", "order", "indptr"}
constants = {"num_inputs": 14, "R": 5, "WEIGHTED": False, "K": 16, "F": 64, "ROWS": 64, "HAS_NEXT": True, "KEEP": True}
constants |= {"has_weights": True, "has_scale": True, "tile_rows": 8, "tile_neighbors": 4, "tile_columns": 64}
constants |= {"hub_neighbors": 256, "hub_columns": 16}
constants |= {"HAS_WEIGHTS": True, "HAS_SCALE": True, "NEIGHBORS": 8, "COLUMNS": 512}
kernels = {
    name: kernel
    for module in (triton_gnn_forward, triton_gnn_backward, triton_neighbor_sum)
    for name, kernel in vars(module).items()
    if name.endswith("_kernel")
}
assert len(kernels) == 11
for name, kernel in kernels.items():
    signature = {}
    for argument in kernel.arg_names:
        pointer = "*fp16" if argument in half else "*i64" if argument in whole else "*fp32"
        pointer = "*i32" if argument == "neighbors" else pointer
        signature[argument] = "i32" if argument.startswith("num_") else pointer
        if argument in constants:
            signature[argument] = "constexpr"
    given = {name: value for name, value in constants.items() if name in kernel.arg_names}
    compiled = triton.compile(ASTSource(kernel, signature, given), target=GPUTarget("cuda", 90, 32))
    assert compiled.metadata.shared < 227 * 2**10, name
"""


def test_kernels_compile_for_hopper(request, tmp_path):
    compile_in_a_process(COMPILE, request.config, tmp_path / "output.txt")


def test_calls_elsewhere_than_on_a_gpu_run_as_written():
    calls = CapturedCalls(
        lambda key, value: key * value + torch.rand(1, generator=calls.generator), torch.device("cpu")
    )
    results = [calls(2, torch.tensor([5.0]), seed=seed).item() for seed in (0, 0, 1)]
    assert results[0] == results[1] != results[2]
    assert all(10 <= result < 11 for result in results)


REAL = ["mis-rb-small", "mds-ba-small", "max-cut-ba-small", "qubo-random"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", REAL)
def test_float16_on_real_batches(name):
    checkpoint = load_model(name, torch.device(DEVICE))
    model, config = checkpoint.model.to(DEVICE), checkpoint.card["training"]
    problem, noise = get_problem(checkpoint.problem), make_noise(config["noise"], config["num_steps"])
    batch = DenseBatch.from_graphs(get_dataset(config["dataset"]).graphs("train", 30), DEVICE)
    random = RowRandom(torch.Generator(DEVICE).manual_seed(0))
    num_steps, num_samples, temperature = config["num_steps"], 8, config["start_temperature"]
    parameters = FlatParameters(model)
    with torch.no_grad():
        path = list(reverse_process(model, batch, range(num_steps, 0, -1), num_samples, random))
        cost = step_cost(problem, noise, batch, Steps.join(path), temperature).total
        advantages = later_costs_advantage(cost.unflatten(1, (num_steps, num_samples)).transpose(0, 1))
    results = []
    for denoiser in (model, FusedGnn(model, parameters, calls_at_once=num_steps)):
        parameters.gradient.zero_()
        again = (predict(denoiser, batch, taken.x, taken.step, taken.features) for taken in path)
        steps = Steps.join([taken._replace(logits=logits) for taken, logits in zip(path, again, strict=True)])
        cost = step_cost(problem, noise, batch, steps, temperature).total
        surrogate(batch, steps, cost, advantages).sum().backward()
        results.append((steps.logits.detach()[batch.mask], parameters.gradient.clone()))
    expected, got = results
    assert relative_error(got[0], expected[0]) < 1e-2
    # 2 to 5 %, most of it from rectifiers that flip: rounding nothing but the weights to float16 does as much.
    assert relative_error(got[1], expected[1]) < 6e-2


@pytest.mark.gpu
def test_recorded_samples_are_those_that_ran_as_written(monkeypatch):
    model = network()
    fused = FusedGnn(model, FlatParameters(model))
    batch = DenseBatch.from_graphs(graphs(), DEVICE)
    recorded, written = Sampler(fused, 3, torch.device(DEVICE)), Sampler(fused, 3, torch.device(DEVICE))
    for seed in (0, 1, 0):
        draws = [recorded.draw(batch, 4, 2, seed=seed)]
        with monkeypatch.context() as patch:
            patch.setattr(sampling, "CAPTURED_ROWS", 0)
            draws += [written.draw(batch, 4, 2, seed=seed)]
        assert torch.equal(draws[0].states, draws[1].states)
        assert torch.equal(draws[0].logits[batch.mask], draws[1].logits[batch.mask])
    assert recorded.calls.recordings
    assert not written.calls.recordings


@pytest.mark.gpu
def test_replayed_calls_on_neighbor_lists_are_those_that_ran_as_written():
    model = network()
    fused = FusedGnn(model, FlatParameters(model), is_trained=True)
    replayed, written = (Sampler(each, 3, torch.device(DEVICE)) for each in (ReplayedGnn(fused), fused))
    for some in (graphs(), graphs()[:1]):
        batch = SparseBatch.from_graphs(some, DEVICE)
        for num_samples, seed in ((4, 0), (2, 1), (4, 2), (2, 1)):
            draws = [sampler.draw(batch, num_samples, 2, seed=seed) for sampler in (replayed, written)]
            assert torch.equal(draws[0].states, draws[1].states)
            assert torch.equal(draws[0].logits, draws[1].logits)
        assert set(replayed.denoiser._calls[batch].recordings) == {2, 4}
        del batch
        gc.collect()
    assert not len(replayed.denoiser._calls)


@pytest.mark.gpu
def test_recorded_training_steps_are_those_that_ran_as_written():
    config = replace(get_recipe("mis-tiny"), num_train_graphs=96)
    group = Group(torch.device(DEVICE))
    data = TrainingGraphs(get_dataset("rb-tiny").graphs("train", 96), config.graphs_per_batch, 0, group)
    vectors = []
    for capture in (True, False):
        take_step = TrainStep(choose_parts(config), data, capture=capture)
        outcomes = [take_step(step, 0.2, 0.001).numbers["energy"].item() for step in range(12)]
        assert len(take_step.calls.recordings) == (len(data.ceilings) if capture else 0)
        assert all(np.isfinite(outcomes))
        vectors.append(take_step.parameters.vector.detach().clone())
    assert torch.equal(*vectors)


@pytest.mark.gpu
def test_recorded_calls_repeat_what_ran_as_written():
    calls = CapturedCalls(
        lambda key, value: value * torch.rand(1000, generator=calls.generator, device=DEVICE), torch.device(DEVICE)
    )
    values = [torch.full((), float(index)) for index in range(1, 5)]
    results = [calls("key", value, seed=index).clone() for index, value in enumerate(values)]
    again = CapturedCalls(calls.function, torch.device(DEVICE))
    for index, value in enumerate(values):
        calls.generator.manual_seed(index)
        assert torch.equal(results[index], again.function("key", value.to(DEVICE)))
    assert len(calls.recordings) == 1
