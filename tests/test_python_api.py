"""The package as Python programs use it: one solver in many threads, watched steps, graphs of other packages."""

import os
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

import diffuco
from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.sampler import Sampler
from diffuco.inference.solver import SampleOptions, Solver
from diffuco.methods import ModelMethod, all_methods, get_method
from diffuco.problems import Problem, all_problems, get_problem
from diffuco.solution.files import write_solution

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


def test_the_default_proves_and_options_of_models_ask_for_a_model(models):
    proven = diffuco.solve(CYCLE, "mis", device="cpu")
    assert (proven.objective, proven.optimal, proven.bound, proven.found_by) == (3, True, 3, "enumeration")
    for options in (
        {"samples": 2},
        {"step_factor": 1},
        {"decode": "ce-st"},
        {"token_size": 2},
        {"rounds": 1},
        {"refine": 0},
    ):
        sampled = diffuco.solve(CYCLE, "mis", device="cpu", **options)
        assert (sampled.found_by, sampled.optimal) == ("mis-sparse", False)
        assert sampled.reason.startswith("the closest of the ")
        assert len(sampled.energies) == options.get("samples", 8)
    mine = diffuco.solve(CYCLE, "mis", model=models["mis"], device="cpu")
    assert (mine.found_by, mine.reason) == (str(models["mis"]), "")


def test_methods_and_problems_may_be_objects(models):
    mine = ModelMethod(models["mis"], SampleOptions(samples=3))
    for method, samples in ((mine, None), (mine, 5)):
        solution = diffuco.solve(CYCLE, get_problem("mis", 1.5), method=method, samples=samples, device="cpu")
        assert (solution.found_by, len(solution.energies)) == (str(models["mis"]), samples or 3)
        assert solution.problem == get_problem("mis", 1.5)
    assert diffuco.solve(CYCLE, "mis", method=get_method("greedy")).found_by == "greedy"
    with pytest.raises(InputError, match="samples is for models and excludes the method greedy; give one of the two"):
        diffuco.solve(CYCLE, "mis", method=get_method("greedy"), samples=2)
    with pytest.raises(InputError, match="model is for models and excludes the method greedy"):
        diffuco.solve(CYCLE, "mis", method="greedy", model=models["mis"])
    with pytest.raises(InputError, match="a time limit decides on samples"):
        diffuco.solve(CYCLE, "mis", samples=2, time_limit_s=1.0)


