"""Annealing and refinement: what all implementations promise, and that they agree state by state."""

import math

import networkx as nx
import numpy as np
import pytest
import torch

from diffuco import ops
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import DenseBatch, SparseBatch, make_batch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.refinement import (
    Schedule,
    anneal,
    cooling,
    cooling_power,
    refine,
    temperature_unit,
    weight_scale,
)
from diffuco.ops import numba_anneal, torch_anneal
from diffuco.problems import all_problems, get_problem
from test_decoding import (
    collect,
    every_problem,
    random_graph,
    seeded,
    small_graphs,
    with_energy_only,
    with_node_weights,
    without_node_weights,
)

SCHEDULES = [Schedule(1, 0.3), Schedule(7, 0.05), Schedule(5, 3.0)]


def states_for(batch, num_chains=3):
    generator = seeded(0)
    return collect(
        batch, [torch.rand(size, num_chains, generator=generator).round() for size in batch.sizes.tolist()]
    ).to(batch.device)


def annealed_by(implementation, problem, batch, states, schedule, seed=0):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops, "decoder_override", implementation)
        return anneal(problem, batch, states, schedule, seed=seed)


@pytest.mark.parametrize("floor", [0.0, 0.33])
def test_the_temperature_falls_from_sweep_to_sweep_and_only_the_last_ones_go_below_the_floor(floor):
    left = cooling(200, floor)
    assert left[0] == 1
    assert (left.diff() < 0).all()
    assert (left[:190] > floor).all()
    assert 0 < left[-1] < 0.05


@every_problem
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_compiled_loops_give_the_states_of_the_reference(problem, schedule):
    # Empty, one node, isolated nodes, weights of both signs, sizes 0 to 17 in one batch; NaN in the padding.
    dense, sparse = DenseBatch.from_graphs(small_graphs()), SparseBatch.from_graphs(small_graphs())
    expected = annealed_by("torch", problem, dense, states_for(dense), schedule, seed=5)
    assert ((expected == 0) | (expected == 1)).all()
    assert not expected[~dense.mask].any()
    assert torch.equal(annealed_by("numba", problem, dense, states_for(dense), schedule, seed=5), expected)
    on_rows = anneal(problem, sparse, states_for(sparse), schedule, seed=5)
    assert torch.equal(on_rows, torch.cat(dense.split(expected)))


@every_problem
def test_chains_can_have_temperatures_of_their_own(problem):
    schedule, heat = Schedule(5, 0.4), torch.tensor([1.0, 0.5, 2.0])
    for batch in (DenseBatch.from_graphs(small_graphs()), SparseBatch.from_graphs(small_graphs())):
        together = anneal(problem, batch, states_for(batch), schedule, seed=5, heat=heat)
        for chain, factor in enumerate(heat.tolist()):
            alone = anneal(problem, batch, states_for(batch), Schedule(5, 0.4 * factor), seed=5)
            assert torch.equal(together[:, chain], alone[:, chain])


@every_problem
def test_larger_graphs_too(problem):
    rng = np.random.default_rng(0)
    graphs = [random_graph(40, 0.2, seed=1), ba_graph(60, 4, rng), get_dataset("rb-tiny").graph("validation", 0)]
    batch = DenseBatch.from_graphs(graphs)
    expected = annealed_by("torch", problem, batch, states_for(batch, 2), Schedule(20, 0.3))
    assert torch.equal(annealed_by("numba", problem, batch, states_for(batch, 2), Schedule(20, 0.3)), expected)


@every_problem
@pytest.mark.parametrize("near", [-1.0, math.inf], ids=["one by one", "in blocks"])
def test_nodes_are_asked_one_by_one_or_in_blocks_with_the_same_states(problem, near, monkeypatch):
    monkeypatch.setattr(numba_anneal, "NEAR", near)
    sizes = (numba_anneal.BLOCK - 1, numba_anneal.BLOCK, 2 * numba_anneal.BLOCK + 1)
    batch = DenseBatch.from_graphs([*small_graphs(), *(random_graph(size, 0.1, seed=size) for size in sizes)])
    expected = annealed_by("torch", problem, batch, states_for(batch, 2), Schedule(6, 0.4))
    assert torch.equal(annealed_by("numba", problem, batch, states_for(batch, 2), Schedule(6, 0.4)), expected)


