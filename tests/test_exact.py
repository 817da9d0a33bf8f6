import itertools
import sys

import numpy as np
import pytest

from diffuco.baselines import references
from diffuco.baselines.exact import ExactResult, solve_exact
from diffuco.baselines.references import reference_objectives
from diffuco.errors import InputError
from diffuco.graphs.cache import cache_directory
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph, GraphWarning
from diffuco.problems import all_problems, get_problem
from diffuco.verification import verify

pytest.importorskip("ortools")

PROBLEMS = [problem.name for problem in all_problems()]


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
    verdicts = [verify(problem, graph, np.array(bits, dtype=np.bool_)) for bits in subsets]
    best = min if get_problem(problem).sense == "min" else max
    return best(verdict.objective for verdict in verdicts if verdict.feasible)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_optimum_is_the_best_of_all_subsets(problem, graph):
    result = solve_exact(problem, graph)
    assert result.proven
    assert result.objective == pytest.approx(best_of_all(problem, graph))
    assert result.bound == result.objective
    assert verify(problem, graph, result.chosen).feasible


@pytest.mark.parametrize("problem", PROBLEMS)
def test_out_of_time_gives_a_feasible_solution_and_no_proof(problem):
    graph = get_dataset("er-200-500").graph("test", 0)
    result = solve_exact(problem, graph, time_limit_s=0.0)
    assert not result.proven
    assert verify(problem, graph, result.chosen).feasible


def test_refusals(monkeypatch):
    with pytest.raises(InputError, match="no exact solver for 'sat'"):
        solve_exact("sat", GRAPHS["integers"])
    with pytest.raises(InputError, match="decimals"):
        solve_exact("max-cut", Graph.from_edges([(0, 1)], edge_weights=[np.pi]))
    with pytest.raises(InputError, match="pairs without an edge"):
        solve_exact("max-clique", Graph.from_edges([], 3000))
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(InputError, match=r"pip install 'diffuco\[exact\]'"):
        solve_exact("mis", GRAPHS["integers"])


@pytest.mark.parametrize("problem", ["mis", "mds"])
def test_references_are_kept_on_disk(problem, monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFUCO_CACHE", str(tmp_path))
    graphs = get_dataset("rb-tiny").graphs("test", 3)
    found = reference_objectives(problem, graphs)
    assert found == [solve_exact(problem, graph).objective for graph in graphs]
    damaged, *_ = sorted((cache_directory() / "references" / problem).iterdir())
    damaged.write_text('{"objective": 3')

    solved: list[Graph] = []

    def count(problem: str, graph: Graph, **options: float) -> ExactResult:
        solved.append(graph)
        return solve_exact(problem, graph)

    monkeypatch.setattr(references, "solve_exact", count)
    assert reference_objectives(problem, graphs) == found
    assert [graph.digest for graph in solved] == [damaged.stem]


def test_references_without_proof_are_flagged_and_tried_again_with_more_time(monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFUCO_CACHE", str(tmp_path))
    graphs = get_dataset("er-200-500").graphs("test", 1)
    with pytest.warns(GraphWarning, match="1 of 1 references"):
        reference_objectives("mis", graphs, time_limit_s=0.0)
    monkeypatch.setattr(
        references, "solve_exact", lambda *_, **__: ExactResult(7.0, 7.0, True, np.zeros(0, dtype=np.bool_), 0.0)
    )
    with pytest.warns(GraphWarning, match="1 of 1 references"):
        reference_objectives("mis", graphs, time_limit_s=0.0)
    assert reference_objectives("mis", graphs, time_limit_s=1.0) == [7.0]


def test_an_unwritable_cache_costs_only_time(monkeypatch):
    monkeypatch.setenv("DIFFUCO_CACHE", "/proc/none")
    assert reference_objectives("mis", [GRAPHS["five-cycle"]], progress=True) == [3.0]
