"""One way to solve: every door gives the same answer to the same graphs, options and seed."""

import json

import httpx
import networkx
import numpy as np
import pytest

import diffuco
from diffuco.graphs.convert import as_graph
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import er_graph, random_qubo
from diffuco.web.app import create_app
from serving import serving

SEED = 3
OPTIONS = [
    pytest.param({}, id="auto"),
    pytest.param({"method": "greedy"}, id="greedy"),
    pytest.param({"method": "anneal"}, id="anneal"),
    pytest.param({"samples": 2, "step_factor": 1}, id="model"),
]
FUNCTIONS = {"mis": "maximum_independent_set", "max-clique": "max_clique", "mds": "min_weighted_dominating_set"}


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    return [er_graph(num_nodes, 0.2, rng) for num_nodes in (24, 31)]


@pytest.fixture(scope="module")
def client():
    with serving(create_app(device="cpu")) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client


def python(graphs, problem, options, **_):
    found = [diffuco.solve(graph, problem, seed=SEED, device="cpu", **options) for graph in graphs]
    return [(solution.objective, solution.optimal, solution.found_by, set(solution.nodes)) for solution in found]


def command_line(graphs, problem, options, *, run, folder, **_):
    """One file, printed, and the same file into a log of many."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    answers = []
    for number, graph in enumerate(graphs):
        write_graph(graph, folder / f"{number}.npz")
        common = ("solve", problem, folder / f"{number}.npz", "--seed", SEED, "--device", "cpu", *flags)
        outcome = run(*common, "--json")
        assert outcome.code == 0, outcome.err
        assert run(*common, "--output", folder / f"{number}.jsonl").code == 0
        printed, logged = json.loads(outcome.out), json.loads((folder / f"{number}.jsonl").read_text())
        for record in (printed, logged):
            answers.append(as_answer(record))
    assert [as_comparable(problem, answer) for answer in answers[::2]] == [
        as_comparable(problem, answer) for answer in answers[1::2]
    ]
    return answers[::2]


def http(graphs, problem, options, *, client, **_):
    bodies = [
        {"problem": problem, "graph": {"kind": "edges", "edges": graph.edges.tolist(), "num_nodes": graph.num_nodes}}
        for graph in graphs
    ]
    answers = [client.post("/api/solve", json={**body, **options, "seed": SEED}).json() for body in bodies]
    return [as_answer(answer) for answer in answers]


def as_answer(record):
    return record["objective"], record["optimal"], record["found_by"], set(record["solution"])


def as_comparable(problem, answer):
    """CP-SAT searches with eight threads: of several optima it may find any."""
    objective, optimal, found_by, nodes = answer
    return (objective, optimal, found_by) if found_by == "cp-sat" else (objective, optimal, found_by, nodes)


def as_networkx(graph):
    source = networkx.empty_graph(graph.num_nodes)
    source.add_edges_from(graph.edges.tolist())
    return source


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("problem", ["mis", "max-clique", "max-cut", "mds"])
def test_every_door_gives_the_same_answer(problem, options, graphs, client, run, tmp_path):
    expected = [as_comparable(problem, answer) for answer in python(graphs, problem, options)]
    for door in (command_line, http):
        found = door(graphs, problem, options, client=client, run=run, folder=tmp_path)
        assert [as_comparable(problem, answer) for answer in found] == expected, door.__name__
    if problem in FUNCTIONS and "diffuco" in networkx.config.backends:
        function = getattr(networkx.approximation, FUNCTIONS[problem])
        with networkx.config.backends.diffuco(seed=SEED, device="cpu", **options):
            answers = [function(as_networkx(graph), backend="diffuco") for graph in graphs]
        assert [len(nodes) for nodes in answers] == [answer[0] for answer in expected]
        if len(expected[0]) == 4:
            assert answers == [answer[3] for answer in expected]


@pytest.mark.parametrize("num_reads", [None, 3])
def test_the_sampler_of_dimod_answers_as_solve_does(num_reads):
    dimod = pytest.importorskip("dimod")
    graph = random_qubo(12, 0.4, np.random.default_rng(1))
    bqm = dimod.BinaryQuadraticModel(
        dict(enumerate(graph.node_weights)),
        {tuple(pair): weight for pair, weight in zip(graph.edges.tolist(), graph.edge_weights, strict=True)},
        0.0,
        "BINARY",
    )
    found = diffuco.DiffUCOSampler(device="cpu").sample(bqm, num_reads=num_reads, seed=SEED)
    expected = diffuco.solve(graph, "qubo", samples=num_reads, seed=SEED, device="cpu")
    assert found.first.energy == pytest.approx(expected.objective)
    assert found.info["found_by"] == expected.found_by
    assert len(found) == (1 if num_reads is None else num_reads)


@pytest.mark.parametrize("problem", ["mis", "mvc", "max-clique", "mds"])
def test_python_answers_with_the_optimum_where_the_command_line_does(problem, house, run):
    record = json.loads(run("solve", problem, house, "--json").out)
    solution = diffuco.solve(house, problem)
    assert solution.optimal
    assert record["optimal"]
    assert solution.objective == record["objective"]
    assert solution.reason == record["reason"] == f"proven optimal by {solution.found_by}"


def test_graphs_of_every_kind_go_through_the_door(house):
    graph = as_graph(house)
    expected = diffuco.solve(graph, "mis", method="greedy").objective
    for source in (str(house), as_networkx(graph), graph.edges, [tuple(edge) for edge in graph.edges.tolist()]):
        assert diffuco.solve(source, "mis", method="greedy").objective == expected
