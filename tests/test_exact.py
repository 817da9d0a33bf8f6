import itertools
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import diffuco
from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.methods.clique import CliqueSearch
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.exact import ExactResult
from diffuco.methods.gurobi import Gurobi
from diffuco.methods.highs import Highs
from diffuco.problems import all_problems, get_problem

pytest.importorskip("ortools")

PROBLEMS = [problem.name for problem in all_problems()]
SOLVERS = [CpSat(), Highs(), Gurobi()]


def solve_exact(problem: str, graph: Graph, time_limit_s: float = 60.0) -> ExactResult:
    return CpSat().prove(get_problem(problem), graph, time_limit_s=time_limit_s)


def largest_clique(graph: Graph, time_limit_s: float = 60.0) -> ExactResult:
    return CliqueSearch().prove(get_problem("max-clique"), graph, time_limit_s=time_limit_s)


def random_graph(num_nodes: int, seed: int, scale: float) -> Graph:
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in itertools.combinations(range(num_nodes), 2) if rng.random() < 0.4]
    edge_weights = rng.integers(-9, 10, len(pairs)) * scale
    return Graph.from_edges(
        pairs, num_nodes, edge_weights=edge_weights, node_weights=rng.integers(-9, 10, num_nodes) * scale
    )


GRAPHS = {
    "empty": Graph.from_edges([], 0),
    "one-node": Graph.from_edges([], 1),
    "five-cycle": Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], 6),
    "integers": random_graph(9, seed=0, scale=1),
    "decimals": random_graph(8, seed=1, scale=0.25),
}


def best_of_all(problem: str, graph: Graph) -> float:
    subsets = itertools.product([False, True], repeat=graph.num_nodes)
    verdicts = [get_problem(problem).check(graph, np.array(bits, dtype=np.bool_)) for bits in subsets]
    best = min if get_problem(problem).sense == "min" else max
    return best(verdict.objective for verdict in verdicts if verdict.feasible)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_optimum_is_the_best_of_all_subsets(solver, problem, graph):
    if solver.missing():
        pytest.skip(f"{solver.name} is not installed")
    result = solver.prove(get_problem(problem), graph, time_limit_s=60.0)
    assert result.proven
    assert result.objective == pytest.approx(best_of_all(problem, graph))
    assert result.bound == result.objective
    assert get_problem(problem).check(graph, result.chosen).feasible


@pytest.mark.parametrize("problem", PROBLEMS)
def test_out_of_time_gives_a_feasible_solution_and_no_proof(problem):
    graph = get_dataset("er-200-500").graph("test", 0)
    result = solve_exact(problem, graph, time_limit_s=0.0)
    assert not result.proven
    assert get_problem(problem).check(graph, result.chosen).feasible
    sign = -1 if get_problem(problem).sense == "max" else 1
    assert sign * result.bound <= sign * result.objective


@pytest.mark.parametrize(("problem", "dataset"), [("mis", "rb-tiny"), ("max-cut", "ba-tiny"), ("qubo", "qubo-tiny")])
@pytest.mark.parametrize("method", ["cp-sat", "highs"])
def test_a_solution_that_is_proven_says_so(method, problem, dataset):
    graph = get_dataset(dataset).graph("test", 3)
    solution = diffuco.solve(graph, problem, method=method)
    assert solution.optimal
    assert solution.bound == solution.objective
    assert (solution.found_by, solution.reason) == (method, f"proven optimal by {method}")
    record = solution.to_dict()
    assert (record["optimal"], record["bound"], record["found_by"]) == (True, record["objective"], method)


@pytest.mark.parametrize("method", ["cp-sat", "highs"])
def test_a_solution_that_is_not_proven_has_a_bound_or_none(method):
    graph, optimum = get_dataset("rb-small").graph("test", 2), 22  # as shipped
    solution = diffuco.solve(graph, "mis", method=method, time_limit_s=1e-3)
    assert (solution.optimal, solution.reason) == (False, "the time was too short for a proof")
    assert solution.feasible
    assert solution.objective <= optimum
    assert solution.bound is None or optimum <= solution.bound
    assert solution.to_dict()["bound"] == solution.bound


def test_a_search_that_is_cut_tells_how_far_the_optimum_can_be():
    graph = get_dataset("rb-small").graph("test", 2)
    solution = diffuco.solve(graph, "mis", method="highs", time_limit_s=2.0)
    assert solution.objective <= 22 <= solution.bound < graph.num_nodes
    assert solution.optimal == (solution.bound == solution.objective)


def test_what_is_only_searched_has_no_bound():
    for options in ({"method": "greedy"}, {"method": "anneal"}, {"samples": 1}):
        solution = diffuco.solve(GRAPHS["five-cycle"], "mis", device="cpu", **options)
        assert (solution.optimal, solution.bound, solution.to_dict()["bound"]) == (False, None, None)