@every_problem
@pytest.mark.parametrize("kind", [SparseBatch, DenseBatch])
def test_refined_states_are_feasible_and_never_worse(problem, kind):
    graphs = [*small_graphs(), random_graph(60, 0.2, seed=3), get_dataset("rb-tiny").graph("validation", 1)]
    if problem.name != "qubo":
        graphs = [with_node_weights(graph) if graph.node_weights is not None else graph for graph in graphs]
    batch = kind.from_graphs(graphs)
    for start in (states_for(batch, 8), torch.zeros(batch.num_rows, 1), torch.ones(batch.num_rows, 1)):
        before = problem.energy(batch, start.nan_to_num())
        for schedule in SCHEDULES:
            annealed = anneal(problem, batch, start, schedule)
            assert (problem.energy(batch, annealed) <= before + 1e-4).all()
            refined = refine(problem, batch, start, schedule)
            assert (problem.energy(batch, refined) <= problem.energy(batch, annealed) + 1e-4).all()
            assert (problem.violations(batch, refined) < 0.5).all()


@every_problem
def test_annealing_finds_the_optimum_of_small_graphs(problem):
    graph = random_graph(12, 0.3, seed=8)
    batch = SparseBatch.from_graphs([graph])
    everything = ((torch.arange(2**12) >> torch.arange(12)[:, None]) & 1).float()
    found = refine(problem, batch, states_for(batch, 16), Schedule(200, 1.0))
    optimum = problem.energy(batch, everything).min()
    assert float(problem.energy(batch, found).min()) == pytest.approx(float(optimum), abs=1e-4)