def test_weights_that_are_ignored_are_told_once():
    graph = Graph.from_edges([(0, 1), (1, 2)], edge_weights=[1, 2])
    for options in ({"method": "auto"}, {"method": "diffuco"}, {"method": "egn"}, {"samples": 1}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            diffuco.solve([graph, graph], "mis", device="cpu", **options)
        assert [(w.category, w.filename) for w in caught] == [(GraphWarning, __file__)]


@dataclass(frozen=True)
class Balance(Problem):
    """Split the nodes so that both sides hold as many: no form, no check, no model, only an energy."""

    name = "balance"

    def energy(self, batch, x):
        sizes, chosen = batch.sizes[:, None].to(x.dtype), batch.graph_sum(x)
        pairs = 0.5 * (chosen.square() - batch.graph_sum(x.square()))
        return sizes.square() / 4 - (sizes - 1) * chosen + 2 * pairs


def test_a_problem_with_nothing_but_an_energy_is_solved():
    for method in ("auto", "greedy", "anneal", "rlsa", "mfa"):
        solution = diffuco.solve(networkx.path_graph(6), Balance(), method=method, device="cpu", time_limit_s=0.3)
        assert (solution.objective, solution.feasible, len(solution.nodes)) == (0, True, 3)
        assert solution.to_dict()["problem"] == "balance"
    assert diffuco.check(networkx.path_graph(6), Balance(), [0, 1]) == (1.0, 0)
    for method in ("cp-sat", "sdp", "diffuco", "sa"):
        with pytest.raises(InputError, match=f"'{method}' does not solve balance; choose one of auto, greedy, anneal"):
            diffuco.solve(networkx.path_graph(6), Balance(), method=method)


def rank(problem: Problem, verdict) -> tuple[bool, float]:
    return not verdict.feasible, problem.sign * verdict.objective


@pytest.mark.parametrize("problem", all_problems(), ids=str)
def test_an_answer_is_worse_neither_than_the_start_nor_than_without_it(problem):
    graphs = get_dataset("qubo-50-150" if problem.name == "qubo" else "ba-small").graphs("validation", 2)
    plain = diffuco.solve(graphs, problem, method="greedy")
    annealed = diffuco.solve(graphs, problem, method="anneal", device="cpu")
    rng = np.random.default_rng(0)
    poor = [rng.random(graph.num_nodes) < 0.5 for graph in graphs]
    for starts in (annealed, poor, [np.zeros(graph.num_nodes, dtype=bool) for graph in graphs]):
        found = diffuco.solve(graphs, problem, method="greedy", start=starts, device="cpu")
        assert [solution.graph for solution in found] == graphs
        for solution, start, without in zip(found, starts, plain, strict=True):
            given = diffuco.check(solution.graph, problem, start)
            assert solution.feasible
            assert rank(problem, solution) <= min(rank(problem, given), rank(problem, without))
            assert solution.found_by in ("greedy", "anneal")
            if solution.found_by == "anneal":
                assert solution.reason == "annealing from the given solution was ahead of greedy"


def test_rounds_go_on_from_the_start(models, monkeypatch):
    graph, seen = er_graph(30, 0.2, np.random.default_rng(0)), []
    best = diffuco.solve(graph, "mis", method="anneal", device="cpu")
    again = Sampler.draw_again
    monkeypatch.setattr(Sampler, "draw_again", lambda *args, **told: (seen.append(args[2]), again(*args, **told))[1])
    options = {"model": models["mis"], "samples": 3, "rounds": 2, "refine": 0, "device": "cpu"}
    solution = diffuco.solve(graph, "mis", start=best, **options)
    assert solution.objective >= best.objective
    assert len(seen) == 4
    assert (seen[2].bool().numpy() == best.chosen[:, None]).all()


def test_a_start_is_a_solution_of_any_kind(tmp_path):
    graph = Graph.from_edges([(i, i + 1) for i in range(8)], labels=list("abcdefghi"))
    best = diffuco.solve(graph, "mis", method="highs")
    write_solution(tmp_path / "best.sol", best.to_dict())

    class Nothing(type(get_method("greedy"))):
        name = "nothing"

        def search(self, problem, graph, seed, deadline):
            return np.zeros(graph.num_nodes, dtype=bool)

    for start in (best, best.nodes, best.chosen, tmp_path / "best.sol", str(tmp_path / "best.sol")):
        solution = diffuco.solve(graph, "mis", method=Nothing(), start=start, device="cpu")
        assert (solution.objective, solution.found_by, solution.seed) == (5, "anneal", 0)
    assert diffuco.solve([graph, graph], "mis", method=Nothing(), start=[best, []])[0].objective == 5


def test_the_bound_of_the_method_is_kept_with_a_better_start():
    graph = get_dataset("rb-small").graph("test", 2)
    best = diffuco.solve(graph, "mis", method="cp-sat")
    solution = diffuco.solve(graph, "mis", method="highs", time_limit_s=1.0, start=best, device="cpu")
    assert solution.objective == best.objective <= solution.bound


@pytest.mark.parametrize(
    ("start", "complaint"),
    [
        ("nowhere.sol", "every graph needs its own start; give a list of 2 solutions"),
        ([[0]], "give a list of 2 solutions"),
        ([[0], [9]], "the graph has no node 9"),
    ],
)
def test_starts_that_do_not_fit_are_refused_before_any_work(monkeypatch, start, complaint):
    monkeypatch.setattr(type(get_method("greedy")), "solve", None)
    with pytest.raises(InputError, match=complaint):
        diffuco.solve([CYCLE, CYCLE], "mis", method="greedy", start=start)


def test_a_list_of_edges_is_one_graph_by_its_own_labels():
    solution = diffuco.solve([(1001, 2002), (2002, 3003)], "mds")
    assert (solution.graph.num_nodes, solution.nodes, solution.objective) == (3, [2002], 1)
    assert diffuco.solve([("Ann", "Bob", 2.5)], "max-cut").objective == 2.5
    assert [answer.objective for answer in diffuco.solve([[(1, 2)], [("a", "b"), ("b", "c")]], "mis")] == [1, 2]
    assert diffuco.solve({("a", "a"): -1, ("a", "b"): 3, ("b", "b"): -2}, "qubo").nodes == ["b"]
    assert diffuco.check([(1, 2), (2, 3)], "mvc", [2]).feasible
    assert diffuco.evaluate([[(1, 2), (2, 3)]], "mds", method="greedy").mean == 1
    with pytest.raises(InputError, match="several graphs as a list of such lists"):
        diffuco.Solver("mis", device="cpu").solve([(1, 2), (2, 3)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer versions of Python warn of forks with threads
def test_a_process_that_is_forked_after_a_solve_can_solve():
    graph = get_dataset("rb-small").graph("validation", 0)
    num_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        expected = diffuco.solve(graph, "mis", samples=1, step_factor=1, device="cpu").objective
        child = os.fork()
        if child == 0:
            found = diffuco.solve(graph, "mis", samples=1, step_factor=1, device="cpu").objective
            os._exit(0 if found == expected else 1)
        status = None
        for _ in range(600):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            time.sleep(0.1)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        assert status == 0
    finally:
        torch.set_num_threads(num_threads)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"seed": -1}, "seed is -1; give a whole number from 0 to"),
        ({"seed": 2**63}, "seed is 9223372036854775808; give"),
        ({"seed": None}, "seed is None; give"),
        ({"seed": "x"}, "seed is 'x'; give"),
        ({"time_limit_s": "3"}, "time limit is '3'; give seconds"),
        ({"device": None}, "device None cannot be used here; give"),
        ({"solutions": 2.5}, "solutions is 2.5; give a whole number"),
        ({"method": None}, "method None; give a name"),
        ({"model": 3}, "model 3; give a name"),
    ],
)
def test_options_of_the_wrong_kind_are_input_errors(options, hint):
    with pytest.raises(InputError, match=hint):
        diffuco.solve([(0, 1)], "mis", **options)


