"""The verifier against the definitions, spelled out with sets, for every subset of the nodes of small graphs."""

import itertools

import numpy as np
import pytest

from diffuco.graphs.graph import Graph
from diffuco.problems import all_problems, get_problem

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
