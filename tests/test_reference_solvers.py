"""The solvers behind references: true bounds, proofs only where there is one, and heuristics for what is left open."""

import itertools
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import diffuco
from diffuco.evaluation import reference_solvers
from diffuco.evaluation.reference_solvers import NUM_CUT_RUNS, solve_reference
from diffuco.evaluation.reference_store import Reference
from diffuco.evaluation.references import find_references
from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import get_method, sdp
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.enumeration import Enumeration
from diffuco.methods.exact import ExactResult
from diffuco.methods.highs import Highs
from diffuco.methods.linear import FloatingModel
from diffuco.problems import get_problem


def random_graph(num_nodes: int, seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in itertools.combinations(range(num_nodes), 2) if rng.random() < 0.5]
    return Graph.from_edges(pairs, num_nodes, edge_weights=rng.normal(size=len(pairs)))


def largest_cut(graph: Graph) -> float:
    sides = itertools.product([False, True], repeat=graph.num_nodes)
    return max(get_problem("max-cut").check(graph, np.array(side, dtype=np.bool_)).objective for side in sides)


# Bounds of cuts


@pytest.mark.parametrize("seed", range(6))
def test_no_cut_is_above_the_bound_however_bad_the_relaxation(seed, monkeypatch):
    graph = random_graph(9, seed)
    best = largest_cut(graph)
    tight = sdp.upper_bound(graph)
    assert tight >= best
    vectors = np.random.default_rng(seed).normal(size=(9, 4))
    monkeypatch.setattr(sdp, "relax", lambda *_: vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    assert sdp.upper_bound(graph) >= tight - 1e-3


def test_bounds_are_those_of_the_relaxation_where_it_is_known():
    for size in (5, 7, 31):
        cycle = Graph.from_edges([(i, (i + 1) % size) for i in range(size)])
        known = size * (1 + math.cos(math.pi / size)) / 2
        assert known <= sdp.upper_bound(cycle) == pytest.approx(known, rel=1e-3)
    assert sdp.upper_bound(Graph.from_edges([], 3)) == 0


def test_large_graphs_are_bounded_by_their_weights(monkeypatch):
    monkeypatch.setattr(sdp, "MAX_BOUND_NODES", 2)
    assert sdp.upper_bound(Graph.from_edges([(0, 1), (1, 2)], edge_weights=[1.5, -2])) == 1.5


# Cuts


def test_a_cut_that_meets_the_rounded_bound_is_proven():
    path = Graph.from_edges([(i, i + 1) for i in range(60)])
    known = solve_reference("max-cut", path, 0.5)
    assert (known.objective, known.bound, known.proven, known.solver) == (60, 60, True, "anneal")


def test_cuts_tell_how_many_runs_agree_and_are_not_proven_below_the_bound():
    graph = get_dataset("ba-small").graph("test", 0)
    known = solve_reference("max-cut", graph, 1.0)
    assert not known.proven
    assert known.objective < known.bound == math.floor(known.bound) < graph.num_edges
    assert 1 <= known.agreeing <= known.runs == NUM_CUT_RUNS


def test_bounds_of_cuts_with_fractions_are_not_rounded(monkeypatch):
    monkeypatch.setattr(reference_solvers, "EXACT_CUT_NODES", 2)
    triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)], edge_weights=[0.5, 0.5, 0.5])
    known = solve_reference("max-cut", triangle, 0.1)
    assert (known.objective, known.proven) == (1.0, False)
    assert known.bound == pytest.approx(1.125, abs=1e-3)


# Independent and dominating sets


@pytest.fixture
def left_open(monkeypatch):
    """CP-SAT finds one node, and no independent set is larger than the bound of that name."""
    bound = {"bound": 9.0}

    def prove(self, problem, graph, *, time_limit_s, seed=0):
        return ExactResult(1.0, bound["bound"], False, np.arange(graph.num_nodes) == 0, time_limit_s)

    monkeypatch.setattr(CpSat, "prove", prove)
    return bound


