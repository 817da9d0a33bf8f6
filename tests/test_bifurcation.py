"""Simulated bifurcation: the reference against the formula, and that all implementations take the same steps."""

import numpy as np
import pytest
import torch

import diffuco
from diffuco import ops
from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import adjacency_of
from diffuco.methods.bifurcation import bifurcate, strengths_of
from diffuco.ops import torch_bifurcation
from diffuco.problems import all_problems, get_problem
from test_decoding import collect, random_graph, seeded, small_graphs, with_node_weights, without_node_weights

every_quadratic_problem = pytest.mark.parametrize("problem", [p for p in all_problems() if p.is_quadratic], ids=str)


def graphs_for(problem):
    """Empty, one node, isolated nodes, weights, sizes 0 to 17; none weighs less than 0 where nodes are counted."""
    graphs = small_graphs()
    if problem.name == "qubo":
        return graphs
    return [with_node_weights(graph) if graph.node_weights is not None else graph for graph in graphs]


def start_for(batch, num_agents=3):
    """Positions and momenta, NaN in the padding."""
    generator = seeded(0)
    sizes = batch.sizes.tolist()
    return [
        collect(batch, [torch.rand(size, num_agents, generator=generator) - 0.5 for size in sizes]).to(batch.device)
        for _ in range(2)
    ]


def arguments_of(problem, batch, num_agents=3, num_steps=7):
    """What implementations take after positions and momenta."""
    form = problem.form(batch)
    adjacency = adjacency_of(form.edges or batch, weighted=form.edges is not None)
    pumps = torch.arange(num_steps, device=batch.device) / num_steps
    return adjacency, form.linear, form.edge, form.pair, strengths_of(form, batch, num_agents), pumps


@every_quadratic_problem
def test_a_step_follows_the_local_field_and_stops_at_the_walls(problem):
    batch = SparseBatch.from_graphs(graphs_for(problem))
    positions, momenta = start_for(batch)
    positions[:5] *= 1.9
    adjacency, linear, edge, pair, strengths, _ = arguments_of(problem, batch)
    pump = torch.tensor([0.25])
    q, p = torch_bifurcation.bifurcate_quadratic(positions, momenta, adjacency, linear, edge, pair, strengths, pump)
    field = problem.local_field(batch, (positions > 0).float())
    unit = problem.form(batch).unit
    if unit is not None:
        field = field / batch.spread(unit[:, None])
    pushed = momenta - 0.75 * positions - batch.spread(strengths) * field
    is_outside = (positions + pushed).abs() > 1
    assert is_outside.any()
    torch.testing.assert_close(q, (positions + pushed).clamp(-1, 1))
    torch.testing.assert_close(p, pushed.masked_fill(is_outside, 0.0))


@every_quadratic_problem
@pytest.mark.parametrize("num_steps", [0, 1, 12])
def test_compiled_loops_take_the_steps_of_the_reference(problem, num_steps):
    sparse, dense = (kind.from_graphs(graphs_for(problem)) for kind in (SparseBatch, DenseBatch))
    adjacency, linear, edge, pair, strengths, pumps = arguments_of(problem, sparse, num_steps=num_steps)
    expected = torch_bifurcation.bifurcate_quadratic(
        *start_for(sparse), adjacency, linear, edge, pair, strengths, pumps
    )
    compiled = ops.bifurcate_quadratic(
        *start_for(sparse), adjacency, linear=linear, edge=edge, pair=pair, strengths=strengths, pumps=pumps
    )
    on_matrices = torch_bifurcation.bifurcate_quadratic(
        *start_for(dense), *arguments_of(problem, dense, num_steps=num_steps)
    )
    for reference, found, padded in zip(expected, compiled, on_matrices, strict=True):
        torch.testing.assert_close(found, reference, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(torch.cat(dense.split(padded)), reference, rtol=1e-4, atol=1e-4)
        assert not padded[~dense.mask].any()


def test_a_step_of_the_compiled_loop_is_that_of_the_reference_to_the_last_bit_with_whole_weights():
    batch = SparseBatch.from_graphs([ba_graph(300, 4, np.random.default_rng(0))])
    adjacency, linear, edge, pair, strengths, pumps = arguments_of(get_problem("max-cut"), batch, num_steps=200)
    expected = torch_bifurcation.bifurcate_quadratic(*start_for(batch), adjacency, linear, edge, pair, strengths, pumps)
    found = ops.bifurcate_quadratic(
        *start_for(batch), adjacency, linear=linear, edge=edge, pair=pair, strengths=strengths, pumps=pumps
    )
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


def test_the_strength_for_cuts_is_half_over_the_root_of_the_mean_degree():
    problem, graph = get_problem("max-cut"), ba_graph(40, 4, np.random.default_rng(0))
    heavy = Graph.from_edges(graph.edges, edge_weights=np.full(graph.num_edges, 3.0))
    for batch, scale in ((SparseBatch.from_graphs([graph]), 1), (SparseBatch.from_graphs([heavy]), 3)):
        expected = 0.5 / (2 * graph.num_edges / 40) ** 0.5 / scale
        assert strengths_of(problem.form(batch), batch, 2).tolist() == [pytest.approx([expected, expected])]


def test_strengths_do_not_depend_on_the_kind_of_batch():
    for problem in (problem for problem in all_problems() if problem.is_quadratic):
        sparse, dense = (
            strengths_of(problem.form(batch), batch, 4)
            for batch in (kind.from_graphs(graphs_for(problem)) for kind in (SparseBatch, DenseBatch))
        )
        assert sparse.isfinite().all()
        torch.testing.assert_close(sparse, dense)


@pytest.mark.parametrize("name", ["max-cut", "qubo", "mis"])
def test_more_steps_find_lower_energies(name):
    problem = get_problem(name)
    batch = SparseBatch.from_graphs([random_graph(200, 0.02, seed=4, weighted=name == "qubo")])
    few, many = (
        problem.energy(batch, bifurcate(problem, batch, 8, num_steps, seeded(0))).min() for num_steps in (3, 300)
    )
    assert many < few


@pytest.mark.parametrize("name", ["max-cut", "qubo"])
def test_cuts_and_qubos_are_level_with_annealing(name):
    graph = random_graph(150, 0.05, seed=6)
    graph = without_node_weights(graph) if name == "max-cut" else graph
    found, annealed = (diffuco.solve(graph, name, method=method, device="cpu") for method in ("bifurcation", "anneal"))
    assert found.objective == pytest.approx(annealed.objective, rel=0.01)


@pytest.mark.gpu
@every_quadratic_problem
def test_gpu_bifurcates_batches_and_one_large_graph(problem):
    rng = np.random.default_rng(0)
    large = ba_graph(10_000, 4, rng)
    for graphs in ([ba_graph(size, 4, rng) for size in (50, 200, 300)], [large]):
        found = diffuco.solve(graphs, problem.name, method="bifurcation", device="cuda")
        limited = diffuco.solve(graphs, problem.name, method="bifurcation", device="cuda", time_limit_s=0.2)
        assert all(solution.feasible for solution in (*found, *limited))
