"""Every method on every problem it claims: feasible, seeded, on time, and optimal where it should be."""

import itertools
import json
import stat
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import diffuco
import oracle
from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.families import geometric_graph
from diffuco.graphs.formats import write_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import GraphByGraph, all_methods, get_method, register_method
from diffuco.methods import _methods as registered
from diffuco.methods.greedy import warn_if_greedy_is_ahead
from diffuco.pretrained import is_known
from diffuco.problems import all_problems, get_problem

PAIRS = [(m.name, p.name) for m in all_methods() for p in all_problems() if m.solves(p)]
KINDS = ("mis", "max-clique", "max-cut", "mds")
"""A problem of each kind: quadratic, its complement, without constraints, a cover."""
OF_EACH_KIND = [
    (name, problem)
    for name, problem in PAIRS
    if problem in KINDS or not any(get_method(name).solves(get_problem(kind)) for kind in KINDS)
]
EXACT = ("auto", "cp-sat", "highs", "gurobi")
ANNEALERS = ("anneal", "rlsa", "bifurcation", "sa", "tabu")
MODELS = ("diffuco", "diffuco-ce")
KAMIS = ("kamis", "online-mis")
FEW_EVALUATIONS = {"samples": 4, "step_factor": 1}


@pytest.fixture(autouse=True)
def _fewer_steps(monkeypatch):
    """100 steps of `rlsa` instead of up to 1,000; they suffice for graphs of this size."""
    for problem in all_problems():
        monkeypatch.setattr(type(problem), "annealing", replace(problem.annealing, parallel_steps=100))


def tiny_graphs(problem: str) -> list[Graph]:
    """No node, one node, disconnected, complete, and random ones of up to 12 nodes with weights.

    Edge weights of both signs; node weights too, but none below 0 where nodes are counted.
    """
    rng = np.random.default_rng(3)
    graphs = list(oracle.unweighted_graphs())
    for num_nodes in (7, 9, 12):
        pairs = [pair for pair in itertools.combinations(range(num_nodes), 2) if rng.random() < 0.4]
        edge_weights, node_weights = rng.integers(-9, 10, len(pairs)) / 4, rng.integers(-9, 10, num_nodes) / 4
        if problem != "qubo":
            node_weights = np.abs(node_weights)
        graphs.append(Graph.from_edges(pairs, num_nodes, edge_weights=edge_weights, node_weights=node_weights))
    return graphs


def optimum(problem: str, graph: Graph) -> float:
    verdicts = [get_problem(problem).check(graph, x.astype(bool)) for x in oracle.all_states(graph.num_nodes)]
    best = max if get_problem(problem).sense == "max" else min
    return best(verdict.objective for verdict in verdicts if verdict.feasible)


@pytest.fixture(scope="module")
def optima() -> dict[str, list[float]]:
    names = [problem.name for problem in all_problems()]
    return {name: [optimum(name, graph) for graph in tiny_graphs(name)] for name in names}


@pytest.mark.filterwarnings("ignore::diffuco.foundation.errors.GraphWarning")
@pytest.mark.parametrize(("name", "problem"), [pair for pair in PAIRS if pair[0] not in EXACT])
def test_searches_find_the_same_in_any_unit_of_the_weights(name, problem):
    method = get_method(name)
    if method.missing() or not method.takes_node_weights(get_problem(problem)):
        pytest.skip(f"{name} is not installed or takes no weights")
    graph = tiny_graphs(problem)[-1]
    options = FEW_EVALUATIONS if name == "diffuco" else {}
    solution = diffuco.solve(graph, problem, method=name, seed=1, device="cpu", **options)
    assert graph.edge_weights is not None
    assert graph.node_weights is not None
    for unit in (4.0**-400, 4.0**-17, 4.0**42):  # powers of four, so that no rounding differs
        scaled = replace(graph, edge_weights=unit * graph.edge_weights, node_weights=unit * graph.node_weights)
        other = diffuco.solve(scaled, problem, method=name, seed=1, device="cpu", **options)
        assert (other.chosen == solution.chosen).all()
        assert (other.objective, other.energies) == (
            unit * solution.objective,
            [unit * energy for energy in solution.energies],
        )
        assert other.objectives == [unit * objective for objective in solution.objectives]