@every_problem
@pytest.mark.parametrize("kind", [SparseBatch, DenseBatch])
def test_a_problem_that_states_only_an_energy_is_refined_too(problem, kind):
    graphs = small_graphs()
    if problem.name != "qubo":
        graphs = [with_node_weights(graph) if graph.node_weights is not None else graph for graph in graphs]
    problem, batch = with_energy_only(problem), kind.from_graphs(graphs)
    start = states_for(batch, 4).nan_to_num()
    annealed, again, other = (anneal(problem, batch, start, Schedule(3, 0.3), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(annealed, again)
    assert not torch.equal(annealed, other)
    assert ((annealed == 0) | (annealed == 1)).all()
    assert (problem.energy(batch, annealed) <= problem.energy(batch, start) + 1e-4).all()
    refined = refine(problem, batch, start, Schedule(3, 0.3), seed=1)
    assert (problem.energy(batch, refined) <= problem.energy(batch, annealed) + 1e-4).all()
    assert (problem.violations(batch, refined) < 0.5).all()


@every_problem
def test_annealing_by_the_energy_alone_finds_the_optimum_of_small_graphs(problem):
    batch = SparseBatch.from_graphs([without_node_weights(random_graph(10, 0.3, seed=8))])
    everything = ((torch.arange(2**10) >> torch.arange(10)[:, None]) & 1).float()
    found = refine(with_energy_only(problem), batch, states_for(batch, 16), Schedule(60, 1.0))
    optimum = problem.energy(batch, everything).min()
    assert float(problem.energy(batch, found).min()) == pytest.approx(float(optimum), abs=1e-4)


def test_seeds_chains_and_graphs_differ():
    graph = get_dataset("rb-small").graph("validation", 0)
    batch = DenseBatch.from_graphs([graph, graph])
    start = torch.zeros(batch.num_rows, 4)
    runs = [anneal(get_problem("mis"), batch, start, Schedule(5, 0.5), seed=seed) for seed in (1, 1, 2, 2**40 + 1)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    assert not torch.equal(runs[0], runs[3])
    chains = torch.cat([part.T for part in batch.split(runs[0])])
    assert len(chains.unique(dim=0)) == 8


def test_random_numbers_are_uniform_and_unrelated():
    keys = torch_anneal.chain_keys(0, 50, 40, torch.device("cpu"))
    assert keys.unique().numel() == keys.numel()
    levels = torch.stack([torch_anneal.levels_of(keys, sweep, 25) for sweep in (0, 1)]).double()
    uniform = (levels + 0.5) / torch_anneal.NUM_LEVELS
    assert uniform.mean().item() == pytest.approx(0.5, abs=0.005)
    assert uniform.var().item() == pytest.approx(1 / 12, abs=0.002)
    for dim in range(4):  # sweeps, graphs, nodes, chains
        size = uniform.shape[dim] - 1
        pairs = torch.stack([uniform.narrow(dim, 0, size).flatten(), uniform.narrow(dim, 1, size).flatten()])
        assert abs(float(torch.corrcoef(pairs)[0, 1])) < 0.02
    assert torch_anneal.exponentials(torch.device("cpu")).mean().item() == pytest.approx(1, abs=0.001)


def test_a_low_temperature_keeps_a_minimum_and_a_high_one_leaves_it():
    # Two nodes of a path of three are a minimum; the middle one alone costs 1 more and is never better.
    batch = SparseBatch.from_graphs([Graph.from_edges([(0, 1), (1, 2)])])
    best = torch.tensor([[1.0], [0.0], [1.0]])
    for temperature in (1e-6, 10.0):
        assert torch.equal(anneal(get_problem("mis"), batch, best, Schedule(50, temperature)), best)


def test_a_large_sparse_graph_needs_no_matrix():
    num_nodes = 200_000
    ring = np.stack([np.arange(num_nodes), np.roll(np.arange(num_nodes), -1)], axis=1)
    batch = SparseBatch.from_graphs([Graph.from_edges(ring)])
    for name in ("mis", "max-clique", "mds"):
        problem = get_problem(name)
        start = torch.full((num_nodes, 1), 1.0 if name == "mds" else 0.0)
        refined = refine(problem, batch, start, Schedule(3, 0.02))
        assert float(problem.violations(batch, refined)) == 0
        if name != "max-clique":
            assert float(problem.energy(batch, refined)) < float(problem.energy(batch, start)) - num_nodes / 4


def test_temperatures_follow_the_weights():
    path = [(0, 1), (1, 2)]
    light, heavy = (Graph.from_edges(path, edge_weights=[w, -w], node_weights=[w, w, w]) for w in (1.0, 100.0))
    batch = SparseBatch.from_graphs([light, heavy, Graph.from_edges([], 0)])
    for problem in all_problems():
        light_scale, heavy_scale, _ = weight_scale(problem, batch).tolist()
        assert light_scale == pytest.approx(1)
        assert heavy_scale == pytest.approx(100)
        light_unit, heavy_unit, _ = temperature_unit(problem, batch).tolist()
        assert heavy_unit == pytest.approx(100 * light_unit)
    start = torch.tensor([[0.0], [1.0], [0.0]])
    for problem in all_problems():
        annealed = [
            anneal(problem, SparseBatch.from_graphs([graph]), start, Schedule(9, 0.7)) for graph in (light, heavy)
        ]
        assert torch.equal(*annealed)


def test_cuts_of_hubs_start_hotter():
    cut = get_problem("max-cut")
    star, ring = (Graph.from_edges(list(made.edges)) for made in (nx.star_graph(16), nx.cycle_graph(17)))
    for make in (SparseBatch.from_graphs, make_batch):
        units = temperature_unit(cut, make([star, ring])).tolist()
        assert units == pytest.approx([math.sqrt((16 * 16 + 16) / 32), math.sqrt(2)])
    weighted = Graph.from_edges([(0, 1), (1, 2)], edge_weights=[3.0, 4.0])
    assert float(temperature_unit(cut, make_batch([weighted]))) == pytest.approx(math.sqrt((81 + 625 + 256) / 50))


def test_temperatures_of_large_graphs_with_hubs_reach_what_other_nodes_need_in_half_of_the_sweeps():
    cut = get_problem("max-cut")
    star = list(nx.star_graph(40).edges)
    stars = [(41 * copy + u, 41 * copy + v) for copy in range(250) for u, v in star]
    batch = SparseBatch.from_graphs(
        [Graph.from_edges(stars), Graph.from_edges(star), Graph.from_edges([(0, 1)], 20_000), Graph.from_edges([], 3)]
    )
    power, unit = cooling_power(cut, batch), temperature_unit(cut, batch)
    mean_degree = 2 * 40 / 41
    assert float(unit[0] * 0.5 ** power[0]) == pytest.approx(math.sqrt(mean_degree))
    assert power[1:].tolist() == [1.0, 1.0, 1.0]
    assert cooling_power(get_problem("mis"), batch).tolist() == [1.0] * 4


@pytest.mark.parametrize(("name", "chosen"), [("mis", slice(1, None)), ("mds", slice(1))])
def test_a_hub_counts_more_neighbours_than_16_bits_hold(name, chosen):
    batch = SparseBatch.from_graphs([Graph.from_edges([(0, leaf) for leaf in range(1, 40_001)])])
    best = torch.zeros(batch.num_rows, 1)
    best[chosen] = 1
    assert torch.equal(anneal(get_problem(name), batch, best, Schedule(2, 0.01)), best)


def test_nothing_to_do():
    batch = SparseBatch.from_graphs(small_graphs())
    start = states_for(batch)
    assert torch.equal(anneal(get_problem("mis"), batch, start, Schedule(0, 1.0)), start)
    assert anneal(get_problem("mds"), batch, start[:, :0], Schedule(3, 1.0)).numel() == 0
    for schedule in (Schedule(-1, 1.0), Schedule(3, 0.0), Schedule(3, float("nan"))):
        with pytest.raises(InputError, match="temperature above 0"):
            anneal(get_problem("mis"), batch, start, schedule)


def test_the_mixer_is_that_of_the_reference():
    values = torch.randint(0, 2**32, (100,), generator=seeded(0))
    assert [int(numba_anneal.mix(np.uint64(value))) for value in values.tolist()] == torch_anneal.mix(values).tolist()
