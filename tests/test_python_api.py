"""The package as Python programs use it: one solver in many threads, watched steps, graphs of other packages."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

import diffuco
from diffuco.foundation.errors import InputError
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.solver import Solver

CYCLE = networkx.cycle_graph(7)


def both_directions(source: networkx.Graph) -> torch.Tensor:
    edges = torch.tensor(list(source.edges))
    return torch.cat([edges, edges.flip(1)]).T


@pytest.fixture(scope="module")
def solver(models) -> Solver:
    return Solver("mis", models["mis"], device="cpu")


def random_graphs(count: int) -> list[Graph]:
    rng = np.random.default_rng(0)
    return [er_graph(int(rng.integers(20, 60)), 0.2, rng) for _ in range(count)]


@pytest.mark.parametrize(
    "convert",
    [
        lambda source: source,
        lambda source: pytest.importorskip("igraph").Graph.from_networkx(source),
        lambda source: SimpleNamespace(edge_index=both_directions(source), num_nodes=len(source)),
        lambda source: scipy.sparse.csr_array(networkx.to_scipy_sparse_array(source)),
        networkx.to_numpy_array,
        lambda source: np.array(source.edges),
        lambda source: list(source.edges),
    ],
    ids=["networkx", "igraph", "PyG", "scipy", "adjacency", "edge array", "pairs"],
)
def test_graphs_of_every_kind_give_the_same_answer(solver, models, convert):
    source = convert(CYCLE)
    (expected,) = solver.solve([Graph.from_edges(list(CYCLE.edges))])
    (found,) = solver.solve([source])
    alone = diffuco.solve(source, "mis", model=models["mis"], device="cpu")
    assert found.nodes == alone.nodes == expected.nodes
    assert found.energies == expected.energies


def test_every_public_name_is_there_and_documented():
    pytest.importorskip("dimod")
    for name in diffuco.__all__:
        assert getattr(diffuco, name).__doc__, name
    assert set(diffuco.__all__) < set(dir(diffuco))


def test_threads_share_a_solver_and_get_what_one_thread_gets(solver):
    graphs = random_graphs(12)

    def energies(position: int) -> list[float]:
        (solution,) = solver.solve([graphs[position]], samples=3, seed=position)
        return solution.energies

    serial = [energies(position) for position in range(len(graphs))]
    with ThreadPoolExecutor(max_workers=6) as pool:
        for _ in range(3):
            assert list(pool.map(energies, range(len(graphs)))) == serial


def test_threads_may_watch_while_others_solve(solver):
    graphs = random_graphs(6)

    def watched(position: int) -> list[list[float]]:
        return [step.energies.tolist() for step in solver.stream(graphs[position], samples=2, seed=position)]

    serial = [watched(position) for position in range(len(graphs))]
    with ThreadPoolExecutor(max_workers=6) as pool:
        others = [pool.submit(solver.solve, graphs, seed=seed) for seed in range(3)]
        assert list(pool.map(watched, range(len(graphs)))) == serial
        assert all(other.result() for other in others)


def test_all_samples_are_kept_beside_the_best(solver):
    (graph,) = random_graphs(1)
    (solution,) = solver.solve([graph], samples=5)
    assert solution.states.shape == (graph.num_nodes, 5)
    assert any(np.array_equal(solution.chosen, state) for state in solution.states.T)
    assert solution.states.sum(axis=0).tolist() == solution.objectives


@pytest.mark.parametrize("edge_probability", [0.02, 0.5], ids=["sparse", "dense"])
def test_stream_goes_from_noise_to_the_samples(solver, edge_probability):
    graph = er_graph(60, edge_probability, np.random.default_rng(1))
    steps = list(solver.stream(graph, samples=3, step_factor=2, seed=4))
    assert [step.index for step in steps] == list(range(5))
    assert all(step.num_steps == 4 and step.states.shape == (60, 3) for step in steps)
    for step in steps:
        inside = (step.states[graph.edges[:, 0]] & step.states[graph.edges[:, 1]]).sum(axis=0)
        assert step.energies == pytest.approx(1.01 * inside - step.states.sum(axis=0), abs=1e-4)
    (samples,) = solver.solve([graph], samples=3, step_factor=2, seed=4, decode="none")
    assert np.array_equal(samples.states, steps[-1].states)


def test_stream_of_a_qubo_takes_a_matrix(models):
    matrix = np.array([[-3.0, 4.0], [0.0, -1.0]])
    last = list(Solver("qubo", models["qubo"], device="cpu").stream(matrix, samples=2))[-1]
    for state, energy in zip(last.states.T.astype(float), last.energies, strict=True):
        assert energy == pytest.approx(state @ matrix @ state)


def test_stream_refuses_options_before_the_first_step(solver):
    with pytest.raises(InputError, match="samples is 0"):
        solver.stream([(0, 1)], samples=0)


def test_a_shared_folder_solves_like_the_model_it_came_from(solver, models, tmp_path):
    diffuco.save_model(diffuco.load_model(models["mis"]), tmp_path / "mine")
    again = diffuco.solve(CYCLE, "mis", model=tmp_path / "mine", device="cpu")
    assert again.energies == solver.solve([CYCLE])[0].energies
    assert again.found_by == str(tmp_path / "mine")


def test_node_weights_of_networkx_and_of_a_graph_are_weighed(models):
    source = networkx.star_graph(4)
    networkx.set_node_attributes(source, {0: 9.5, 1: 2}, "weight")  # the others weigh 1
    graph = Graph.from_edges(list(source.edges), node_weights=[9.5, 2, 1, 1, 1])
    best = {"mis": ([0], 9.5), "mvc": ([1, 2, 3, 4], 5), "mds": ([1, 2, 3, 4], 5), "max-clique": ([0, 1], 11.5)}
    for problem, (nodes, objective) in best.items():
        for given in (source, graph):
            solution = diffuco.solve(given, problem, model=models[problem], device="cpu")
            assert (solution.nodes, solution.objective) == (nodes, objective)
            assert min(solution.energies) == pytest.approx(
                -objective if problem in ("mis", "max-clique") else objective
            )


def test_negative_node_weights_are_refused_before_any_step(solver):
    graph = Graph.from_edges([(0, 1)], node_weights=[1, -2])
    for call in (lambda: solver.solve([graph]), lambda: solver.stream(graph)):
        with pytest.raises(InputError, match="node 1 weighs -2; mis takes node weights from 0"):
            call()
