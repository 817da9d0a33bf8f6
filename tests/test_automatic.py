"""The method auto: what is proven says so, the rest is searched as measurements advise, and notes say why."""

import itertools
import json
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

import diffuco
import oracle
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.families import geometric_graph, grid_graph, tree_graph
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import ba_graph, er_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import auto as automatic
from diffuco.methods import get_method, proofs
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.auto import Search, plan
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.enumeration import MAX_NODES
from diffuco.methods.exact import ExactResult
from diffuco.methods.highs import Highs
from diffuco.pretrained.choice import choose_model, choose_models
from diffuco.problems import all_problems, get_problem, without_ignored_weights

PROBLEMS = [problem.name for problem in all_problems()]


@pytest.fixture
def without_proofs(monkeypatch):
    for problem in all_problems():
        monkeypatch.setattr(type(problem), "proof_nodes", -1)
        monkeypatch.setattr(type(problem), "proof_edges", -1)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_small_graphs_are_solved_to_the_proven_optimum(problem, monkeypatch):
    monkeypatch.setattr(proofs, "EXACT_S", 60.0)  # a busy machine may need more than a second
    dataset = "qubo-tiny" if problem == "qubo" else "ba-tiny"
    graphs = get_dataset(dataset).graphs("validation", 2)
    expected = diffuco.solve(graphs, problem, method="highs")
    for solution, exact in zip(diffuco.solve(graphs, problem, method="auto", device="cpu"), expected, strict=True):
        assert solution.objective == pytest.approx(exact.objective)
        assert solution.optimal
        prover = "clique-search" if problem == "max-clique" else "cp-sat"
        assert solution.found_by == ("enumeration" if solution.graph.num_nodes <= MAX_NODES else prover)
        assert solution.energies == [(-1 if get_problem(problem).sense == "max" else 1) * solution.objective]


@pytest.mark.parametrize("problem", ["mis", "mvc", "max-clique", "mds"])
def test_small_graphs_with_node_weights_too(problem, monkeypatch):
    monkeypatch.setattr(proofs, "EXACT_S", 60.0)
    rng = np.random.default_rng(0)
    plain = get_dataset("ba-tiny").graphs("validation", 2)
    graphs = [replace(graph, node_weights=rng.integers(0, 50, graph.num_nodes) / 4) for graph in plain]
    expected = diffuco.solve(graphs, problem, method="highs")
    for solution, exact in zip(diffuco.solve(graphs, problem, method="auto", device="cpu"), expected, strict=True):
        assert (solution.found_by, solution.optimal) == ("cp-sat", True)
        assert solution.objective == pytest.approx(exact.objective)
    exactly = replace(plain[0], node_weights=rng.random(plain[0].num_nodes))
    (annealed,) = diffuco.solve([exactly], problem, method="auto", device="cpu")
    assert (annealed.found_by, annealed.optimal) == ("anneal", False)
    assert annealed.objective == pytest.approx(diffuco.solve([exactly], problem, method="highs")[0].objective)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_is_not_proven_is_searched(problem, without_proofs):
    graphs = get_dataset("qubo-tiny" if problem == "qubo" else "rb-tiny").graphs("validation", 2)
    for solution in diffuco.solve(graphs, problem, method="auto", device="cpu", seed=2):
        assert (solution.found_by, solution.optimal, solution.seed) == ("anneal", False, 2)
        assert get_problem(problem).check(solution.graph, solution.chosen).feasible


def test_proofs_are_given_up_where_they_fail_except_on_graphs_with_fewer_edges(monkeypatch):
    tried = []

    def fail(problem, graph, seed, limit_s):
        tried.append((graph.num_edges, limit_s))

    monkeypatch.setattr(proofs, "try_proof", fail)
    graphs = sorted(get_dataset("rb-tiny").graphs("validation", 5), key=lambda graph: graph.num_edges)
    edges = [graph.num_edges for graph in graphs]
    solutions = diffuco.solve(graphs, "mis", method="auto", device="cpu", time_limit_s=0.05)
    assert tried == [(number, 0.025) for number in edges[: proofs.PATIENCE]]
    assert [solution.graph for solution in solutions] == graphs
    tried.clear()
    diffuco.solve([*graphs[3:], *graphs[:3]], "mis", method="auto", device="cpu", time_limit_s=0.05)
    assert [number for number, _ in tried] == [edges[3], edges[4], edges[0]]