@pytest.mark.filterwarnings("ignore::diffuco.foundation.errors.GraphWarning")
@pytest.mark.parametrize(("name", "problem"), PAIRS)
def test_answers_are_feasible_and_exact_methods_and_annealers_find_the_optimum(name, problem, optima):
    if get_method(name).missing():
        pytest.skip(f"{name} is not installed")
    graphs, best_known = tiny_graphs(problem), optima[problem]
    if get_problem(problem).uses_node_weights and not get_method(name).takes_node_weights(get_problem(problem)):
        with pytest.raises(InputError, match=f"{name} takes no node weights for {problem}, the graph has some"):
            diffuco.solve(graphs[-1:], problem, method=name)
        known = [graph.node_weights is None for graph in graphs]
        graphs, best_known = (list(itertools.compress(items, known)) for items in (graphs, best_known))
    limit_s = 0.05 if name == "online-mis" else None  # which would search for 10 s
    options = FEW_EVALUATIONS if name == "diffuco" else {}
    solutions = diffuco.solve(graphs, problem, method=name, seed=1, device="cpu", time_limit_s=limit_s, **options)
    assert [solution.graph for solution in solutions] == graphs
    for solution, best in zip(solutions, best_known, strict=True):
        verdict = get_problem(problem).check(solution.graph, solution.chosen)
        assert verdict.feasible
        assert (solution.objective, solution.seed) == (verdict.objective, 1)
        if name in MODELS:
            assert is_known(solution.found_by)
        elif name != "auto":  # which tells what it chose, as `egn` tells its model
            assert solution.found_by.endswith(name)
        assert min(solution.energies) == pytest.approx(abs_sign(problem) * verdict.objective, abs=1e-4)
        assert {"load", "sample", "decode"} <= set(solution.seconds)
        if name in (*EXACT, *ANNEALERS, "clique-search", "diffuco", "kamis", "online-mis"):
            assert solution.objective == pytest.approx(best, abs=1e-5)
        assert (verdict.objective - best) * abs_sign(problem) > -1e-5


def test_baselines_in_one_step_are_those_of_graphs_like_these():
    for dataset in ("ba-small", "ba-large"):
        graphs = get_dataset(dataset).graphs("validation", 1)
        for name in ("egn", "egn-anneal"):
            (solution,) = diffuco.solve(graphs, "max-cut", method=name, device="cpu")
            assert solution.found_by == f"max-cut-{dataset}-{name}"


def abs_sign(problem: str) -> float:
    return -1.0 if get_problem(problem).sense == "max" else 1.0


@pytest.mark.filterwarnings("ignore::diffuco.foundation.errors.GraphWarning")
@pytest.mark.parametrize(("name", "problem"), [pair for pair in OF_EACH_KIND if pair[0] not in (*KAMIS, *EXACT)])
def test_same_seed_same_answer(name, problem):
    if get_method(name).missing():
        pytest.skip(f"{name} is not installed")
    graph = get_dataset("qubo-tiny").graph("test", 0) if problem == "qubo" else get_dataset("rb-tiny").graph("test", 0)
    options = FEW_EVALUATIONS if name == "diffuco" else {}
    first, second = (diffuco.solve([graph], problem, method=name, seed=4, device="cpu", **options)[0] for _ in range(2))
    assert first.chosen.tolist() == second.chosen.tolist()
    assert first.energies == second.energies


@pytest.mark.parametrize(
    ("name", "problem"), [pair for pair in OF_EACH_KIND if get_method(pair[0]).time_limit != "ignored"]
)
def test_a_time_limit_is_kept(name, problem):
    if get_method(name).missing():
        pytest.skip(f"{name} is not installed")
    if name == "kamis":
        pytest.skip("overruns short limits by seconds")
    dataset = "qubo-50-150" if problem == "qubo" else "er-200-500"
    if name == "gurobi":  # what a licence for nothing allows
        dataset = "qubo-tiny" if problem == "qubo" else "rb-tiny"
    graphs = get_dataset(dataset).graphs("test", 2)
    small = get_dataset("qubo-tiny" if problem == "qubo" else "rb-tiny").graphs("test", 1)
    diffuco.solve(small, problem, method=name, device="cpu", time_limit_s=0.05)  # imports and compiled loops
    started = time.process_time()
    solutions = diffuco.solve(graphs, problem, method=name, device="cpu", time_limit_s=0.05)
    # Models have to be built, and a step or a presolve ends before anybody looks at the clock.
    assert time.process_time() - started < 8
    assert all(solution.feasible for solution in solutions)


