"""Rounds: samples are noised, denoised and kept where they are better."""

from dataclasses import replace
from itertools import product

import networkx as nx
import numpy as np
import pytest
import torch

import diffuco
from diffuco.diffusion.noise import ExponentialNoise
from diffuco.diffusion.randomness import RowRandom
from diffuco.diffusion.sampling import round_level, round_steps
from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.graphs.families import geometric_graph
from diffuco.graphs.generate import ba_graph, er_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.rounds import best_parts, better_parts, components, spread_labels
from diffuco.problems import get_problem


class Stubborn:
    """A denoiser that always predicts the state it is given."""

    num_random_features = 0

    def __init__(self):
        self.steps = []

    def __call__(self, batch, x, step, features):
        self.steps.append(step[0].item())
        return 100 * (2 * x - 1)


def test_a_round_noises_as_the_forward_process_does_and_takes_every_step_once():
    noise, denoiser = ExponentialNoise(8), Stubborn()
    batch = SparseBatch.from_graphs([Graph.from_edges([], num_nodes=20_000)])
    states = (torch.arange(20_000) % 2)[:, None].float()
    random = RowRandom(torch.Generator().manual_seed(0))
    steps = list(round_steps(denoiser, batch, states, noise=noise, level=5, random=random))
    assert [step.step for step in steps] == denoiser.steps == [5, 4, 3, 2, 1]
    expected = noise.change_probability(torch.tensor(5)).item()
    for value in (0, 1):
        changed = (steps[0].x != states)[states == value].float().mean().item()
        assert changed == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("seed", range(20))
def test_components_are_those_of_networkx(seed):
    graph = nx.gnm_random_graph(40, 30, seed=seed)
    ends = torch.tensor(list(graph.edges)).T
    expected = [min(nx.node_connected_component(graph, node)) for node in range(40)]
    assert components(40, *ends).tolist() == spread_labels(40, *ends).tolist() == expected


def test_components_of_a_long_path():
    order = torch.from_numpy(np.random.default_rng(0).permutation(5000))
    for find in (components, spread_labels):
        assert find(5000, order[:-1], order[1:]).tolist() == [0] * 5000


