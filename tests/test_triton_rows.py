"""The Triton kernels over compressed rows against their references: compiled on a GPU, interpreted elsewhere."""

import numpy as np
import pytest
import torch

import diffuco
from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.generate import ba_graph
from diffuco.ops import torch_bifurcation, torch_color_anneal, torch_cover_anneal
from diffuco.problems import get_problem
from kernels import DEVICE, MARKS, compile_in_a_process, importing_kernels
from test_bifurcation import arguments_of as bifurcation_arguments
from test_bifurcation import graphs_for, start_for
from test_color_anneal import COLORABLE, every_colorable_problem
from test_color_anneal import arguments_of as annealing_arguments
from test_cover_anneal import MDS
from test_cover_anneal import arguments_of as covering_arguments
from test_decoding import with_node_weights
from test_refinement import states_for

with importing_kernels():
    from diffuco.ops import triton_bifurcation, triton_color_anneal, triton_cover_anneal, triton_rows

pytestmark = MARKS


@pytest.fixture(autouse=True)
def _hubs(monkeypatch):
    """Rows of more than five neighbours are hubs, so that small graphs have some."""
    for module in (triton_rows, torch_cover_anneal):
        monkeypatch.setattr(module, "HUB_DEGREE", 5)


def batch_for(problem):
    """Empty, one node, isolated nodes, weights, hubs."""
    graphs = [*graphs_for(problem)[:6], ba_graph(24, 2, np.random.default_rng(0))]
    return SparseBatch.from_graphs(graphs, device=DEVICE)


@every_colorable_problem
@pytest.mark.parametrize(("num_chains", "num_sweeps"), [(1, 1), (3, 2)])
def test_annealed_states_are_those_of_the_reference(problem, num_chains, num_sweeps):
    batch = batch_for(problem)
    start, arguments = states_for(batch, num_chains), annealing_arguments(problem, batch, num_sweeps, num_chains)
    annealed = triton_color_anneal.anneal_quadratic(start, *arguments)
    assert torch.equal(annealed, torch_color_anneal.anneal_quadratic(start, *arguments))
    assert not torch.equal(annealed, start)
    assert annealed.dtype == start.dtype


@pytest.mark.parametrize(("weighted", "num_chains", "num_sweeps"), [(False, 1, 1), (False, 3, 2), (True, 3, 2)])
def test_annealed_covers_are_those_of_the_reference(weighted, num_chains, num_sweeps):
    hubs = ba_graph(24, 2, np.random.default_rng(0))
    graphs = [with_node_weights(hubs), *graphs_for(MDS)[:3]] if weighted else [hubs]
    batch = SparseBatch.from_graphs(graphs, device=DEVICE)
    start, arguments = states_for(batch, num_chains), covering_arguments(batch, num_sweeps, num_chains)
    annealed = triton_cover_anneal.anneal_cover(start, *arguments)
    assert torch.equal(annealed, torch_cover_anneal.anneal_cover(start, *arguments))
    assert not torch.equal(annealed, start)
    assert annealed.dtype == start.dtype


@every_colorable_problem
@pytest.mark.parametrize(("num_agents", "num_steps"), [(1, 1), (3, 3), (5, 2)])
def test_steps_of_bifurcation_are_those_of_the_reference(problem, num_agents, num_steps):
    batch = batch_for(problem)
    start = start_for(batch, num_agents)
    adjacency, linear, edge, _, strengths, pumps = bifurcation_arguments(problem, batch, num_agents, num_steps)
    found = triton_bifurcation.bifurcate_quadratic(*start, adjacency, linear, edge, strengths, pumps)
    expected = torch_bifurcation.bifurcate_quadratic(*start, adjacency, linear, edge, 0.0, strengths, pumps)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_nothing_gives_nothing():
    batch = batch_for(get_problem("mis"))
    nothing = torch.empty(batch.num_rows, 0, device=DEVICE)
    annealed = triton_color_anneal.anneal_quadratic(nothing, *annealing_arguments(get_problem("mis"), batch))
    assert annealed.shape == nothing.shape
    assert triton_cover_anneal.anneal_cover(nothing, *covering_arguments(batch)).shape == nothing.shape
    adjacency, linear, edge, _, strengths, pumps = bifurcation_arguments(get_problem("mis"), batch)
    moved, _ = triton_bifurcation.bifurcate_quadratic(nothing, nothing, adjacency, linear, edge, strengths, pumps)
    assert moved.shape == nothing.shape


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from diffuco.ops import triton_bifurcation, triton_color_anneal, triton_cover_anneal