@pytest.mark.parametrize("name", ["anneal", "rlsa", "bifurcation", "sa", "mfa"])
def test_annealers_beat_greedy_on_cuts(name):
    if get_method(name).missing():
        pytest.skip(f"{name} is not installed")
    graphs = get_dataset("ba-small").graphs("test", 2)
    found, greedy = (diffuco.solve(graphs, "max-cut", method=method, device="cpu") for method in (name, "greedy"))
    assert sum(s.objective for s in found) > sum(s.objective for s in greedy)


def test_goemans_williamson_keeps_its_promise():
    graphs = [graph for graph in tiny_graphs("max-cut") if graph.edge_weights is None]
    for solution in diffuco.solve(graphs, "max-cut", method="sdp"):
        assert solution.objective >= 0.878 * optimum("max-cut", solution.graph)


def test_a_batch_of_many_sizes_gives_every_graph_its_own_answer():
    graphs = [Graph.from_edges([], size) for size in (3, 0, 1)] + get_dataset("rb-tiny").graphs("test", 5)
    for name in ("auto", "anneal", "rlsa", "bifurcation", "mfa", "greedy", "diffuco", "diffuco-ce"):
        done: list[int] = []
        solutions = diffuco.solve(graphs, "mis", method=name, device="cpu", on_solved=done.append)
        assert [solution.graph for solution in solutions] == graphs
        assert sum(done) == len(graphs)
        assert min(done) > 0
        assert [solution.objective for solution in solutions[:3]] == [3, 0, 1]


def test_labels_and_other_weights_are_kept():
    graph = Graph.from_edges([(0, 1), (1, 2)], labels=["anna", "ben", "carl"], edge_weights=[1, 2])
    with pytest.warns(GraphWarning, match="mis ignores the edge weights"):
        (solution,) = diffuco.solve([graph], "mis", method="greedy")
    assert solution.nodes == ["anna", "carl"]


def test_refusals():
    with pytest.raises(InputError, match="did you mean 'greedy'"):
        get_method("gredy")
    with pytest.raises(InputError, match="choose one of auto, diffuco, diffuco-ce, greedy, db-greedy"):
        get_method("xyz")
    with pytest.raises(
        InputError, match="'sdp' does not solve mis; choose one of auto, diffuco, diffuco-ce, greedy, anneal"
    ):
        diffuco.solve([], "mis", method="sdp")
    with pytest.raises(InputError, match="tabu takes at most 5000 nodes"):
        diffuco.solve([Graph.from_edges([(0, 1)], 5001)], "mis", method="tabu")
    for limit in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="time limit"):
            diffuco.solve([], "mis", method="rlsa", time_limit_s=limit)
    with pytest.raises(InputError, match="there is a method 'greedy' already"):
        register_method(get_method("greedy"))


