"""Values of the core of a QUBO extend to the best values of the QUBO, and `auto` searches the core alone."""

from dataclasses import replace

import numpy as np
import pytest

import diffuco
import oracle
from diffuco.graphs.families import power_law_graph, regular_graph, tree_graph
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.graphs.qubo_core import as_cut, qubo_core
from diffuco.methods import cores
from diffuco.problems import get_problem

QUBO = get_problem("qubo")


def rng(seed=0):
    return np.random.default_rng(seed)


def with_terms(graph, seed, kind="real"):
    """A graph with random terms, all of which are whole numbers or decimals."""
    drawn = rng(seed)
    if kind == "whole":
        edges, nodes = drawn.integers(-3, 4, graph.num_edges), drawn.integers(-3, 4, graph.num_nodes)
    else:
        edges, nodes = drawn.normal(size=graph.num_edges).round(2), drawn.normal(size=graph.num_nodes).round(2)
    return replace(graph, edge_weights=edges.astype(float), node_weights=nodes.astype(float))


def of_all_states(graph):
    """All states of a QUBO and their values. [N, 2^N], [2^N]."""
    states = oracle.all_states(graph.num_nodes).T.astype(bool)
    return states, np.array([QUBO.check(graph, state).objective for state in states.T])


@pytest.mark.parametrize("kind", ["whole", "real", "edges alone", "none"])
@pytest.mark.parametrize("seed", range(25))
def test_values_of_the_core_extend_to_the_best_values_with_these_variables(seed, kind):
    plain = er_graph(int(rng(seed).integers(1, 10)), rng(seed).uniform(0.1, 0.8), rng(seed))
    graph = plain if kind == "none" else with_terms(plain, seed, kind)
    if kind == "edges alone":
        graph = replace(graph, node_weights=None)
    states, values = of_all_states(graph)
    as_cuts = oracle.all_states(graph.num_nodes).T.astype(bool)
    cut = as_cut(graph)
    sides = np.concatenate([as_cuts, np.zeros((1, as_cuts.shape[1]), dtype=bool)])
    u, v = cut.edges.T
    np.testing.assert_allclose(cut.edge_weights @ (sides[u] != sides[v]), -values, atol=1e-9)
    core = qubo_core(graph)
    of_core, worth = of_all_states(core.graph)
    best = [values[(states[core.nodes] == some[:, None]).all(0)].min() for some in of_core.T]
    extended = core.extend(of_core, graph.num_nodes)
    found = [QUBO.check(graph, state).objective for state in extended.T]
    np.testing.assert_allclose(found, best, atol=1e-9)
    np.testing.assert_allclose(worth + core.gain, best, atol=1e-9)
    assert (extended[core.nodes] == of_core).all()


def test_variables_of_what_is_left_have_several_terms():
    graph = with_terms(power_law_graph(300, 2.2, 1, rng()), 1)
    core = qubo_core(graph)
    assert 0 < core.graph.num_nodes < 200
    assert as_cut(core.graph).degrees[:-1].min() > 3


@pytest.mark.parametrize(
    "graph", [tree_graph(3000, 10, 0.0, rng()), Graph.from_edges([(i, i + 1) for i in range(2000)])]
)
def test_auto_proves_qubos_of_which_nothing_is_left(graph):
    graph = with_terms(graph, 0, "whole")
    solution = diffuco.solve(graph, "qubo", device="cpu")
    assert (solution.optimal, solution.bound) == (True, solution.objective)
    assert solution.objective == qubo_core(graph).gain
    assert solution.objective <= diffuco.solve(graph, "qubo", method="anneal", time_limit_s=0.2, device="cpu").objective


def test_auto_searches_the_core_and_answers_for_the_qubo(monkeypatch, searched):
    monkeypatch.setattr("diffuco.methods.auto.prove", lambda *_: iter(()))
    graph = with_terms(power_law_graph(600, 2.2, 1, rng(1)), 1)
    found = diffuco.solve(graph, "qubo", time_limit_s=0.3, device="cpu")
    assert [some.num_nodes for some in searched] == [qubo_core(graph).graph.num_nodes]
    assert found.reason.endswith(cores.FOLLOWS)
    assert min(found.objectives) == pytest.approx(found.objective)
    assert found.energies == pytest.approx(found.objectives)
    values = [QUBO.check(graph, state).objective for state in found.states.T]
    assert values == pytest.approx(found.objectives)


def test_variables_are_taken_out_where_that_pays():
    sparse = with_terms(power_law_graph(300, 2.2, 1, rng()), 0)
    assert cores.core_of(QUBO, sparse, 0.01) is None
    assert cores.core_of(QUBO, sparse, 1.0).graph.num_nodes < 250
    assert cores.core_of(QUBO, with_terms(regular_graph(300, 5, rng()), 0), None) is None


def test_decimals_stay_decimals():
    graph = with_terms(power_law_graph(120, 2.2, 1, rng()), 3)
    core = qubo_core(graph)
    assert core.graph.num_nodes > 10
    values = np.concatenate([core.graph.edge_weights, core.graph.node_weights])
    np.testing.assert_array_equal(np.round(values, 6), values)
    solution = diffuco.solve(graph, "qubo")
    assert solution.optimal
    assert solution.objective == pytest.approx(diffuco.solve(graph, "qubo", method="cp-sat").objective)
