"""The Triton decoder against its reference, state by state: compiled where there is a GPU, interpreted elsewhere."""

import logging
import math

import numpy as np
import pytest
import torch

from diffuco import ops
from diffuco.graphs.batch import DenseBatch
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import conditional_expectation
from diffuco.ops import torch_decode
from diffuco.ops.adjacency import DenseAdjacency
from diffuco.problems import get_problem
from kernels import DEVICE, MARKS, compile_in_a_process, importing_kernels
from test_decoding import KINDS_OF_PROBS, collect, every_problem, probs_for, random_graph, seeded, small_graphs

with importing_kernels():
    from diffuco.ops import triton_decode

pytestmark = [*MARKS, pytest.mark.usefixtures("_poisoned_memory")]


def states_of(decoder, problem, batch, probs, token_size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops, "decoder_override", decoder)
        return conditional_expectation(problem, batch, probs, token_size)


def assert_same_states(problem, batch, probs, token_size):
    states = states_of("triton", problem, batch, probs, token_size)
    assert torch.equal(states, states_of("torch", problem, batch, probs, token_size))
    assert ((states == 0) | (states == 1)).all()
    assert not states[~batch.mask].any()


def dense(graphs, **options):
    return DenseBatch.from_graphs(graphs, device=DEVICE, **options)


@every_problem
@pytest.mark.parametrize("token_size", [1, 3, 5])
def test_states_are_those_of_the_reference(problem, token_size):
    # Empty, one node, isolated nodes, weights of both signs, sizes 0 to 17 in one batch; NaN in the padding.
    batch = dense(small_graphs())
    assert_same_states(problem, batch, probs_for(batch, "random", num_samples=2).to(DEVICE), token_size)


@pytest.mark.parametrize("name", ["max-clique", "mds", "qubo"])
@pytest.mark.parametrize("kind_of_probs", KINDS_OF_PROBS[1:])
def test_ties_are_decided_as_in_the_reference(name, kind_of_probs):
    batch = dense(small_graphs()[1:6])
    assert_same_states(get_problem(name), batch, probs_for(batch, kind_of_probs, num_samples=1).to(DEVICE), 3)


@every_problem
def test_largest_token(problem):
    batch = dense([random_graph(11, 0.4, seed=7), random_graph(3, 0.6, seed=8)])
    probs = probs_for(batch, "random", num_samples=1).to(DEVICE)
    assert_same_states(problem, batch, probs, triton_decode.MAX_TOKEN_SIZE)