UNITS = [1e-299, 1e-19, 1e-10, 0.1, 1e19, 1e25]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_proofs_hold_in_any_unit_of_the_weights(solver, problem, unit):
    if solver.missing():
        pytest.skip(f"{solver.name} is not installed")
    graph = in_unit(GRAPHS["integers"], unit, signed=problem in ("max-cut", "qubo"))
    result = solver.prove(get_problem(problem), graph, time_limit_s=60.0)
    assert result.proven
    assert result.objective == pytest.approx(best_of_all(problem, graph), rel=1e-12, abs=0)


@pytest.mark.parametrize("solver", [CpSat(), Highs()], ids=lambda solver: solver.name)
@pytest.mark.parametrize("weights", [[1, 1 + 1e-12, 3e-13], [1e19, 1e-10, 1e-9], [np.pi, np.e, 1e-14]], ids=str)
def test_weights_of_very_different_size_are_never_proven_falsely(solver, weights):
    graph = Graph.from_edges([(0, 1), (1, 2)], node_weights=weights)
    try:
        result = solver.prove(get_problem("mis"), graph, time_limit_s=60.0)
    except InputError:
        return
    best = best_of_all("mis", graph)
    assert result.objective == best or not result.proven
    assert result.bound >= best


def in_unit(graph: Graph, unit: float, *, signed: bool) -> Graph:
    assert graph.edge_weights is not None
    assert graph.node_weights is not None
    node_weights = graph.node_weights if signed else np.abs(graph.node_weights)
    return replace(graph, edge_weights=graph.edge_weights * unit, node_weights=node_weights * unit)


def test_a_bound_holds_where_the_solver_takes_it_for_reached_too_early():
    edges = [(0, 1), (0, 2), (0, 4), (0, 7), (0, 9), (1, 2), (1, 8), (2, 9), (2, 11), (3, 9), (3, 11), (5, 8)]
    edges += [(5, 9), (5, 10), (7, 10), (7, 11)]
    weights = [-1e-8, 1e-10, 1e13, -1e7, -1e-11, -1e14, 1e6, 1e-9, 1e7, -1e-3, 1.0, -1e10, 1e-12, 1e8, 1e-6, -1e13]
    solution = diffuco.solve(Graph.from_edges(edges, 12, edge_weights=weights), "max-cut", method="highs")
    assert not solution.optimal
    assert solution.bound >= 1e13 + 1e8 + 1e7 + 1e6 + 1  # what fuzz_answers.py found by enumeration


def test_an_optimum_that_is_not_its_solutions_objective_is_no_proof(monkeypatch):
    from ortools.sat.python import cp_model

    monkeypatch.setattr(cp_model.CpSolver, "objective_value", property(lambda _: -4.0))
    assert not solve_exact("mis", GRAPHS["five-cycle"]).proven


@pytest.mark.parametrize("method", ["auto", "cp-sat", "highs"])
@pytest.mark.parametrize(("problem", "sign", "best"), [("max-cut", 1, 3e19), ("max-cut", -1, 0), ("qubo", -1, -3e19)])
def test_weights_beyond_64_bits_are_solved(method, problem, sign, best):
    graph = Graph.from_edges([(0, 1), (1, 2)], edge_weights=[sign * 1e19, sign * 2e19])
    solution = diffuco.solve(graph, problem, method=method)
    assert (solution.optimal, solution.objective) == (True, best)


def test_refusals(monkeypatch):
    with pytest.raises(InputError, match="digits"):
        solve_exact("max-cut", Graph.from_edges([(0, 1)], edge_weights=[np.pi]))
    with pytest.raises(InputError, match="digits"):
        solve_exact("mds", Graph.from_edges([(0, 1)], node_weights=[1, np.pi]))
    with pytest.raises(InputError, match="pairs without an edge"):
        solve_exact("max-clique", Graph.from_edges([], 3000))
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(InputError, match=r"pip install 'ortools>=9\.10'"):
        solve_exact("mis", GRAPHS["integers"])


CLIQUE_GRAPHS = {name: partial(replace, graph, node_weights=None) for name, graph in GRAPHS.items()} | {
    "complete": lambda: Graph.from_edges(list(itertools.combinations(range(70), 2)), 70),
    "rb-tiny": lambda: get_dataset("rb-tiny").graph("test", 7),
    "rb-small": lambda: get_dataset("rb-small").graph("test", 24),
}


@pytest.mark.parametrize("make", CLIQUE_GRAPHS.values(), ids=CLIQUE_GRAPHS)
def test_clique_search_finds_what_cp_sat_proves(make):
    graph = make()
    result = largest_clique(graph)
    assert result.proven
    assert result.bound == result.objective == solve_exact("max-clique", graph).objective
    assert get_problem("max-clique").check(graph, result.chosen).feasible


@pytest.mark.parametrize("seed", range(20))
def test_clique_search_finds_the_best_of_all_subsets(seed):
    graph = replace(random_graph(10, seed, scale=1), node_weights=None)
    assert largest_clique(graph).objective == best_of_all("max-clique", graph)
