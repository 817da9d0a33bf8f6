"""The verifier against the definitions, spelled out with sets, for every subset of the nodes of small graphs."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

import diffuco
from diffuco.foundation.errors import InputError
from diffuco.graphs.formats import write_graph
from diffuco.graphs.graph import Graph
from diffuco.problems import all_problems, get_problem
from diffuco.solution.files import write_solution

PROBLEMS = [problem.name for problem in all_problems()]


def small_graphs() -> dict[str, Graph]:
    rng = np.random.default_rng(3)
    pairs = list(itertools.combinations(range(6), 2))
    some = [pair for pair in pairs if rng.random() < 0.5]
    weights = rng.integers(-4, 5, len(some)) / 2
    return {
        "empty": Graph.from_edges([], 0),
        "one-node": Graph.from_edges([], 1),
        "isolated": Graph.from_edges([(1, 3)], 5),
        "two-triangles": Graph.from_edges([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]),
        "complete": Graph.from_edges(list(itertools.combinations(range(5), 2))),
        "weighted": Graph.from_edges(some, 6, edge_weights=weights, node_weights=rng.integers(-3, 4, 6)),
    }


def judge(problem: str, graph: Graph, chosen: set[int]) -> tuple[float, int]:
    """Objective and violated constraints, by the words of each problem's definition."""
    edges = {frozenset(edge) for edge in graph.edges.tolist()}
    nodes = range(graph.num_nodes)
    weight = sum(1.0 if graph.node_weights is None else graph.node_weights[node] for node in chosen)
    inside = [edge for edge in edges if edge <= chosen]
    if problem == "mis":
        return weight, len(inside)
    if problem == "mvc":
        return weight, sum(not edge & chosen for edge in edges)
    if problem == "max-clique":
        pairs = {frozenset(pair) for pair in itertools.combinations(chosen, 2)}
        return weight, len(pairs - edges)
    if problem == "mds":
        closed = {node: {node} | {other for edge in edges if node in edge for other in edge} for node in nodes}
        return weight, sum(not closed[node] & chosen for node in nodes)
    rows = graph.edges.tolist()
    weights = [1.0] * len(rows) if graph.edge_weights is None else graph.edge_weights.tolist()
    weight_of = dict(zip(map(frozenset, rows), weights, strict=True))
    if problem == "max-cut":
        return sum(weight for edge, weight in weight_of.items() if len(edge & chosen) == 1), 0
    diagonal = [0.0] * graph.num_nodes if graph.node_weights is None else graph.node_weights.tolist()
    return sum(diagonal[node] for node in chosen) + sum(weight_of[edge] for edge in inside), 0


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("graph", small_graphs().values(), ids=small_graphs())
def test_verdict_is_the_definition_for_every_subset(problem, graph):
    for bits in itertools.product([False, True], repeat=graph.num_nodes):
        chosen = {node for node, bit in enumerate(bits) if bit}
        objective, violations = judge(problem, graph, chosen)
        verdict = get_problem(problem).check(graph, np.array(bits, dtype=np.bool_))
        assert verdict.objective == pytest.approx(objective)
        assert verdict.violations == violations
        assert verdict.feasible is (violations == 0)


def test_no_check_for_an_unknown_problem():
    with pytest.raises(ValueError, match="unknown problem"):
        get_problem("sudoku").check(Graph.from_edges([(0, 1)]), np.zeros(2, dtype=np.bool_))


NAMED = Graph.from_edges([(0, 1), (1, 2)], labels=["anna", "ben", "carl"])


@pytest.mark.parametrize("suffix", [".sol", ".json"])
def test_check_takes_a_solution_of_any_kind(tmp_path, suffix):
    solution = diffuco.solve(NAMED, "mis", method="greedy")
    path = tmp_path / f"anna{suffix}"
    write_solution(path, solution.to_dict())
    mask = np.array([True, False, True])
    kinds = [solution, ["carl", "anna"], {"anna", "carl"}, mask, mask.tolist(), path, str(path)]
    for chosen in kinds:
        assert diffuco.check(NAMED, "mis", chosen) == (2.0, 0)
    assert diffuco.check(NAMED, "mis", ["anna", "ben"]) == (2.0, 1)
    assert diffuco.check(NAMED, "mis", []) == (0.0, 0)
    assert not diffuco.check(NAMED, "mvc", []).feasible


def test_check_takes_graphs_and_problems_of_any_kind(tmp_path):
    write_graph(Graph.from_edges([(0, 1), (1, 2)]), tmp_path / "path.clq")
    assert diffuco.check(tmp_path / "path.clq", "mis", [1, 3]).objective == 2
    assert diffuco.check(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), get_problem("mds"), [1]) == (1.0, 0)
    assert diffuco.check(np.array([[-1, 2], [0, -3]]), "qubo", [0, 1]) == (-2.0, 0)


@pytest.mark.parametrize(
    ("solution", "complaint"),
    [
        (["dora"], "the graph has no node 'dora'; give labels of nodes or a boolean mask"),
        ([["anna", "carl"]], r"the graph has no node \['anna', 'carl'\]"),
        (0, "the graph has no node 0"),
        (np.array([True, False]), r"the mask has shape \(2,\); expected one entry for each of 3 nodes"),
        ([True, False, True, True], r"the mask has shape \(4,\); expected one entry for each of 3 nodes"),
        ("nowhere.sol", "nowhere.sol: there is no such file"),
    ],
)
def test_check_refuses_what_is_no_solution_of_the_graph(solution, complaint):
    with pytest.raises(InputError, match=complaint):
        diffuco.check(NAMED, "mis", solution)


def test_check_refuses_a_solution_of_another_graph(tmp_path):
    other = diffuco.solve([(0, 1)], "mis", method="greedy")
    with pytest.raises(InputError, match="the mask has shape"):
        diffuco.check(NAMED, "mis", other)
    write_solution(tmp_path / "other.sol", other.to_dict())
    with pytest.raises(InputError, match="do the two files belong together"):
        diffuco.check(NAMED, "mis", tmp_path / "other.sol")
    with pytest.raises(InputError, match="did you mean 'mis'"):
        diffuco.check(NAMED, "miss", ["anna"])


def test_a_check_needs_no_torch():
    code = "import sys, diffuco; diffuco.check([(0, 1)], 'mis', [0]); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