@pytest.mark.parametrize(
    ("name", "module", "line"),
    [
        ("sa", "dwave", "pip install 'dimod>=0.12.18' 'dwave-samplers>=1.4'"),
        ("tabu", "dwave", "pip install 'dimod>=0.12.18' 'dwave-samplers>=1.4'"),
        ("cp-sat", "cp_sat", "pip install 'ortools>=9.10'"),
        ("networkx", "networkx_approximations", "pip install 'networkx>=3.4'"),
        ("gurobi", "gurobi", "pip install gurobipy"),
        ("kamis", "kamis", "pip install 'chszlablib>=0.5.27'"),
        ("online-mis", "kamis", "pip install 'chszlablib>=0.5.27', or put the program online_mis on the PATH"),
    ],
)
def test_what_is_missing_is_one_line_with_the_remedy(run, monkeypatch, house, name, module, line):
    monkeypatch.setattr(f"diffuco.methods.{module}.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    outcome = run("solve", "mis", house, "--method", name)
    assert outcome.code == 2
    assert len(outcome.err.splitlines()) == 1
    assert line in outcome.err


@pytest.mark.parametrize(("name", "command"), [("kamis", "redumis"), ("online-mis", "online_mis")])
def test_kamis_runs_the_program_where_there_is_one(monkeypatch, tmp_path, name, command):
    """A stand-in for a program that takes every second node of a path, as METIS numbers them."""
    program = tmp_path / command
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "nodes = int(open(sys.argv[1]).readline().split()[0])\n"
        "target = [a for a in sys.argv if a.startswith('--output=')][0].partition('=')[2]\n"
        "open(target, 'w').writelines(f'{1 - i % 2}\\n' for i in range(nodes))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    path = Graph.from_edges([(i, i + 1) for i in range(6)])
    assert diffuco.solve([path], "mis", method=name)[0].nodes == [0, 2, 4, 6]
    assert diffuco.solve([path], "mvc", method=name)[0].nodes == [1, 3, 5]
    program.write_text(f"#!{sys.executable}\nraise SystemExit('no licence')\n")
    with pytest.raises(InputError, match=f"{command} failed with code 1: no licence"):
        diffuco.solve([path], "mis", method=name)


def test_a_method_of_ones_own_is_found_by_its_name(monkeypatch, run, house):
    class Everything(GraphByGraph):
        name = "everything"
        summary = "all nodes"

        def solves(self, problem):
            return problem.name in ("mvc", "mds")

        def search(self, problem, graph, seed, deadline):
            return np.ones(graph.num_nodes, dtype=np.bool_)

    monkeypatch.setitem(registered, "everything", Everything())
    record = json.loads(run("solve", "mvc", house, "--method", "everything", "--json").out)
    assert (record["objective"], record["found_by"], record["feasible"]) == (5, "everything", True)
    assert "'everything' does not solve mis" in run("solve", "mis", house, "--method", "everything").err
    assert diffuco.solve(house, "mds", method=Everything()).nodes == [1, 2, 3, 4, 5]


def test_a_method_of_ones_own_without_a_search_is_told_so():
    class Nothing(GraphByGraph):
        name = "nothing"
        summary = "nothing"

    with pytest.raises(NotImplementedError, match="Nothing has no `search`; write one"):
        diffuco.solve([(0, 1)], "mis", method=Nothing())


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        (np.full(5, 0.3), "nodes are chosen by True and False or 1 and 0, not by 0.3"),
        (np.full((5, 2), np.nan), "not by nan"),
        (np.ones(4, dtype=np.bool_), r"states of shape \(4.*\); give one entry for each of 5 nodes"),
        (np.ones((2, 5)), r"states of shape \(2, 5"),
        (np.ones((5, 1, 1)), r"states of shape \(5, 1, 1"),
        (np.ones((5, 0)), r"states of shape \(5, 0"),
    ],
)
def test_states_that_are_none_are_refused_in_one_line(house, found, complaint):
    class Odd(GraphByGraph):
        name = "odd"

        def search(self, problem, graph, seed, deadline):
            return found

    with pytest.raises(InputError, match=complaint):
        diffuco.solve(house, "mis", method=Odd())
    if found.ndim == 1:
        with pytest.raises(InputError, match=complaint):
            diffuco.Solution.of(get_problem("mis"), diffuco.read_graph(house), found, found_by="odd")


def test_states_may_be_numbers(house):
    class Whole(GraphByGraph):
        name = "whole"

        def search(self, problem, graph, seed, deadline):
            return [[1, 0], [1, 0], [1, 1], [1, 0], [1, 0]]

    solution = diffuco.solve(house, "mis", method=Whole())
    assert (solution.objective, solution.feasible, solution.nodes) == (1, True, [3])


