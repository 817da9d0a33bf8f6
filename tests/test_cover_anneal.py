"""Annealing of covers in groups: what is kept, and that sequential annealing gives the same with one node per group."""

from functools import partial

import numpy as np
import pytest
import torch

from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import adjacency_of, with_float64_degrees
from diffuco.ops import numba_anneal, torch_cover_anneal
from diffuco.ops.adjacency import CoverCosts
from diffuco.ops.classes import anneal_by_class, classes_of
from diffuco.ops.torch_cover_anneal import HUB_DEGREE, NUM_GROUPS, anneal_graph, group_classes
from diffuco.problems import get_problem
from test_bifurcation import graphs_for
from test_decoding import with_node_weights
from test_refinement import states_for

MDS = get_problem("mds")
each_batch = pytest.mark.parametrize("graphs", ["small", "large", "weighted"], indirect=True)


@pytest.fixture
def graphs(request):
    if request.param == "small":
        return graphs_for(MDS)
    large = ba_graph(400, 4, np.random.default_rng(0))
    return [with_node_weights(large) if request.param == "weighted" else large]


def arguments_of(batch, num_sweeps=9, heat=1):
    """Adjacency, penalty, temperatures (one for all chains, or `heat` of them), seed and costs."""
    form = MDS.form(with_float64_degrees(batch))
    cooling = torch.linspace(0.5, 0.05, num_sweeps, dtype=torch.float64, device=batch.device)
    of_graphs = torch.linspace(0.5, 1, batch.num_graphs, device=batch.device)
    temperatures = cooling[:, None, None] * of_graphs[:, None] * torch.linspace(1, 2, heat, device=batch.device)
    return adjacency_of(batch, weighted=False), form.penalty, temperatures, 3, form.costs


@each_batch
def test_with_one_node_per_group_the_states_are_those_of_sequential_annealing(graphs):
    batch = SparseBatch.from_graphs(graphs)
    adjacency, penalty, temperatures, seed, costs = arguments_of(batch)
    start, each_alone = states_for(batch), classes_of(adjacency, torch.arange(batch.num_rows) % max(batch.sizes))
    order = each_alone.order
    reordered = costs and CoverCosts(*(cost[order] for cost in costs))
    sequential = torch.empty_like(start)
    sequential[order] = numba_anneal.anneal_cover(
        start[order], adjacency.reordered(order), penalty, temperatures, seed, reordered
    )
    annealed = anneal_by_class(start, adjacency, each_alone, temperatures, seed, partial(anneal_graph, penalty, costs))
    assert torch.equal(annealed, sequential)
    assert not torch.equal(annealed, start)


@each_batch
def test_kept_energies_are_those_of_the_states(graphs):
    batch = SparseBatch.from_graphs(graphs)
    start, kept = states_for(batch), []

    def anneal(*arguments):
        kept.append(anneal_graph(*arguments))
        return kept[-1]

    adjacency, penalty, temperatures, seed, costs = arguments_of(batch)
    annealed = anneal_by_class(
        start, adjacency, group_classes(adjacency), temperatures, seed, partial(anneal, penalty, costs)
    )
    form = MDS.form(batch)
    units = torch.ones(batch.num_graphs) if form.unit is None else form.unit
    changes = (MDS.energy(batch, annealed.double()) - MDS.energy(batch, start.double())) / units[:, None]
    expected = changes[batch.sizes > 0]
    torch.testing.assert_close(torch.stack([chains.lowest for chains in kept]), expected, check_dtype=False)
    assert (expected <= 0).all()
    assert (expected < 0).any()


def test_groups_have_all_rows_and_about_as_many_each_but_hubs_are_alone():
    batch = SparseBatch.from_graphs([ba_graph(4_000, 4, np.random.default_rng(0))])
    classes = group_classes(adjacency_of(batch, weighted=False))
    assert classes.order.sort().values.tolist() == list(range(4_000))
    assert classes.most == NUM_GROUPS + 1
    starts = torch.tensor(classes.spans[0][2])
    assert (starts.diff()[:-1] - 4_000 / NUM_GROUPS).abs().max() < 60
    is_hub = batch.degrees[classes.order] > HUB_DEGREE
    assert is_hub.any()
    assert torch.equal(is_hub, torch.arange(4_000) >= starts[-2])


@pytest.mark.parametrize(
    ("edges", "chosen"),
    [([(0, leaf) for leaf in range(1, 9)], []), ([(0, 1), (0, 2), (1, 2)], [0, 1])],
    ids=["all would cover the centre of a star", "both would leave a triangle"],
)
def test_of_nodes_that_would_do_harm_together_one_flips(monkeypatch, edges, chosen):
    monkeypatch.setattr(torch_cover_anneal, "NUM_GROUPS", 1)
    batch = SparseBatch.from_graphs([Graph.from_edges(edges)])
    start = torch.zeros(batch.num_rows, 1)
    start[chosen] = 1
    adjacency, penalty, _, seed, _ = arguments_of(batch)
    cold = torch.full((1, 1, 1), 1e-6, dtype=torch.float64)
    assert torch_cover_anneal.anneal_cover(start, adjacency, penalty, cold, seed).sum() == 1