@pytest.mark.parametrize("name", ["mis", "mvc", "max-cut", "mds", "qubo"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_kept_parts_are_the_best_choice_of_parts(name, weighted):
    """Among all ways to take some of the parts, none has a lower energy: enumerated."""
    rng = np.random.default_rng(3)
    problem, several = get_problem(name), 0
    for _ in range(30):
        graph = er_graph(14, 0.15, rng)
        if weighted:
            weights = {"edge_weights": rng.normal(size=graph.num_edges) if name in ("max-cut", "qubo") else None}
            graph = replace(graph, **weights, node_weights=rng.integers(1, 9, 14) / 4)
        batch = SparseBatch.from_graphs([graph])
        old = torch.from_numpy(rng.integers(0, 2, (14, 1))).float()
        new = torch.where(torch.from_numpy(rng.random((14, 1)) < 0.3), 1 - old, old)
        kept = better_parts(problem, batch, old, new)
        parts = [sorted(part) for part in nx.connected_components(joined(graph, name, (old != new)[:, 0].numpy()))]
        several += len(parts) > 1
        choices = []
        for taken in product((False, True), repeat=len(parts)):
            state = old.clone()
            for part, take in zip(parts, taken, strict=True):
                if take:
                    state[part] = new[part]
            choices.append(state)
        energies = problem.energy(batch, torch.cat(choices, dim=1))
        assert problem.energy(batch, kept).item() == pytest.approx(energies.min().item(), abs=1e-4)
    assert several > 5


def joined(graph, name, differs):
    """The nodes that differ, joined where they share a term of the energy."""
    whole = nx.empty_graph(graph.num_nodes)
    whole.add_edges_from(graph.edges.tolist())
    return (nx.power(whole, 2) if name == "mds" else whole).subgraph(np.flatnonzero(differs).tolist())


def test_a_graph_whose_energy_connects_everything_is_one_part():
    graph, clique = Graph.from_edges([(0, 1), (2, 3), (3, 4), (2, 4)]), get_problem("max-clique")
    for kind in (SparseBatch, DenseBatch):
        batch = kind.from_graphs([graph])
        pair, triangle = torch.tensor([[1.0, 1, 0, 0, 0]]).T, torch.tensor([[0.0, 0, 1, 1, 1]]).T
        assert torch.equal(better_parts(clique, batch, pair, triangle), triangle)
        assert torch.equal(better_parts(clique, batch, triangle, pair), triangle)


@pytest.mark.parametrize("name", ["mis", "max-cut", "mds"])
def test_the_first_state_gets_the_best_parts_of_all(name):
    problem = get_problem(name)
    graphs = [geometric_graph(60, 4.0, np.random.default_rng(seed)) for seed in range(3)]
    batch = SparseBatch.from_graphs(graphs)
    states = torch.randint(2, (batch.num_rows, 4), generator=torch.Generator().manual_seed(0)).float()
    before, after = (problem.energy(batch, x) for x in (states, best_parts(problem, batch, states)))
    assert torch.all(after[:, 0] < before.min(1).values)  # random states of graphs with short cycles
    assert torch.equal(after[:, 1:], before.sort(1).values[:, 1:])
    if name == "max-cut":  # sides do not matter
        turned = torch.cat([states[:, :1], 1 - states[:, 1:]], dim=1)
        turned_after = problem.energy(batch, best_parts(problem, batch, turned))
        assert torch.all(turned_after[:, 0] < before.min(1).values)
    assert best_parts(problem, batch, states[:, :1]).equal(states[:, :1])


def test_an_empty_graph_has_no_parts():
    batch, nothing = SparseBatch.from_graphs([Graph.from_edges([], 0)]), torch.zeros(0, 2)
    assert better_parts(get_problem("mis"), batch, nothing, nothing).shape == (0, 2)


@pytest.mark.parametrize("name", ["mis", "max-cut", "mds", "max-clique", "qubo"])
def test_more_rounds_are_never_worse_and_the_first_samples_are_the_same(name):
    rng = np.random.default_rng(0)
    graphs = [er_graph(150, 0.1, rng), ba_graph(200, 4, rng)]
    options = {"samples": 3, "step_factor": 1, "refine": 0, "device": "cpu"}
    plain = diffuco.solve(graphs, name, rounds=0, **options)
    energies = np.array([solution.energies for solution in plain])
    for rounds in (1, 3):
        solutions = diffuco.solve(graphs, name, rounds=rounds, **options)
        assert all(solution.feasible for solution in solutions)
        later = np.array([solution.energies for solution in solutions])
        assert (later <= energies + 1e-3).all()
        energies = later
    if name in ("mis", "max-cut", "mds"):  # for the others, the first samples of such graphs are the best there are
        assert (energies < np.array([solution.energies for solution in plain]) - 1e-3).any()


def test_rounds_improve_a_large_sparse_graph():
    graph = geometric_graph(3000, 6.0, np.random.default_rng(0))
    options = {"model": "max-cut-ba-small", "samples": 1, "step_factor": 1, "refine": 0, "device": "cpu"}
    assert diffuco.solve(graph, "max-cut", rounds=4, **options).objective > (
        diffuco.solve(graph, "max-cut", **options).objective + 20
    )


def test_rounds_below_zero_are_refused():
    with pytest.raises(diffuco.InputError, match="rounds is -1; give a whole number, 0 or more"):
        diffuco.solve([(0, 1)], "mis", rounds=-1)


def test_evaluations_count_steps_and_rounds():
    graph = er_graph(30, 0.2, np.random.default_rng(0))
    measured = diffuco.evaluate([graph], model="mis-rb-small", samples=1, step_factor=1, rounds=2, device="cpu")
    assert measured.solver["rounds"] == 2
    assert measured.solver["evaluations"] == 8 + 2 * round_level(8, 60)


@pytest.mark.parametrize(("told", "percent"), [(40, 40), (None, 60), (0, 60), ("half", 60)])
def test_a_card_tells_how_far_rounds_go_back(told, percent):
    model = diffuco.load_model("mis-rb-small")
    solver = diffuco.Solver("mis", replace(model, card=model.card | {"round_percent": told}), device="cpu")
    assert solver.sampler.round_level == round_level(8, percent)


@pytest.mark.gpu
def test_rounds_are_recorded_on_a_gpu():
    rng = np.random.default_rng(0)
    graphs = [er_graph(100, 0.1, rng) for _ in range(8)]
    options = {"model": "mis-rb-small", "samples": 4, "rounds": 6, "refine": 0, "device": "cuda"}
    first, second = (diffuco.solve(graphs, "mis", seed=1, **options) for _ in range(2))
    assert [one.energies for one in first] == [other.energies for other in second]
    plain = diffuco.solve(graphs, "mis", seed=1, **options | {"rounds": 0})
    assert np.mean([s.energies for s in first]) < np.mean([s.energies for s in plain])