@pytest.mark.parametrize("problem", all_problems(), ids=str)
def test_a_solution_of_chosen_nodes_has_their_energy(problem):
    for graph in tiny_graphs(problem.name):
        state = np.random.default_rng(0).integers(0, 2, graph.num_nodes)
        solution = diffuco.Solution.of(problem, graph, state, found_by="me", seed=3, seconds=0.5)
        verdict = problem.check(graph, state.astype(np.bool_))
        assert (solution.objective, solution.violations) == verdict
        assert solution.objectives == [verdict.objective]
        assert solution.energies == [pytest.approx(oracle.energy(problem, graph, state))]
        assert (solution.states[:, 0].tolist(), solution.found_by, solution.seed) == (state.tolist(), "me", 3)
        assert solution.to_dict()["seconds"]["sample"] == 0.5


def test_a_method_without_a_name_or_a_summary_is_not_registered(run):
    class Unsaid(GraphByGraph):
        name = "unsaid"

    class Unnamed(GraphByGraph):
        summary = "nothing"

    with pytest.raises(InputError, match="method class Unsaid has no summary; give it one line of text"):
        register_method(Unsaid())
    with pytest.raises(InputError, match="method class Unnamed has no name; give it one"):
        register_method(Unnamed())
    with pytest.raises(InputError, match=r"give an object, such as Unsaid\(\)"):
        register_method(Unsaid)
    assert run("methods").code == 0


def test_solve_writes_a_solution_that_check_accepts(run, tmp_path, house):
    path = tmp_path / "out.sol"
    outcome = run("solve", "mis", house, "--method", "greedy", "--output", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert "Maximum Independent Set, by greedy" in outcome.out
    assert "mean of" not in outcome.out
    assert run("check", "mis", house, path).code == 0
    assert run("solve", "mis", house, "--method", "rlsa", "--time-limit", 0.1).code == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--method", "greedy", "--model", "mis-rb-small"), "model is for models and excludes the method greedy"),
        (("--method", "greedy", "--step-factor", 3), "step factor is for models and excludes the method greedy"),
        (("--method", "greedy", "--decode", "ce"), "decode is for models and excludes the method greedy"),
        (("--time-limit", 1, "--samples", 2), "a time limit decides on samples, step factor, decoding and refinement"),
        (("--time-limit", 1, "--refine", "none"), "leave out the limit or these options"),
        (("--method", "anneal", "--refine", 10), "refine is for models and excludes the method anneal"),
        (("--method", "anneal", "--refine", "auto"), "refine is for models and excludes the method anneal"),
        (("--refine", "much"), "give a number of sweeps, auto or none"),
        (("--method", "greedy", "--time-limit", 0), "time limit of 0 seconds"),
        (("--method", "gredy"), "did you mean 'greedy'?"),
        (("--method", "sdp"), "'sdp' does not solve mis"),
    ],
)
def test_models_and_methods_exclude_each_other(run, house, arguments, complaint):
    outcome = run("solve", "mis", house, *arguments)
    assert outcome.code == 2
    assert len(outcome.errors) == len(outcome.err.splitlines()) == 1
    assert complaint in outcome.err


def test_a_model_takes_a_time_limit(run, house):
    for options, model in ((("--method", "diffuco"), "mis-sparse"), (("--model", "mis-rb-small"), "mis-rb-small")):
        outcome = run("solve", "mis", house, *options, "--time-limit", 0.1, "--json")
        assert outcome.code == 0, outcome.err
        record = json.loads(outcome.out)
        assert (record["objective"], record["found_by"]) == (2, model)
        assert len(record["objectives"]) == 32