@pytest.mark.parametrize(("bound", "proven"), [(9.0, False), (2.0, True)])
def test_heuristics_search_what_is_left_open_and_prove_it_at_the_bound(monkeypatch, left_open, bound, proven):
    left_open["bound"] = bound
    monkeypatch.setattr(reference_solvers, "HEURISTICS", ("anneal",))
    monkeypatch.setattr(reference_solvers, "_version", lambda solver: solver)
    five_cycle = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
    known = solve_reference("mis", five_cycle, 0.2)
    assert known[:6] == (2.0, bound, proven, "anneal", "anneal", 0.2)


def test_kamis_searches_for_independent_sets_where_it_is_installed(monkeypatch, left_open):
    pytest.importorskip("chszlablib")
    graph = get_dataset("rb-tiny").graph("test", 0)
    known = solve_reference("mis", graph, 0.2)
    assert known.objective == 5.0  # as shipped
    assert (known.solver, known.bound, known.proven) == ("numvc", 5.0, True)  # its cliques prove what all had found
    for method in ("anneal", "numvc"):
        monkeypatch.setattr(type(get_method(method)), "missing", lambda _: "something")
    assert solve_reference("mis", graph, 0.2)[:4] == (5.0, 9.0, False, "kamis")
    monkeypatch.setattr(type(get_method("kamis")), "missing", lambda _: "KaMIS")
    assert solve_reference("mis", graph, 0.2).solver == "cp-sat"


@pytest.mark.parametrize("problem", ["mis", "max-clique", "mds", "max-cut", "qubo"])
def test_weights_with_too_many_digits_for_a_proof_are_annealed(monkeypatch, problem):
    monkeypatch.setattr(reference_solvers, "HEURISTICS", ("anneal",))
    graph = replace(random_graph(10, 0), node_weights=np.random.default_rng(0).uniform(1, 1000, 10))
    known = solve_reference(problem, graph, 0.2)
    optimum = Enumeration().prove(get_problem(problem), graph, time_limit_s=60.0).objective
    assert (known.objective, known.proven, known.solver) == (pytest.approx(optimum, rel=1e-4), False, "anneal")


def test_a_reference_needs_its_exact_solver(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    monkeypatch.setattr("diffuco.methods.cp_sat.find_spec", lambda _: None)
    with pytest.raises(InputError, match="exact solutions need OR-Tools"):
        solve_reference("mis", random_graph(10, 0), 0.2)


def test_quadratic_problems_that_cannot_be_proven_are_annealed():
    graph = get_dataset("qubo-50-150").graph("test", 1)
    known = solve_reference("qubo", graph, 0.4)
    assert (known.solver, known.proven) == ("anneal", False)
    (annealed,) = diffuco.solve([graph], "qubo", method="anneal", device="cpu")
    assert known.bound < known.objective
    assert known.objective == pytest.approx(annealed.objective, rel=0.01)


def test_weighted_cliques_that_are_left_open_are_annealed(left_open):
    triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], node_weights=[1.0, 1.0, 1.0, 5.0])
    assert solve_reference("max-clique", triangle, 0.2)[:4] == (6.0, 9.0, False, "anneal")


@pytest.mark.parametrize("problem", ["mis", "mds"])
def test_highs_proves_or_bounds(problem):
    graph = get_dataset("rb-small").graph("test", 2) if problem == "mis" else get_dataset("ba-small").graph("test", 0)
    optimum = {"mis": 22, "mds": 27}[problem]  # as shipped
    stopped = Highs().prove(get_problem(problem), graph, time_limit_s=1e-3)
    assert not stopped.proven
    assert get_problem(problem).check(graph, stopped.chosen).feasible
    low, high = sorted([stopped.objective, stopped.bound])
    assert low <= optimum <= high
    tiny = get_dataset("ba-tiny").graph("test", 0)
    solved = Highs().prove(get_problem(problem), tiny, time_limit_s=60.0)
    assert solved.proven
    assert solved.objective == solved.bound == {"mis": 12, "mds": 5}[problem]


