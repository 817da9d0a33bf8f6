"""Graphs that fall apart: they are proven piece by piece, and what is proven stays when the rest is searched."""

import time
from dataclasses import replace

import numpy as np
import pytest

import diffuco
from diffuco.foundation.progress import Progress, following
from diffuco.graphs import components
from diffuco.graphs.components import SMALL, TOGETHER, pieces, split
from diffuco.graphs.families import tree_graph
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.methods.enumeration import Enumeration
from diffuco.methods.exact import ExactResult
from diffuco.methods.highs import Highs
from diffuco.methods.linear import trivial, unbounded
from diffuco.methods.merging import completed
from diffuco.problems import MaximumClique, all_problems, get_problem

SEPARABLE = [problem.name for problem in all_problems() if problem.adds_up]


def side_by_side(graphs, seed=0):
    """The graphs as one, its nodes in random order."""
    starts = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    order = np.random.default_rng(seed).permutation(starts[-1])
    edges = np.concatenate([graph.edges + start for graph, start in zip(graphs, starts, strict=False)])
    return Graph.from_edges(order[edges], int(starts[-1]))


def random_parts(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [er_graph(size, min(1.0, 3 / size), rng) for size in sizes]


def weighted(graph, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 9, graph.num_edges).astype(float)
    return replace(graph, edge_weights=weights, node_weights=rng.integers(1, 9, graph.num_nodes).astype(float))


def test_pieces_hold_every_node_and_edge_once():
    graph = weighted(side_by_side(random_parts([5] * 300 + [SMALL, 900, 700])))
    found = pieces(graph)
    assert sorted(np.concatenate([piece.nodes for piece in found]).tolist()) == list(range(graph.num_nodes))
    rows = [
        (*sorted(piece.nodes[edge].tolist()), weight)
        for piece in found
        for edge, weight in zip(piece.graph.edges, piece.graph.edge_weights, strict=True)
    ]
    assert sorted(rows) == [
        (*edge, weight) for edge, weight in zip(graph.edges.tolist(), graph.edge_weights, strict=True)
    ]
    for piece in found:
        np.testing.assert_array_equal(piece.graph.node_weights, graph.node_weights[piece.nodes])
        again = Graph.from_edges(piece.graph.edges, piece.graph.num_nodes)
        np.testing.assert_array_equal(again.edges, piece.graph.edges)  # sorted, as a graph must have them


def test_small_components_share_pieces_and_large_ones_come_last():
    parts = [tree_graph(size, 3, 0.0, np.random.default_rng(0)) for size in [SMALL] * 12 + [SMALL + 2, SMALL + 1, 2000]]
    sizes = [piece.graph.num_nodes for piece in pieces(side_by_side(parts))]
    assert sizes[-3:] == [SMALL + 1, SMALL + 2, 2000]
    assert max(sizes[:-3]) <= TOGETHER + SMALL
    assert sum(sizes[:-3]) == 12 * SMALL


@pytest.mark.parametrize("num_nodes", [50, 3000])
def test_a_graph_in_one_piece_stays_as_it_is(num_nodes):
    graph = tree_graph(num_nodes, 3, 0.0, np.random.default_rng(0))
    (piece,) = pieces(graph)
    assert piece.graph is graph


def test_edges_without_weight_hold_a_graph_together():
    path = Graph.from_edges([(node, node + 1) for node in range(299)], edge_weights=np.zeros(299))
    assert len(pieces(path)) == 1


def test_numbers_of_pieces_need_not_be_in_a_row():
    graph = Graph.from_edges([(0, 1), (3, 4)], 6)
    found = split(graph, np.array([7, 7, 9, 2, 2, 9]))
    assert [piece.nodes.tolist() for piece in found] == [[3, 4], [0, 1], [2, 5]]
    assert [piece.graph.num_edges for piece in found] == [1, 1, 0]


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("problem", SEPARABLE)
def test_proofs_of_pieces_add_up_to_the_proof_of_the_graph(problem, has_weights):
    graph = side_by_side(
        [*random_parts([6] * 12 + [20]), *(tree_graph(n, 3, 0.0, np.random.default_rng(n)) for n in (210, 230))]
    )
    graph = weighted(graph) if has_weights or problem == "qubo" else graph
    whole = Highs().prove(get_problem(problem), graph, time_limit_s=60.0)
    assert len(pieces(graph)) > 2
    result = Highs().prove_pieces(get_problem(problem), graph, time_limit_s=60.0)
    assert (result.objective, result.bound, result.proven, result.settled) == (whole.objective, whole.bound, True, None)
    assert get_problem(problem).check(graph, result.chosen).feasible


def test_cliques_do_not_add_up():
    assert not MaximumClique().adds_up


@pytest.fixture
def only_small_proofs(monkeypatch):
    """HiGHS fails on pieces of more than 1,000 nodes, with a bound that is no help."""
    prove = Highs.prove

    def prove_small(self, problem, graph, *, time_limit_s, seed=0):
        if graph.num_nodes <= TOGETHER:
            return prove(self, problem, graph, time_limit_s=60.0, seed=seed)
        chosen = trivial(problem, graph)
        return ExactResult(problem.check(graph, chosen).objective, unbounded(problem), False, chosen, 0.0)

    monkeypatch.setattr(Highs, "prove", prove_small)


@pytest.mark.usefixtures("_whole_graphs", "_highs_alone")
@pytest.mark.parametrize("problem", ["mis", "mvc", "mds"])
def test_what_is_proven_stays_and_only_the_rest_is_searched(problem, only_small_proofs):
    rng = np.random.default_rng(1)
    parts = [*random_parts([6] * 200), tree_graph(TOGETHER + 500, 20, 0.05, rng)]
    graph = side_by_side(parts)
    seen: list[Progress] = []
    with following(seen.append):
        solution = diffuco.solve(graph, problem, device="cpu", time_limit_s=1.0)
    # The best objective of the last round, with what is proven; decoding may still improve it.
    *_, last = (report.best for report in seen if report.best is not None)
    assert last == pytest.approx(solution.objective, rel=0.02)
    tried = Highs().prove_pieces(get_problem(problem), graph, time_limit_s=60.0)
    assert (solution.found_by, solution.optimal, solution.feasible) == ("anneal", False, True)
    assert "highs proved what is best for 1,200 nodes" in solution.reason
    np.testing.assert_array_equal(solution.settled, tried.settled)
    np.testing.assert_array_equal(solution.chosen[tried.settled], tried.chosen[tried.settled])
    assert solution.states.shape == (graph.num_nodes, len(solution.energies))
    for state, objective, energy in zip(solution.states.T, solution.objectives, solution.energies, strict=True):
        verdict = get_problem(problem).check(graph, state)
        assert (verdict.feasible, verdict.objective) == (True, objective)
        assert energy == pytest.approx(get_problem(problem).sign * objective, abs=1e-3)


@pytest.mark.parametrize("problem", ["mis", "max-cut"])
def test_a_search_of_the_whole_graph_takes_over_what_is_proven(problem):
    graph = side_by_side([*random_parts([6] * 50), tree_graph(250, 3, 0.0, np.random.default_rng(0))])
    found = diffuco.solve(graph, problem, method="greedy", device="cpu")
    exact = diffuco.solve(graph, problem, method="highs", device="cpu")
    settled = np.zeros(graph.num_nodes, dtype=np.bool_)
    settled[pieces(graph)[0].nodes] = True
    tried = replace(exact, chosen=exact.chosen & settled, optimal=False, settled=settled)
    solution = completed(found, tried)
    assert 0 < settled.sum() < graph.num_nodes
    assert solution.objective >= found.objective
    np.testing.assert_array_equal(solution.chosen, np.where(settled, exact.chosen, found.chosen))
    assert solution.objectives == [get_problem(problem).check(graph, state).objective for state in solution.states.T]
    assert solution.energies == pytest.approx([-objective for objective in solution.objectives])


@pytest.mark.usefixtures("_whole_graphs")
@pytest.mark.parametrize("problem", ["mis", "mvc", "mds"])
def test_many_components_that_look_alike_are_proven(problem):
    """HiGHS alone takes minutes or more for such vertex covers, whatever its time limit is."""
    graph = side_by_side([*random_parts([7] * 1500), tree_graph(3000, 20, 0.05, np.random.default_rng(2))])
    solution = diffuco.solve(graph, problem, device="cpu", time_limit_s=60.0)
    assert (solution.found_by, solution.optimal, solution.feasible) == ("highs", True, True)


@pytest.mark.usefixtures("_whole_graphs", "_highs_alone")
def test_a_search_that_reaches_the_bound_is_optimal(monkeypatch):
    """An exact solver may know the best objective without having found a solution that has it."""
    graph = tree_graph(3000, 20, 0.05, np.random.default_rng(0))
    best = Highs().prove(get_problem("mis"), graph, time_limit_s=60.0)
    nothing = np.zeros(graph.num_nodes, dtype=np.bool_)
    known = ExactResult(0.0, best.objective, False, nothing, 0.0)
    monkeypatch.setattr(Highs, "prove", lambda *_, **__: known)
    solution = diffuco.solve(graph, "mis", device="cpu", time_limit_s=4.0)
    assert (solution.objective, solution.optimal, solution.found_by) == (best.objective, True, "anneal")
    assert "no solution can be better" in solution.reason


def test_highs_is_not_waited_for_where_it_forgets_its_time_limit(monkeypatch):
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: time.sleep(30))
    started = time.perf_counter()
    result = Highs().prove(get_problem("mvc"), Graph.from_edges([(0, 1), (1, 2)]), time_limit_s=0.1)
    assert time.perf_counter() - started < 10
    assert (result.proven, result.bound, result.chosen[1]) == (False, -np.inf, True)


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e18])
@pytest.mark.parametrize("problem", SEPARABLE)
def test_pieces_of_small_graphs_prove_what_enumeration_finds(problem, unit, monkeypatch):
    monkeypatch.setattr(components, "SMALL", 2)
    monkeypatch.setattr(components, "TOGETHER", 4)
    rng = np.random.default_rng(4)
    for _ in range(6):
        graph = er_graph(10, 0.12, rng)
        edge_weights, node_weights = rng.integers(-9, 10, graph.num_edges) / 4, rng.integers(1, 10, 10) / 4
        graph = replace(graph, edge_weights=unit * edge_weights, node_weights=unit * node_weights)
        expected = Enumeration().prove(get_problem(problem), graph, time_limit_s=60.0)
        assert len(pieces(graph)) > 1
        result = Highs().prove_pieces(get_problem(problem), graph, time_limit_s=60.0)
        assert result.proven
        assert (result.objective, result.bound) == (
            pytest.approx(expected.objective, rel=1e-12),
            pytest.approx(expected.objective, rel=1e-12),
        )
