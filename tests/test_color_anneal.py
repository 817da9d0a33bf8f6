"""Annealing by colour classes: the classes, the energies it keeps, and that sequential annealing gives the same."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch

from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.generate import ba_graph
from diffuco.inference.decoding import adjacency_of, with_float64_degrees
from diffuco.ops import numba_anneal, torch_color_anneal
from diffuco.ops.classes import Chains, anneal_by_class
from diffuco.ops.torch_color_anneal import color_classes
from diffuco.problems import all_problems
from test_bifurcation import graphs_for
from test_decoding import random_graph
from test_refinement import states_for

COLORABLE = [problem for problem in all_problems() if problem.is_quadratic and problem.name != "max-clique"]
every_colorable_problem = pytest.mark.parametrize("problem", COLORABLE, ids=str)


def batches_for(problem):
    """Empty, one node, isolated nodes and weights in one batch; one larger graph with hubs."""
    large = ba_graph(400, 4, np.random.default_rng(0))
    return [SparseBatch.from_graphs(graphs) for graphs in (graphs_for(problem), [large])]


def arguments_of(problem, batch, num_sweeps=9, heat=1):
    """Adjacency, linear terms, edge factor, temperatures (one for all chains, or `heat` of them) and seed."""
    form = problem.form(with_float64_degrees(batch))
    assert not form.pair
    cooling = torch.linspace(1.0, 0.1, num_sweeps, dtype=torch.float64, device=batch.device)
    of_graphs = torch.linspace(0.5, 1, batch.num_graphs, device=batch.device)
    temperatures = cooling[:, None, None] * of_graphs[:, None] * torch.linspace(1, 2, heat, device=batch.device)
    adjacency = adjacency_of(form.edges or batch, weighted=form.edges is not None)
    return adjacency, form.linear, form.edge, temperatures, 3


def test_neighbours_never_share_a_class_and_every_row_is_in_one():
    for graphs in (
        [random_graph(30, 0.3, seed=1)],
        graphs_for(COLORABLE[0]),
        [ba_graph(300, 4, np.random.default_rng(0))],
    ):
        batch = SparseBatch.from_graphs(graphs)
        classes = color_classes(adjacency_of(batch, weighted=False))
        assert classes.order.sort().values.tolist() == list(range(batch.num_rows))
        color_of = torch.full((batch.num_rows,), -1)
        for first, last, starts in classes.spans:
            for color, (begin, end) in enumerate(itertools.pairwise(starts)):
                rows = classes.order[first + begin : first + end]
                color_of[rows] = color
                degrees = batch.degrees[rows]
                assert (degrees[:-1] >= degrees[1:]).all()
            assert starts[-1] == last - first
        rows = torch.arange(batch.num_rows).repeat_interleave(batch.indptr.diff())
        assert (color_of[rows] != color_of[batch.indices]).all()


def test_a_path_takes_two_colours_and_the_classes_are_remembered():
    batch = SparseBatch.from_graphs([ba_graph(50, 1, np.random.default_rng(0))])
    classes = color_classes(adjacency_of(batch, weighted=False))
    assert classes.most == 2
    assert color_classes(adjacency_of(batch, weighted=False)) is classes


@every_colorable_problem
def test_states_are_those_of_sequential_annealing_in_the_order_of_colours(problem):
    for batch in batches_for(problem):
        adjacency, linear, edge, temperatures, seed = arguments_of(problem, batch)
        start, order = states_for(batch), color_classes(adjacency).order
        sequential = torch.empty_like(start)
        sequential[order] = numba_anneal.anneal_quadratic(
            start[order], adjacency.reordered(order), linear[order], edge, 0.0, temperatures, seed
        )
        annealed = torch_color_anneal.anneal_quadratic(start, adjacency, linear, edge, temperatures, seed)
        assert torch.equal(annealed, sequential)
        assert not torch.equal(annealed, start)


@every_colorable_problem
def test_kept_energies_are_those_of_the_states(problem):
    (batch,) = batches_for(problem)[1:]
    kept: list[Chains] = []

    def anneal(*arguments):
        kept.append(torch_color_anneal.anneal_graph(*arguments))
        return kept[-1]

    start = states_for(batch)
    adjacency, linear, edge, temperatures, seed = arguments_of(problem, batch)
    anneal = partial(anneal, linear, edge)
    annealed = anneal_by_class(start, adjacency, color_classes(adjacency), temperatures, seed, anneal)
    changes = problem.energy(batch, annealed.double()) - problem.energy(batch, start.double())
    assert (changes < 0).all()
    torch.testing.assert_close(kept[0].lowest[None], changes, check_dtype=False)