@pytest.mark.parametrize("problem", ["mds", "mis", "max-cut", "qubo"])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_costs_less_than_a_priced_bound(problem, seed):
    graph, rng = random_graph(9, seed), np.random.default_rng(seed)
    weights = rng.integers(1, 9, 9) / 4
    graph = replace(graph, node_weights=weights, edge_weights=np.round(graph.edge_weights, 2))
    model = FloatingModel.of(get_problem(problem), graph)
    optimum = Enumeration().prove(get_problem(problem), graph, time_limit_s=60.0)
    cost = get_problem(problem).sign * optimum.objective * model.scale
    for best in (cost, cost + 100.0):
        assert model.priced_bound(best) <= cost + 1e-6


def test_a_bound_is_not_above_the_optimum_by_a_rounding():
    edges = [(0, 1), (0, 2), (0, 3), (0, 5), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4), (4, 5)]
    graph = Graph.from_edges(edges, node_weights=[0.0, 1000.0, 0.0, 2000.0, 4000.0, 1000.0])
    stopped = FloatingModel.of(get_problem("mds"), graph).result(None, None, finished=False, seconds=0.0)
    assert str(stopped.bound) == "0.0"  # the nodes of no weight dominate the others


def test_a_priced_bound_is_close_to_that_of_the_linear_program():
    model = FloatingModel.of(get_problem("mds"), get_dataset("ba-small").graph("test", 0))
    limit = linprog(model.cost, A_ub=model.linear.matrix, b_ub=model.linear.upper, bounds=(0, 1)).fun
    assert 0.97 * limit < model.priced_bound(27.0) <= limit + 1e-6


def test_a_cover_that_is_not_proven_has_a_bound():
    graph = ba_graph(3000, 4, np.random.default_rng(0))
    stopped = Highs().prove(get_problem("mds"), graph, time_limit_s=1e-3)
    assert not stopped.proven
    assert 270 < stopped.bound < 300 < stopped.objective


def test_large_dominating_sets_are_left_to_highs(monkeypatch):
    graph = get_dataset("ba-tiny").graph("test", 0)
    monkeypatch.setattr(reference_solvers, "CP_SAT_DOMINATION_NODES", 10)
    known = solve_reference("mds", graph, 60.0)
    assert (known.objective, known.proven, known.solver) == (5, True, "highs")


def test_whole_bounds_are_rounded_inwards_with_some_care():
    def bound(problem: str, value: float) -> float:
        known = reference_solvers.Reference(50.0, value, False, "highs", "1", 60.0, 1.0)
        return reference_solvers._whole(get_problem(problem), Graph.from_edges([(0, 1)]), known).bound

    assert [bound("mds", value) for value in (41.2, 42.0 + 1e-9, 42.0 - 1e-9)] == [42, 42, 42]
    assert [bound("max-cut", value) for value in (61.2, 61.0 - 1e-9, 61.0 + 1e-9)] == [61, 61, 61]
    assert bound("mds", -math.inf) == -math.inf


@pytest.mark.parametrize("problem", ["mis", "mvc", "max-clique", "mds"])
def test_references_of_graphs_with_node_weights(problem):
    rng = np.random.default_rng(0)
    graph = replace(random_graph(10, 1), node_weights=rng.integers(1, 9, 10) / 2, edge_weights=None)
    verdicts = [
        get_problem(problem).check(graph, np.array(bits)) for bits in itertools.product([False, True], repeat=10)
    ]
    best = max if problem in ("mis", "max-clique") else min
    (known,) = find_references(problem, [graph], time_limit_s=10)
    assert known.proven
    assert known.objective == best(verdict.objective for verdict in verdicts if verdict.feasible)


def test_a_bound_of_fractional_node_weights_is_not_rounded():
    graph = Graph.from_edges([(0, 1), (1, 2)], node_weights=[0.5, 1.25, 0.5])
    found = Reference(2.0, 0.9, False, "highs", "1", 1.0, 1.0)
    assert reference_solvers._whole(get_problem("mds"), graph, found).bound == 0.9
    assert reference_solvers._whole(get_problem("mds"), replace(graph, node_weights=None), found).bound == 1.0