def test_large_graphs_and_missing_solvers_are_not_tried(monkeypatch):
    monkeypatch.setattr(CpSat, "prove", None)
    monkeypatch.setattr(Highs, "prove", None)
    dense = er_graph(500, 0.1, np.random.default_rng(0))
    assert not diffuco.solve([dense], "mis", method="auto", device="cpu")[0].optimal
    monkeypatch.setattr("diffuco.methods.cp_sat.find_spec", lambda _: None)
    monkeypatch.setattr(Highs, "missing", lambda _: "a solver")
    assert not diffuco.solve([get_dataset("rb-tiny").graph("test", 0)], "mis", method="auto", device="cpu")[0].optimal
    assert get_method("auto").missing() is None


@pytest.mark.parametrize("problem", ["mis", "mvc", "mds"])
def test_large_sparse_graphs_are_proven_where_presolve_solves_them(problem):
    tree = tree_graph(3000, 20, 0.05, np.random.default_rng(0))
    (solution,) = diffuco.solve([tree], problem, device="cpu")
    assert (solution.optimal, solution.found_by, solution.feasible) == (True, "enumeration", True)  # nothing is left
    assert solution.bound == solution.objective
    other = {"mis": "mvc", "mvc": "mis"}.get(problem)
    if other:
        assert diffuco.solve(tree, other, device="cpu").objective == 3000 - solution.objective