double, single, count = "*fp64", "*fp32", "i32"
types = {"x": "*i8", "before": "*i8", "after": "*i8", "indptr": "*i64", "indices": "*i32", "graph_of_row": "*i32"}
types |= {"keys": "*i64", "sweep": "*i64", "step": "*i64", "temperatures": double, "changes": double, "table": single}
types |= {name: count for name in ("first_row", "last_row", "first_program", "num_chains", "num_agents")}
types |= {"covering": "*i32", "wants": "*i8", "claims": "*i64", "energies": double}
types |= {name: count for name in ("group", "num_groups", "num_rows")}
annealing, bifurcation = triton_color_anneal.flip_kernel, triton_bifurcation.step_kernel
costs = {"chosen": double, "uncovered": double, "penalty": double}
for kernel, own in (
    *((annealing, {"linear": double, "edge": double}), (bifurcation, {"edge": "fp32"})),
    *((triton_cover_anneal.ask_kernel, costs), (triton_cover_anneal.flip_kernel, {})),
    (triton_cover_anneal.energy_kernel, costs),
):
    for rows, neighbors, weighted in ((16, 8, False), (1, 128, True)):
        constants = {"tile_rows": rows, "tile_neighbors": neighbors, "tile_columns": 8}
        own["weights"] = single if weighted else "*i32"
        constants["has_weights" if "has_weights" in kernel.arg_names else "has_costs"] = weighted
        constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
        signature = {name: (types | own).get(name, single) for name in kernel.arg_names}
        signature |= dict.fromkeys(constants, "constexpr")
        triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32))
"""


def test_kernels_compile_for_hopper(request, tmp_path):
    compile_in_a_process(COMPILE, request.config, tmp_path / "output.txt")


@pytest.mark.gpu
@every_colorable_problem
def test_gpu_gives_the_states_of_the_reference_on_a_large_graph(problem):
    batch = SparseBatch.from_graphs([ba_graph(9_000, 4, np.random.default_rng(0))], device=DEVICE)
    start, arguments = states_for(batch, 20), annealing_arguments(problem, batch, 15)
    annealed = triton_color_anneal.anneal_quadratic(start, *arguments)
    assert torch.equal(annealed, torch_color_anneal.anneal_quadratic(start, *arguments))


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [False, True])
def test_gpu_gives_the_covers_of_the_reference_on_a_large_graph(weighted):
    graph = ba_graph(9_000, 4, np.random.default_rng(0))
    batch = SparseBatch.from_graphs([with_node_weights(graph) if weighted else graph], device=DEVICE)
    start, arguments = states_for(batch, 20), covering_arguments(batch, 15)
    annealed = triton_cover_anneal.anneal_cover(start, *arguments)
    assert torch.equal(annealed, torch_cover_anneal.anneal_cover(start, *arguments))


@pytest.mark.gpu
def test_gpu_bifurcation_with_whole_weights_is_that_of_the_reference():
    problem, batch = (
        get_problem("max-cut"),
        SparseBatch.from_graphs([ba_graph(9_000, 4, np.random.default_rng(0))], DEVICE),
    )
    start = start_for(batch, 8)
    adjacency, linear, edge, _, strengths, pumps = bifurcation_arguments(problem, batch, 8, 101)
    found, _ = triton_bifurcation.bifurcate_quadratic(*start, adjacency, linear, edge, strengths, pumps)
    expected, _ = torch_bifurcation.bifurcate_quadratic(*start, adjacency, linear, edge, 0.0, strengths, pumps)
    # A product that one of them fuses into a sum makes some nodes go elsewhere in the end, not the outcome.
    energies = [problem.energy(batch, (positions > 0).float()) for positions in (found, expected)]
    torch.testing.assert_close(*energies, rtol=0.01, atol=0)


@pytest.mark.gpu
@pytest.mark.parametrize("problem", [*COLORABLE, MDS], ids=str)
def test_gpu_anneals_one_large_graph(problem):
    graph = ba_graph(30_000, 4, np.random.default_rng(0))
    in_parallel = diffuco.solve(graph, problem.name, method="anneal", device=DEVICE, time_limit_s=1)
    assert in_parallel.feasible
    on_cpu = diffuco.solve(graph, problem.name, method="anneal", device="cpu", time_limit_s=1)
    gain = 1 if problem.sense == "max" else -1  # on a busy machine, the CPU may find far less in that time
    assert gain * in_parallel.objective >= gain * on_cpu.objective - 0.02 * abs(on_cpu.objective)