@pytest.mark.parametrize("pad_to", [19, 24, 26])
@pytest.mark.parametrize("token_size", [1, 2])
def test_padding_is_not_read_beyond_the_vector_with_the_last_node(pad_to, token_size):
    batch = dense([random_graph(7, 0.4, seed=9), random_graph(13, 0.3, seed=10)], pad_to=pad_to)
    probs = probs_for(batch, "random", num_samples=2).to(DEVICE)
    clean = DenseAdjacency(batch.sizes, batch.weights)
    vector = math.gcd(pad_to, triton_decode.WIDEST_READ)
    is_row = batch.mask.view(2, -1, 1)
    may_be_read = torch.arange(pad_to, device=DEVICE) < (-(-batch.sizes // vector) * vector)[:, None, None]
    poisoned = clean._replace(matrix=clean.matrix.where(is_row & may_be_read, torch.nan))
    linear = -batch.mask.double()
    poisoned_linear = linear.where(batch.mask, torch.nan)
    quadratic = torch_decode.decode_quadratic(probs, clean, linear, 1.5, 0.25, token_size)
    cover = torch_decode.decode_cover(probs, clean, 1.01, token_size)
    assert quadratic.any()
    assert cover.any()
    assert torch.equal(
        triton_decode.decode_quadratic(probs, poisoned, poisoned_linear, 1.5, 0.25, token_size), quadratic
    )
    assert torch.equal(triton_decode.decode_cover(probs, poisoned, 1.01, token_size), cover)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_adjacency_of_any_type(dtype):
    batch = dense([random_graph(9, 0.4, seed=11, weighted=False)])
    probs = probs_for(batch, "random", num_samples=1).to(DEVICE)
    adjacency = DenseAdjacency(batch.sizes, batch.adjacency.to(dtype))
    linear = -torch.ones(batch.num_rows, device=DEVICE)
    for token_size in (1, 2):
        assert torch.equal(
            triton_decode.decode_quadratic(probs, adjacency, linear, 1.01, 0.0, token_size),
            torch_decode.decode_quadratic(probs, adjacency, linear, 1.01, 0.0, token_size),
        )
        assert torch.equal(
            triton_decode.decode_cover(probs, adjacency, 1.01, token_size),
            torch_decode.decode_cover(probs, adjacency, 1.01, token_size),
        )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_probabilities_of_any_type(dtype):
    batch = dense([random_graph(9, 0.4, seed=12)])
    for name in ("mis", "mds"):
        assert_same_states(get_problem(name), batch, probs_for(batch, "mixed", 2).to(DEVICE, dtype), 2)


@pytest.mark.parametrize("margin", [0.95e-9, 1.05e-9])
def test_scalars_keep_their_float64_digits(margin):
    # The first node's field is -margin: -1 + penalty * p for mis, 1 - penalty * (1 - p) for mvc.
    batch = dense([Graph.from_edges([(0, 1)])])
    for name, neighbor in (("mis", (1 - margin) / 1.01), ("mvc", 1 - (1 + margin) / 1.01)):
        probs = torch.tensor([[1.0], [neighbor]], dtype=torch.float64, device=DEVICE)
        states = states_of("triton", get_problem(name), batch, probs, 1)
        assert states.ravel().tolist() == ([1, 0] if margin > 1e-9 else [0, 1])


@pytest.mark.parametrize("margin", [0.95e-9, 1.05e-9])
def test_hub_of_many_updates_collects_no_rounding_error(margin):
    # As for the other decoders: the last leaf's field is -margin, from the hub's product after all its updates.
    num_leaves, center, hub = 120, 0, 1
    batch = dense([Graph.from_edges([(end, leaf) for end in (center, hub) for leaf in range(2, num_leaves + 2)])])
    problem = get_problem("mds")
    probs = 0.1 + 0.9 * torch.rand(num_leaves + 2, 1, generator=seeded(4), dtype=torch.float64)
    probs[: num_leaves // 2] = 1.0
    probs[-1] = 0.05
    probs[hub] = 1 - (1 + margin) / problem.penalty
    states = states_of("triton", problem, batch, probs.to(DEVICE), 1)
    assert states[:, 0].nonzero().ravel().tolist() == [center, num_leaves + 1 if margin > 1e-9 else hub]


@every_problem
def test_nothing_to_decode_gives_nothing(problem):
    batch = dense(small_graphs()[:3])
    assert states_of("triton", problem, batch, torch.empty(batch.num_rows, 0, device=DEVICE), 1).numel() == 0
    adjacency = DenseAdjacency(batch.sizes, batch.adjacency)
    nothing = torch.empty(batch.num_rows, 0, device=DEVICE)
    assert triton_decode.decode_cover(nothing, adjacency, 1.01, 2).shape == nothing.shape


def test_what_the_kernels_cannot_take_goes_to_the_reference(caplog, monkeypatch):
    batch = dense([random_graph(12, 0.3, seed=13)])
    probs = probs_for(batch, "random", num_samples=1).to(DEVICE)
    with caplog.at_level(logging.DEBUG):
        for name in ("mis", "mds"):
            assert_same_states(get_problem(name), batch, probs, triton_decode.MAX_TOKEN_SIZE + 1)
    assert len(caplog.records) == 2
    monkeypatch.setattr(triton_decode, "MAX_PADDED", 8)
    with caplog.at_level(logging.DEBUG):
        assert_same_states(get_problem("mis"), batch, probs, 1)
    assert len(caplog.records) == 3


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from diffuco.ops import triton_decode

types = {"order": "*i64", "sizes": "*i64", "log_free": "*i64", "matrix": "*bf16", "probs": "*fp32"}
types |= {"num_samples": "i32", "num_reads": "i32", "token_size": "constexpr", "block": "constexpr"}
types |= {"vector": "constexpr", "has_costs": "constexpr"}
quadratic, cover = triton_decode.quadratic_kernel, triton_decode.cover_kernel
for kernel, flags in ((quadratic, {}), (cover, {"has_costs": False}), (cover, {"has_costs": True})):
    for token_size, block in ((1, 512), (3, 1024)):
        signature = {name: types.get(name, "*fp64") for name in kernel.arg_names}
        aligned = {
            (position,): [["tt.divisibility", 16]] for position, type in enumerate(signature.values()) if type[0] == "*"
        }
        source = ASTSource(kernel, signature, {"token_size": token_size, "block": block, "vector": 8, **flags}, aligned)
        options = {"num_warps": block // 512, "enable_fp_fusion": True}
        ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
        assert "ld.global.v4.b32" in ptx, "rows are not read 16 bytes at a time"
"""


def test_kernels_compile_for_hopper(request, tmp_path):
    compile_in_a_process(COMPILE, request.config, tmp_path / "output.txt")


def larger_graphs():
    rng = np.random.default_rng(0)
    weighted = [random_graph(size, 0.1, seed=size) for size in (1, 31, 33, 255, 256, 257, 511, 600)]
    return [*weighted, *(ba_graph(size, 4, rng) for size in (200, 300, 1100))]


@pytest.mark.gpu
@every_problem
@pytest.mark.parametrize("token_size", range(1, triton_decode.MAX_TOKEN_SIZE + 1))
def test_gpu_gives_the_states_of_the_reference_on_larger_batches(problem, token_size):
    graphs = larger_graphs()
    # One, one, four and four warps; rows read one, one, two and eight entries at a time.
    for part, pad_to in ((graphs[:3], None), (graphs[:6], None), (graphs, 1102), (graphs, 1104)):
        batch = dense(part, pad_to=pad_to)
        assert_same_states(problem, batch, probs_for(batch, "random", num_samples=8).to(DEVICE), token_size)


@pytest.mark.gpu
def test_gpu_decodes_by_triton_unless_told_otherwise():
    assert ops.implementations(torch.device(DEVICE))["decode dense"] == "triton"


@pytest.mark.gpu
@pytest.mark.parametrize("token_size", [1, 8])
def test_gpu_decodes_without_waiting_for_the_host(token_size):
    batch = dense([random_graph(50, 0.2, seed=14, weighted=False)])
    probs = collect(batch, [torch.rand(50, 4, generator=seeded(0))]).to(DEVICE)
    adjacency = DenseAdjacency(batch.sizes, batch.adjacency)
    linear = -torch.ones(batch.num_rows, device=DEVICE)

    def decode():
        triton_decode.decode_quadratic(probs, adjacency, linear, 1.01, 0.0, token_size)
        triton_decode.decode_cover(probs, adjacency, 1.01, token_size)

    decode()  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        decode()
    finally:
        torch.cuda.set_sync_debug_mode("default")