def test_evaluate_a_method(run, tmp_path):
    options = ("--method", "greedy", "--problem", "mis", "--dataset", "rb-tiny", "--count", 3)
    outcome = run("evaluate", *options, "--output", tmp_path / "record.json", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert record == json.loads((tmp_path / "record.json").read_text())
    assert (record["method"], record["graphs"], record["feasible"]) == ("greedy", 3, 3)
    assert "model" not in record
    assert "mean of the answers" in run("evaluate", *options, "--time-limit", 2).out
    assert "give either --model or --method" in run("evaluate", "--dataset", "rb-tiny").err
    assert "--method needs --problem" in run("evaluate", "--method", "greedy", "--dataset", "rb-tiny").err
    assert "are for models, not --method" in run("evaluate", *options, "--samples", 2).err
    assert "are for models, not --method" in run("evaluate", *options, "--refine", "auto").err
    both = run("evaluate", *options, "--model", "mis-rb-small")
    assert (both.code, len(both.errors)) == (2, 1)
    assert "give either --model or --method" in both.err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--method", "sdp"), "'sdp' does not solve mis"),
        (("--method", "gredy"), "did you mean 'greedy'?"),
        (("--method", "greedy", "--time-limit", 0), "time limit of 0 seconds"),
        (("--model", "mis-rb-small", "--samples", 0), "samples is 0"),
        (("--model", "mis-rb-small", "--time-limit", 1), "--time-limit is for --method"),
        (("--model", "mds-ba-small"), "trained for mds, not mis"),
    ],
)
def test_evaluate_refuses_before_references_are_looked_for(run, monkeypatch, options, complaint):
    monkeypatch.setattr("diffuco.evaluation.references.find_references", None)
    settings = ("--problem", "mis", "--dataset", "rb-tiny", "--count", 2, "--reference", "best-known")
    outcome = run("evaluate", *settings, *options)
    assert (outcome.code, len(outcome.err.splitlines())) == (2, 1)
    assert complaint in outcome.err


def test_a_method_is_scored_by_its_answer():
    graphs = get_dataset("rb-tiny").graphs("test", 2)
    record = diffuco.evaluate(graphs, "mis", method="rlsa", device="cpu", references=[4, 4]).to_dict()
    assert (
        record["mean"] == record["best"] == np.mean([s.objective for s in diffuco.solve(graphs, "mis", method="rlsa")])
    )
    assert record["reference"]["gap"] == record["reference"]["gap_of_best"]


def test_methods_are_listed(run):
    records = {record["name"]: record for record in json.loads(run("methods", "--json").out)}
    assert records["greedy"]["missing"] is None
    assert records["sdp"]["problems"] == ["max-cut"]
    assert {record["time_limit"] for record in records.values()} == {"used", "stops", "ignored"}
    text = run("methods").out
    assert all(name in text for name in records)


def test_samples_behind_greedy_are_told(run, tmp_path):
    graph = geometric_graph(300, 8.0, np.random.default_rng(0))
    with pytest.warns(
        GraphWarning, match=r"^graph: samples of mds-ba-small reach \d+, a greedy choice \d+; decoding or refinement is"
    ):
        solution = diffuco.solve(graph, "mds", model="mds-ba-small", samples=2, step_factor=1, refine=0, device="cpu")
    assert solution.objective > diffuco.solve(graph, "mds", method="greedy").objective
    with pytest.warns(GraphWarning, match=r"a greedy choice \d+; the model was trained on other graphs"):
        warn_if_greedy_is_ahead(solution.problem, [solution])
    write_graph(graph, tmp_path / "sensors.clq")
    options = ("--model", "mds-ba-small", "--samples", 2, "--step-factor", 1, "--refine", "none")
    (warning,) = run("solve", "mds", tmp_path / "sensors.clq", *options).warnings
    assert "sensors: samples of mds-ba-small reach" in warning
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alike = get_dataset("ba-small").graphs("test", 2)
        diffuco.solve(alike, "mds", model="mds-ba-small", samples=2, step_factor=1, refine=0, device="cpu")


def test_an_interrupt_ends_searches_that_python_does_not_run():
    program = """
import os, signal, sys, threading, time
import numpy as np
import diffuco
from diffuco.graphs.generate import er_graph

graph = er_graph(300, 0.3, np.random.default_rng(0))
for method in sys.argv[1:]:
    diffuco.solve(graph, "mis", method=method, time_limit_s=0.1, device="cpu")
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    try:
        diffuco.solve(graph, "mis", method=method, time_limit_s=20, device="cpu")
    except KeyboardInterrupt:
        print(method, time.monotonic() - started < 5)
"""
    methods = [method for method in ("numvc", "sa", "tabu") if not get_method(method).missing()]
    done = subprocess.run([sys.executable, "-c", program, *methods], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [word for method in methods for word in (method, "True")]