@pytest.mark.parametrize("weight", [1e308, -1.1e100])
def test_weights_whose_sum_may_be_infinite_are_refused(weight):
    weighted = networkx.Graph()
    weighted.add_weighted_edges_from([(0, 1, 1.0), (1, 2, weight)])
    wanted = r"edge weight number \d is -?1\.?1?e\+\d+; scale the weights to at most 1e\+100"
    for graph in (weighted, [(0, 1, 1.0), (1, 2, weight)], networkx.to_scipy_sparse_array(weighted)):
        with pytest.raises(InputError, match=wanted):
            diffuco.solve(graph, "max-cut")


@pytest.mark.parametrize("seed", [-1, 2**63, None])
def test_every_door_refuses_what_is_no_seed(models, seed):
    for ask in (
        lambda: diffuco.sample([(0, 1)], "mis", temperature=1.0, samples=2, model=models["mis"], seed=seed),
        lambda: diffuco.evaluate([[(0, 1)]], "mis", method="greedy", seed=seed),
        lambda: list(diffuco.compare([[(0, 1)]], "mis", ["greedy"], [0.1], seed=seed)),
    ):
        with pytest.raises(InputError, match="give a whole number from 0 to"):
            ask()


@pytest.mark.parametrize("method", [method.name for method in all_methods() if not method.missing()])
def test_every_method_takes_the_largest_seed(method):
    problem = next(problem for problem in all_problems() if get_method(method).solves(problem))
    limit_s = 0.1 if method in ("kamis", "online-mis") else None
    found = diffuco.solve(
        CYCLE, problem, method=method, seed=2**63 - 1, time_limit_s=limit_s, device="cpu", solutions=2
    )
    assert found[0].feasible
    assert diffuco.solve(CYCLE, problem, seed=np.int64(3)).to_dict()["seed"] == 3
