"""The Triton annealer against its reference, state by state: compiled where there is a GPU, interpreted elsewhere."""

import logging
import math

import numpy as np
import pytest
import torch

import diffuco
from diffuco import ops
from diffuco.graphs.batch import DenseBatch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.generate import ba_graph
from diffuco.inference.refinement import Schedule
from diffuco.inference.solver import Solver
from diffuco.methods import auto as automatic
from diffuco.ops import torch_anneal
from diffuco.ops.adjacency import DenseAdjacency
from diffuco.pretrained.choice import choose_model
from diffuco.problems import MinimumDominatingSet, get_problem
from kernels import DEVICE, MARKS, compile_in_a_process, importing_kernels
from test_decoding import every_problem, random_graph, small_graphs
from test_refinement import annealed_by, states_for

with importing_kernels():
    from diffuco.ops import triton_anneal, triton_decode

pytestmark = [*MARKS, pytest.mark.usefixtures("_poisoned_memory")]


def dense(graphs, **options):
    return DenseBatch.from_graphs(graphs, device=DEVICE, **options)


def assert_same_states(problem, batch, states, schedule):
    annealed = annealed_by("triton", problem, batch, states, schedule, seed=3)
    assert torch.equal(annealed, annealed_by("torch", problem, batch, states, schedule, seed=3))
    assert annealed.dtype == states.dtype


@every_problem
@pytest.mark.parametrize("schedule", [Schedule(3, 0.2), Schedule(1, 3.0)], ids=str)
def test_states_are_those_of_the_reference(problem, schedule):
    # Empty, one node, isolated nodes, weights of both signs, sizes 0 to 17 in one batch; NaN in the padding.
    batch = dense(small_graphs())
    assert_same_states(problem, batch, states_for(batch, 1), schedule)


