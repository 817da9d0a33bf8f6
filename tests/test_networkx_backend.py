"""diffuco as a backend of NetworkX: the answers, what is refused, and that NetworkX stays as it was."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import networkx
import numpy as np
import pytest
from networkx import approximation

import diffuco
from diffuco.integrations import networkx_backend
from diffuco.integrations.networkx_backend import can_run, exchange, should_run
from diffuco.problems import get_problem
from diffuco_networkx import get_info

if "diffuco" not in networkx.config.backends:
    pytest.skip("the package is not installed, so NetworkX does not find it", allow_module_level=True)

FUNCTIONS = sorted(get_info()["functions"])
NODE_SETS = [name for name in FUNCTIONS if name != "one_exchange"]


@pytest.fixture(autouse=True)
def _no_notes_on_caching():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Note: conversions to backend graphs")
        yield


@pytest.fixture
def options(models):
    """Untrained models, on which no answer may depend but how good it is."""
    with networkx.config.backends.diffuco(models=dict(models), device="cpu", samples=2) as config:
        yield config


def labelled_graph() -> networkx.Graph:
    source = networkx.gnp_random_graph(30, 0.2, seed=1)
    return networkx.relabel_nodes(source, lambda node: f"n{node}" if node % 2 else (node, "pair"))


def is_answer(name: str, source: networkx.Graph, nodes: set) -> bool:
    rest = source.subgraph(set(source) - nodes)
    within = source.subgraph(nodes)
    if name == "maximum_independent_set":
        return within.number_of_edges() == 0
    if name == "max_clique":
        return within.number_of_edges() == len(nodes) * (len(nodes) - 1) // 2
    if name == "min_weighted_vertex_cover":
        return rest.number_of_edges() == 0
    return networkx.is_dominating_set(source, nodes)


def test_every_function_is_announced_and_there():
    assert FUNCTIONS == [
        "max_clique",
        "maximum_independent_set",
        "min_weighted_dominating_set",
        "min_weighted_vertex_cover",
        "one_exchange",
    ]
    for name in FUNCTIONS:
        assert callable(getattr(networkx_backend, name))
        assert "diffuco" in getattr(approximation, name).__doc__


@pytest.mark.parametrize("name", NODE_SETS)
def test_answers_are_sets_of_the_graphs_own_nodes(options, name):
    source = labelled_graph()
    nodes = getattr(approximation, name)(source, backend="diffuco")
    assert type(nodes) is set
    assert nodes <= set(source)
    assert is_answer(name, source, nodes)


@pytest.mark.parametrize("name", NODE_SETS)
def test_graphs_without_edges_or_nodes(options, name):
    function = getattr(approximation, name)
    assert function(networkx.Graph(), backend="diffuco") == set()
    assert is_answer(name, networkx.empty_graph(3), function(networkx.empty_graph(3), backend="diffuco"))


@pytest.mark.parametrize("weight", [None, "weight", "missing"])
def test_cuts_are_what_they_weigh_and_locally_maximal(options, weight):
    source = labelled_graph()
    for number, (u, v) in enumerate(source.edges):
        source.edges[u, v]["weight"] = number % 7 - 2
    value, (first, second) = approximation.one_exchange(source, weight=weight, seed=3, backend="diffuco")
    assert type(value) is int
    assert type(first) is type(second) is set
    assert first | second == set(source)
    assert not first & second
    assert value == networkx.cut_size(source, first, weight=weight)
    for node in source:
        assert networkx.cut_size(source, first ^ {node}, weight=weight) <= value


def test_a_cut_is_no_worse_than_its_start_and_follows_the_seed(options):
    source = networkx.complete_bipartite_graph(9, 9)
    value, sides = approximation.one_exchange(source, set(range(9)), seed=1, backend="diffuco")
    assert value == 81
    assert set(range(9)) in sides
    source = networkx.gnp_random_graph(40, 0.3, seed=2)
    cuts = [approximation.one_exchange(source, seed=seed, backend="diffuco")[1][0] for seed in (1, 1, 2)]
    assert cuts[0] == cuts[1] != cuts[2]
    assert approximation.one_exchange(networkx.Graph(), backend="diffuco") == (0, (set(), set()))


@pytest.mark.parametrize("weighted", [False, True])
def test_exchange_never_loses_and_ends_where_no_move_gains(weighted):
    rng = np.random.default_rng(0)
    source = networkx.gnp_random_graph(25, 0.3, seed=0)
    for u, v in source.edges:
        source.edges[u, v]["weight"] = rng.normal() if weighted else 1
    graph = networkx_backend._simple_graph(source, "weight")
    start = rng.random(25) < 0.5
    end = exchange(graph, start)
    check = get_problem("max-cut").check
    assert check(graph, end).objective >= check(graph, start).objective
    for node in range(25):
        moved = end.copy()
        moved[node] ^= True
        assert check(graph, moved).objective <= check(graph, end).objective + 1e-9


def test_a_cover_takes_nodes_with_an_edge_to_themselves_and_ignores_direction(options):
    source = networkx.MultiDiGraph([(0, 1), (1, 0), (2, 2), (2, 3), (4, 3), (4, 3)])
    cover = approximation.min_weighted_vertex_cover(source, backend="diffuco")
    assert 2 in cover
    assert all({u, v} & cover for u, v, _ in source.edges)


def test_a_cover_is_never_larger_than_that_of_networkx(options):
    for seed in range(5):
        source = networkx.gnp_random_graph(40, 0.1, seed=seed)
        ours, theirs = (approximation.min_weighted_vertex_cover(source, backend=name) for name in ("diffuco", None))
        assert len(ours) <= len(theirs)


@pytest.mark.parametrize("scale", [1, 1e-6, 1e6])
def test_weighted_covers_cover_and_are_no_heavier_than_those_of_networkx(options, scale):
    for seed in range(3):
        source = networkx.gnp_random_graph(30, 0.2, seed=seed)
        source.add_edges_from([(0, 0), (40, 40)])
        weights = {node: scale * (1 + node * (seed + 3) % 11) for node in source}
        networkx.set_node_attributes(source, weights, "cost")
        ours, theirs = (
            approximation.min_weighted_vertex_cover(source, weight="cost", backend=name) for name in ("diffuco", None)
        )
        assert {0, 40} <= ours
        assert all({u, v} & ours for u, v in source.edges)
        assert sum(map(weights.get, ours)) <= sum(map(weights.get, theirs))
        rest = networkx_backend._simple_graph(source.subgraph(range(1, 30)), node_weight="cost")
        alone = networkx_backend._nodes("mvc", rest)
        assert all({u, v} & alone for u, v in source.subgraph(range(1, 30)).edges)
        assert sum(map(weights.get, alone | {0, 40})) <= sum(map(weights.get, theirs))


@pytest.mark.parametrize("scale", [1, 1e-6, 1e6])
def test_weighted_dominating_sets_are_lighter_than_those_of_networkx(options, scale):
    totals = {"diffuco": 0.0, "networkx": 0.0}
    for seed in range(3):
        source = networkx.gnp_random_graph(30, 0.2, seed=seed)
        weights = {node: scale * (1 + node * (seed + 3) % 11) for node in source}
        networkx.set_node_attributes(source, weights, "cost")
        for name in totals:
            nodes = approximation.min_weighted_dominating_set(source, weight="cost", backend=name)
            assert networkx.is_dominating_set(source, nodes)
            totals[name] += sum(map(weights.get, nodes))
    assert totals["diffuco"] < totals["networkx"]


def test_a_dominating_set_of_a_multigraph(options):
    source = networkx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 3)])
    assert is_answer(
        "min_weighted_dominating_set", source, approximation.min_weighted_dominating_set(source, backend="diffuco")
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_not_supported_is_refused_with_a_reason(name):
    directed, multiple = networkx.DiGraph([(0, 1)]), networkx.MultiGraph([(0, 1)])
    assert can_run(name, (networkx.path_graph(3),), {}) is True
    if name == "min_weighted_vertex_cover":
        assert can_run(name, (directed,), {}) is can_run(name, (multiple,), {}) is True
    else:
        assert can_run(name, (directed,), {}) == "directed graphs are not supported"
    if name in ("max_clique", "maximum_independent_set", "one_exchange"):
        assert can_run(name, (), {"G": multiple}) == "multigraphs are not supported"
    if "weight" in name or name == "one_exchange":
        assert "as a function" in can_run(name, (networkx.path_graph(3),), {"weight": len})


@pytest.mark.parametrize("name", ["min_weighted_dominating_set", "min_weighted_vertex_cover"])
def test_negative_node_weights_are_refused(name):
    source = networkx.path_graph(3)
    networkx.set_node_attributes(source, 2, "cost")
    assert can_run(name, (source, "cost"), {}) is True
    source.nodes[1]["cost"] = -2
    assert can_run(name, (source, "cost"), {}) == "node weights below 0 are not supported"
    assert can_run(name, (source,), {}) is True
    with pytest.raises(NotImplementedError, match="for the given arguments"):
        getattr(approximation, name)(source, "cost", backend="diffuco")


def test_large_graphs_are_left_to_networkx_unless_the_backend_is_named():
    assert should_run("max_clique", (networkx.path_graph(3),), {}) is True
    with networkx.config.backends.diffuco(max_nodes=2):
        assert "more than 2 nodes" in should_run("max_clique", (), {"G": networkx.path_graph(3)})


def test_backend_priority_uses_it_and_leaves_other_functions_alone(options, monkeypatch):
    monkeypatch.setattr(networkx_backend, "_nodes", lambda problem, source: {problem})
    source = networkx.path_graph(4)
    with networkx.config(backend_priority=["diffuco"]):
        assert approximation.max_clique(source) == {"max-clique"}
        assert networkx.diameter(source) == 3
        with networkx.config.backends.diffuco(max_nodes=3):
            assert approximation.max_clique(source) != {"max-clique"}


def test_options_are_those_of_the_configuration(monkeypatch):
    seen = {}

    def solve(graph, problem, **settings):
        seen.update(settings, problem=problem)
        raise ZeroDivisionError

    monkeypatch.setattr("diffuco.solving.entry.solve", solve)
    chosen = {"method": "diffuco", "time_limit_s": None, "samples": 5, "step_factor": 2, "seed": 7, "device": "cpu"}
    with networkx.config.backends.diffuco(models={"mis": "m"}, **chosen), pytest.raises(ZeroDivisionError):
        approximation.maximum_independent_set(networkx.path_graph(3), backend="diffuco")
    assert seen == chosen | {"model": "m", "problem": "mis"}
    with pytest.raises(ZeroDivisionError):
        approximation.max_clique(networkx.path_graph(3), backend="diffuco")
    defaults = {"method": "auto", "time_limit_s": None, "samples": None, "step_factor": None, "seed": 0}
    assert seen == defaults | {"device": "auto", "model": None, "problem": "max-clique"}


@pytest.mark.parametrize("name", NODE_SETS)
def test_small_graphs_are_solved_to_the_optimum_unless_told_otherwise(name):
    problems = dict(zip(NODE_SETS, ["max-clique", "mis", "mds", "mvc"], strict=True))
    source = labelled_graph()
    best = diffuco.solve(source, problems[name], method="highs")
    assert best.optimal
    assert len(getattr(approximation, name)(source, backend="diffuco")) == best.objective


def test_a_method_and_a_time_limit_may_be_chosen():
    source = labelled_graph()
    with networkx.config.backends.diffuco(method="greedy"):
        found = approximation.maximum_independent_set(source, backend="diffuco")
        value, (side, _) = approximation.one_exchange(source, backend="diffuco")
    assert found == set(diffuco.solve(source, "mis", method="greedy").nodes)
    assert value == networkx.cut_size(source, side) >= diffuco.solve(source, "max-cut", method="greedy").objective
    with networkx.config.backends.diffuco(method="anneal", time_limit_s=0.05, device="cpu"):
        assert len(approximation.maximum_independent_set(source, backend="diffuco")) >= len(found)


def test_importing_networkx_imports_nothing_of_diffuco_but_the_announcement():
    program = (
        "import sys, networkx; assert 'diffuco' in networkx.config.backends;"
        "roots = {name.split('.')[0] for name in sys.modules};"
        "print(sorted(roots & {'diffuco', 'diffuco_networkx', 'numba', 'numpy', 'scipy', 'torch'}))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['diffuco_networkx']"


def test_the_tests_of_networkx_pass(tmp_path):
    """With the shipped models, as `NETWORKX_TEST_BACKEND` runs them; the log tells that they met the backend."""
    folder = Path(approximation.__file__).parent / "tests"
    files = [folder / f"test_{name}.py" for name in ("clique", "vertex_cover", "dominating_set", "maxcut")]
    log = tmp_path / "log.txt"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, files)]
    run = subprocess.run(
        [*command, f"--log-file={log}", "--log-file-level=DEBUG", f"--rootdir={folder}"],
        # Functions of NetworkX that are not ours, as cut_size, are called by the tests too.
        env=os.environ
        | {"NETWORKX_TEST_BACKEND": "diffuco", "NETWORKX_FALLBACK_TO_NX": "1", "OMP_NUM_THREADS": "1"}
        | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # plugins take longer to import than the tests to run
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    for name in FUNCTIONS:
        assert f"Using backend 'diffuco' for call to '{name}'" in log.read_text()
        assert f"can't run `{name}`" not in log.read_text()