def test_large_graphs_without_loose_ends_are_not_given_to_a_solver():
    rng = np.random.default_rng(0)
    full, loose = er_graph(20_000, 8 / 20_000, rng), er_graph(20_000, 4 / 20_000, rng)
    grid = Graph.from_edges(list(nx.convert_node_labels_to_integers(nx.grid_2d_graph(100, 110)).edges))
    hubs = ba_graph(20_000, 4, rng)
    leaves = Graph.from_edges([*hubs.edges.tolist(), *((node, 20_000 + node) for node in range(4000))])
    assert [proofs.can_shrink(graph) for graph in (full, hubs, loose, grid, leaves)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert proofs.can_shrink(er_graph(5000, 8 / 5000, rng))
    for problem in ("mis", "mds"):
        assert not proofs.may_be_proven(get_problem(problem), full, 60.0)
        assert proofs.may_be_proven(get_problem(problem), loose, 1.0)


@pytest.mark.usefixtures("_whole_graphs")
def test_graphs_without_loose_ends_and_triangles_are_only_bounded(monkeypatch):
    rng, mds = np.random.default_rng(0), get_problem("mds")
    full, hubs, mesh = er_graph(5000, 8 / 5000, rng), ba_graph(5000, 4, rng), geometric_graph(5000, 8.0, rng)
    assert [proofs.is_promising(graph) for graph in (full, hubs, mesh)] == [False, False, True]
    dense, flat = geometric_graph(5000, 14.0, rng), grid_graph(5000, 0.1, rng, triangles=True)
    assert [proofs.is_promising(graph) for graph in (dense, flat)] == [False, False]
    assert proofs.is_promising(er_graph(1500, 8 / 1500, rng))
    assert proofs.is_promising(er_graph(5000, 4 / 5000, rng))
    assert [proofs.proof_limit(mds, mesh, limit_s) for limit_s in (2.0, 10.0, None)] == [1.0, 5.0, 3.5]
    assert [proofs.proof_limit(mds, full, limit_s) for limit_s in (2.0, 10.0)] == [0.0, 0.5]
    assert proofs.proof_limit(mds, full, None) == pytest.approx(0.35)
    monkeypatch.setattr(proofs, "BRIEF", 0.4)
    solution = diffuco.solve(full, "mds", device="cpu", time_limit_s=1.0)
    assert (solution.found_by, solution.optimal) == ("anneal", False)
    assert 0 < solution.gap < 0.3


def test_large_graphs_with_triangles_are_tried_if_there_is_time():
    mis, mds, cut = map(get_problem, ("mis", "mds", "max-cut"))
    mesh = geometric_graph(12_000, 8.0, np.random.default_rng(0))
    assert not proofs.can_shrink(mesh)
    assert [proofs.proof_limit(mis, mesh, limit_s) for limit_s in (None, 10.0, 20.0)] == [0.0, 0.0, 10.0]
    assert [proofs.proof_limit(problem, mesh, 60.0) for problem in (mds, cut)] == [0.0, 0.0]
    assert [proofs.may_be_proven(mis, mesh, limit_s) for limit_s in (0.0, 9.0, 10.0)] == [False, False, True]


@pytest.mark.usefixtures("_whole_graphs")
def test_dominating_sets_of_dense_communities_are_proven():
    within = [pair for first in range(0, 480, 40) for pair in itertools.combinations(range(first, first + 40), 2)]
    graph = Graph.from_edges(within + [(node, (node + 47) % 480) for node in range(0, 480, 8)], 480)
    assert not proofs.is_small(get_problem("mds"), graph)
    assert not proofs.is_sparse(graph)
    solution = diffuco.solve(graph, "mds", device="cpu", time_limit_s=20.0)
    assert (solution.optimal, solution.found_by) == (True, "cp-sat")
    assert proofs.proof_limit(get_problem("mds"), graph, 20.0) == 10
    assert proofs.proof_limit(get_problem("mis"), graph, 20.0) == 0


@pytest.mark.usefixtures("_whole_graphs", "_highs_alone")
def test_what_an_exact_solver_found_without_a_proof_counts_if_it_is_better(monkeypatch):
    graph = tree_graph(600, 20, 0.3, np.random.default_rng(0))
    best = diffuco.solve(graph, "mis", method="highs")
    worse = best.chosen.copy()
    worse[np.flatnonzero(worse)[:5]] = False
    limits = []

    def tried(chosen):
        def prove(self, problem, graph, *, time_limit_s, seed=0):
            limits.append(time_limit_s)
            return ExactResult(float(chosen.sum()), 599.0, False, chosen, 0.1)

        return prove

    monkeypatch.setattr(FlipAnnealing, "solve", lambda *given: [replace(best, chosen=worse, objectives=[1.0])])
    monkeypatch.setattr(Highs, "prove", tried(best.chosen))
    solution = diffuco.solve(graph, "mis", device="cpu")
    assert (solution.objective, solution.found_by) == (best.objective, "highs")
    assert (solution.optimal, solution.bound, solution.reason) == (
        *(False, 599.0),
        "highs was ahead of highs, without a proof",
    )
    monkeypatch.undo()
    monkeypatch.setattr(Highs, "prove", tried(np.zeros(600, dtype=bool)))
    solution = diffuco.solve(graph, "mis", device="cpu", time_limit_s=2.0)
    assert (solution.found_by, solution.bound) == ("anneal", 599.0)
    assert solution.objective >= 0.98 * best.objective
    diffuco.solve(graph, "mis", device="cpu", time_limit_s=0.1)
    given = [proofs.EXACT_S + 600 / proofs.SPARSE_NODES_PER_S, 1.0]  # none within 0.1 s
    assert limits == pytest.approx(given, abs=0.01)


@pytest.mark.usefixtures("_whole_graphs", "_highs_alone")
@pytest.mark.parametrize("is_better", [True, False])
def test_seconds_are_those_of_the_proof_that_was_tried_and_of_the_search(monkeypatch, is_better):
    graph = tree_graph(600, 20, 0.3, np.random.default_rng(0))
    best = diffuco.solve(graph, "mis", method="highs")
    chosen = best.chosen if is_better else np.zeros(600, dtype=bool)
    searched = replace(best, chosen=np.zeros(600, dtype=bool), seconds={"load": 0.0, "sample": 5.0, "decode": 0.0})

    def prove(self, problem, graph, *, time_limit_s, seed=0):
        time.sleep(0.3)
        return ExactResult(float(chosen.sum()), 599.0, False, chosen, 0.3)

    monkeypatch.setattr(Highs, "prove", prove)
    monkeypatch.setattr(FlipAnnealing, "solve", lambda *given: [searched])
    solution = diffuco.solve(graph, "mis", device="cpu")
    assert (solution.chosen == chosen).all()
    assert 5.3 <= sum(solution.seconds.values()) < 7


def test_weights_that_one_exact_solver_does_not_take_go_to_the_next(monkeypatch):
    monkeypatch.setattr(automatic, "core_of", lambda *_, **_options: None)
    graph = tree_graph(500, 20, 0.1, np.random.default_rng(0))
    weighted = replace(graph, node_weights=np.random.default_rng(0).random(500))  # too many digits for CP-SAT
    names = [solver.name for solver in proofs.provers(get_problem("mis"), weighted)]
    assert names == ["cp-sat", "highs"]
    assert diffuco.solve(weighted, "mis", device="cpu").found_by == "highs"


def test_sparse_graphs_go_to_cp_sat_if_they_are_small_and_to_highs_if_they_are_large():
    for num_nodes, name in ((4000, "cp-sat"), (4001, "highs")):
        graph = er_graph(num_nodes, 3 / num_nodes, np.random.default_rng(0))
        assert next(proofs.provers(get_problem("mds"), graph)).name == name


def test_weights_that_no_exact_solver_takes_are_annealed():
    pairs = list(itertools.combinations(range(11), 2))
    graph = Graph.from_edges(pairs, edge_weights=[0.1234567890123456, *[2] * (len(pairs) - 1)])
    assert graph.num_nodes > MAX_NODES
    (solution,) = diffuco.solve([graph], "max-cut", method="auto", device="cpu")
    assert (solution.found_by, solution.objective) == ("anneal", 2 * 5 * 6)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_few_nodes_are_proven_whatever_they_weigh(problem):
    rng, known = np.random.default_rng(5), get_problem(problem)
    for scale in (1e-12, 1.0, 1e18):
        edges = [pair for pair in itertools.combinations(range(6), 2) if rng.random() < 0.6]
        weights = {"edge_weights": scale * rng.random(len(edges)), "node_weights": scale * rng.random(6)}
        graph = without_ignored_weights(known, Graph.from_edges(edges, 6, **weights))
        solution = diffuco.solve(graph, problem)
        assert (solution.found_by, solution.optimal, solution.bound) == ("enumeration", True, solution.objective)
        assert solution.objective == pytest.approx(known.sign * oracle.energies(known, graph).min(), rel=1e-12)


def test_samples_are_for_large_graphs_like_those_of_a_model_a_gpu_and_milliseconds():
    small, large = (get_dataset(name).graph("validation", 0) for name in ("ba-small", "ba-large"))
    unlike = get_dataset("rb-large").graph("validation", 0)
    cuda, problem = torch.device("cuda"), get_problem("max-cut")
    for device, limit_s, why in ((torch.device("cpu"), 0.001, "on a CPU"), (cuda, 1.0, "10 ms"), (cuda, None, "10 ms")):
        searches = plan(problem, [small, large, unlike], device, limit_s)
        assert [search.model for search in searches] == [None] * 3
        assert all(why in search.reason for search in searches)
    brief = plan(problem, [small, large, unlike], cuda, 0.001)
    assert [search.model for search in brief] == [None, "max-cut-ba-large", None]
    assert "fewer than 500 nodes" in brief[0][1]
    assert "trained on other graphs" in brief[2][1]
    assert plan(problem, [], cuda, 0.001) == []
    (independent,) = plan(get_problem("mis"), [unlike], cuda, 0.001)
    expected = f"for mis {searches[0].reason.removeprefix('with more than 10 ms per graph ')}"
    assert independent == Search(None, expected)


def test_graphs_are_like_those_of_a_model_by_size_density_and_weights():
    like, unlike = get_dataset("rb-small").graph("validation", 0), get_dataset("ba-giant").graph("validation", 0)
    weighted = Graph.from_edges(like.edges, edge_weights=range(1, like.num_edges + 1))
    assert [choice.is_alike for choice in choose_models("mis", [like, unlike])] == [True, False]
    assert [choice.is_alike for choice in choose_models("qubo", get_dataset("qubo-50-150").graphs("test", 2))] == [
        True
    ] * 2
    assert not choose_model("max-cut", [weighted]).is_alike
    assert choose_model("mis", [weighted]).is_alike  # which knows no edge weights
    assert not choose_model("mis", [replace(like, node_weights=np.arange(like.num_nodes))]).is_alike


@pytest.mark.usefixtures("_whole_graphs")
def test_a_model_serves_where_it_pays(monkeypatch, without_proofs):
    search = Search("mis-rb-small", "it pays")
    monkeypatch.setattr(automatic, "plan", lambda problem, graphs, *_: [search] * len(graphs))
    done: list[int] = []
    graphs = get_dataset("rb-tiny").graphs("validation", 2)
    solutions = diffuco.solve(graphs, "mis", method="auto", device="cpu", on_solved=done.append)
    expected = [("mis-rb-small", "it pays", 1000, 8)] * 2
    assert [(s.found_by, s.reason, s.sweeps, len(s.energies)) for s in solutions] == expected
    assert sum(done) == 2


def test_without_or_tools_highs_proves(run, house, monkeypatch):
    monkeypatch.setattr("diffuco.methods.cp_sat.find_spec", lambda _: None)
    monkeypatch.setattr(proofs, "MAX_NODES", 0)
    for problem, prover in (("mis", "highs"), ("max-clique", "clique-search")):  # our own search needs neither
        outcome = run("solve", problem, house)
        assert (outcome.code, outcome.err) == (0, f"note: proven optimal by {prover}\n")


def test_command_takes_it_unless_told_otherwise(run, house):
    outcome = run("solve", "mis", house)
    assert outcome.code == 0
    assert outcome.err == "note: proven optimal by enumeration\n"
    assert "yes, optimal" in outcome.out
    record = json.loads(run("solve", "mis", house, "--method", "auto", "--json").out)
    assert (record["optimal"], record["found_by"], record["sweeps"]) == (True, "enumeration", 0)
    assert (record["reason"], record["bound"]) == ("proven optimal by enumeration", record["objective"])
    assert json.loads(run("solve", "mis", house, "--samples", 2, "--json").out)["optimal"] is False


def test_command_shows_the_bound_of_what_is_not_proven(run, house, monkeypatch):
    def interrupted(self, problem, graph, **_):
        return ExactResult(1.0, 2.5, False, np.arange(graph.num_nodes) == 0, 0.1)

    assert (
        "bound (gap)" not in run("solve", "mis", house, "--method", "highs").out
    )  # a proven objective is its own bound
    monkeypatch.setattr(Highs, "prove", interrupted)
    outcome = run("solve", "mis", house, "--method", "highs")
    assert "bound (gap)" in outcome.out
    assert "2.5 (150.0 %)" in outcome.out
    assert "yes, optimal" not in outcome.out
    assert "time was too short for a proof" in outcome.err
    record = json.loads(run("solve", "mis", house, "--method", "highs", "--json").out)
    assert (record["optimal"], record["bound"], record["gap"]) == (False, 2.5, 1.5)
    (solution,) = diffuco.solve([house], "mis", method="highs")
    assert (solution.gap, replace(solution, bound=None).gap, replace(solution, bound=1.0).gap) == (1.5, None, 0.0)


def test_command_says_what_found_each_answer_and_why(run, tmp_path, house):
    write_graph(get_dataset("ba-small").graph("validation", 0), tmp_path / "larger.clq")
    outcome = run("solve", "max-cut", house, tmp_path / "larger.clq")
    assert "Maximum Cut, by enumeration, anneal" in outcome.out
    notes = outcome.err.splitlines()
    assert notes[0] == "note: 1 of 2 graphs proven optimal by enumeration"
    assert notes[1].startswith("note: 1 of 2 graphs solved by anneal: on a CPU")
    assert len(notes) == 2


def test_command_says_which_model_it_takes(run, house):
    outcome = run("solve", "mds", house, "--samples", 1)
    assert "the closest of the" in outcome.err
    assert outcome.err.startswith("note: solved by mds-")
    assert len(outcome.err.splitlines()) == 1
    assert run("solve", "mds", house, "--model", "mds-ba-small").err == ""


def test_it_can_be_evaluated(run):
    options = ("--method", "auto", "--problem", "mis", "--dataset", "rb-tiny", "--count", 3)
    record = json.loads(run("evaluate", *options, "--reference", "best-known", "--json", "--device", "cpu").out)
    assert record["reference"]["gap"] == 0