@pytest.mark.parametrize("name", ["max-clique", "mds", "qubo"])
@pytest.mark.parametrize("pad_to", [16, 26])
def test_padding_is_not_read_beyond_the_vector_with_the_last_node(name, pad_to):
    batch = dense([random_graph(7, 0.4, seed=9), random_graph(13, 0.3, seed=10)], pad_to=pad_to)
    states = states_for(batch, 2)
    clean = DenseAdjacency(batch.sizes, batch.weights)
    vector = math.gcd(pad_to, triton_decode.WIDEST_READ)
    is_row = batch.mask.view(2, -1, 1)
    may_be_read = torch.arange(pad_to, device=DEVICE) < (-(-batch.sizes // vector) * vector)[:, None, None]
    poisoned = clean._replace(matrix=clean.matrix.where(is_row & may_be_read, torch.nan))
    schedule = torch.tensor([[[0.5, 0.9], [0.4, 0.1]], [[0.2, 0.3], [0.1, 0.4]]], dtype=torch.float64, device=DEVICE)
    if name == "mds":
        expected = torch_anneal.anneal_cover(states, clean, 1.01, schedule, 2)
        annealed = triton_anneal.anneal_cover(states, poisoned, 1.01, schedule, 2)
    else:
        scalars = (-1.01, 1.01) if name == "max-clique" else (1.5, 0.0)
        linear = -batch.mask.double()
        expected = torch_anneal.anneal_quadratic(states, clean, linear, *scalars, schedule, 2)
        poisoned_linear = linear.where(batch.mask, torch.nan)
        annealed = triton_anneal.anneal_quadratic(states, poisoned, poisoned_linear, *scalars, schedule, 2)
    assert torch.equal(annealed, expected)
    assert expected.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_adjacency_and_states_of_any_type(dtype):
    batch = dense([random_graph(7, 0.4, seed=11, weighted=False)])
    adjacency = DenseAdjacency(batch.sizes, batch.adjacency.to(dtype))
    linear = -torch.ones(batch.num_rows, device=DEVICE)
    states = states_for(batch, 2).to(dtype)
    schedule = torch.tensor([[[0.5]], [[0.1]]], dtype=torch.float64, device=DEVICE)
    for annealer in (triton_anneal, torch_anneal):
        assert annealer.anneal_quadratic(states, adjacency, linear, 1.01, 0.0, schedule, 0).dtype == dtype
    assert torch.equal(
        triton_anneal.anneal_cover(states, adjacency, 1.01, schedule, 0),
        torch_anneal.anneal_cover(states, adjacency, 1.01, schedule, 0),
    )


@every_problem
def test_nothing_to_anneal_gives_nothing(problem):
    batch = dense(small_graphs()[:3])
    nothing = torch.empty(batch.num_rows, 0, device=DEVICE)
    assert annealed_by("triton", problem, batch, nothing, Schedule(3, 0.1)).shape == nothing.shape
    adjacency = DenseAdjacency(batch.sizes, batch.adjacency)
    schedule = torch.ones(1, 3, 1, dtype=torch.float64, device=DEVICE)
    assert triton_anneal.anneal_cover(nothing, adjacency, 1.01, schedule, 0).shape == nothing.shape


def test_what_the_kernels_cannot_take_goes_to_the_reference(caplog, monkeypatch):
    batch = dense([random_graph(12, 0.3, seed=13)])
    monkeypatch.setattr(triton_anneal, "MAX_PADDED", 8)
    with caplog.at_level(logging.DEBUG):
        for name in ("mis", "mds"):
            assert_same_states(get_problem(name), batch, states_for(batch, 1), Schedule(2, 0.2))
    assert len(caplog.records) == 2


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from diffuco.ops import triton_anneal

types = {"sizes": "*i64", "keys": "*i64", "matrix": "*fp16", "table": "*fp32", "annealed": "*fp32", "states": "*fp32"}
types |= {"block": "constexpr", "vector": "constexpr", "has_costs": "constexpr"}
types |= {name: "i32" for name in ("num_chains", "num_graphs", "num_sweeps", "num_temperatures", "num_reads")}
quadratic, cover = triton_anneal.quadratic_kernel, triton_anneal.cover_kernel
for kernel, flags in ((quadratic, {}), (cover, {"has_costs": False}), (cover, {"has_costs": True})):
    for block in (256, 1024):
        signature = {name: types.get(name, "*fp64") for name in kernel.arg_names}
        aligned = {
            (position,): [["tt.divisibility", 16]] for position, type in enumerate(signature.values()) if type[0] == "*"
        }
        source = ASTSource(kernel, signature, {"block": block, "vector": 8, **flags}, aligned)
        options = {"num_warps": max(1, block // 512), "enable_fp_fusion": False}
        ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
        assert "ld.global.v4.b32" in ptx, "rows are not read 16 bytes at a time"
        assert "fma.rn.f64" not in ptx, "products are fused into sums"
"""


def test_kernels_compile_for_hopper(request, tmp_path):
    compile_in_a_process(COMPILE, request.config, tmp_path / "output.txt")


@pytest.mark.gpu
@every_problem
def test_gpu_gives_the_states_of_the_reference_on_larger_batches(problem):
    rng = np.random.default_rng(0)
    graphs = [random_graph(size, 0.1, seed=size) for size in (1, 31, 33, 255, 256, 257, 511, 600)]
    graphs += [ba_graph(size, 4, rng) for size in (200, 300, 1100)]
    # One, one, four and four warps; rows read one, one, two and eight entries at a time.
    for part, pad_to in ((graphs[:3], None), (graphs[:6], None), (graphs, 1102), (graphs, 1104)):
        batch = dense(part, pad_to=pad_to)
        states = states_for(batch, 4)
        annealed = annealed_by("triton", problem, batch, states, Schedule(12, 0.3), seed=3)
        assert torch.equal(annealed, annealed_by("numba", problem, batch, states, Schedule(12, 0.3), seed=3))


@pytest.mark.gpu
def test_gpu_anneals_by_triton_unless_told_otherwise():
    assert ops.implementations(torch.device(DEVICE))["anneal dense"] == "triton"


@pytest.mark.gpu
@every_problem
def test_gpu_anneals_and_refines(problem):
    graphs = get_dataset("qubo-50-150" if problem.name == "qubo" else "rb-small").graphs("validation", 3)
    annealed = diffuco.solve(graphs, problem.name, method="anneal", device=DEVICE)
    limited = diffuco.solve(graphs, problem.name, method="anneal", device=DEVICE, time_limit_s=0.05)
    refined = Solver(problem.name, device=DEVICE).solve(graphs)
    for solution in (*annealed, *limited, *refined):
        assert solution.feasible
    assert all(solution.sweeps == 1000 and solution.seconds["refine"] > 0 for solution in refined)


@pytest.mark.gpu
def test_gpu_samples_of_a_model_are_taken_for_graphs_like_its_own(monkeypatch):
    monkeypatch.setattr(MinimumDominatingSet, "proof_nodes", -1)  # sparse graphs are not tried in 10 ms
    graphs = [get_dataset(name).graph("validation", 0) for name in ("ba-large", "rb-large")]
    solutions = diffuco.solve(graphs, "mds", method="auto", device=DEVICE, time_limit_s=automatic.MODEL_S)
    assert [solution.found_by for solution in solutions] == [choose_model("mds", graphs[:1]).name, "anneal"]
