from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

import diffuco
import oracle
from diffuco.diffusion.randomness import RowRandom
from diffuco.diffusion.sampling import evaluation_steps, sample_steps
from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.batch import make_batch
from diffuco.graphs.by_size import ROWS_PER_BATCH, batches_by_size
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.formats import FORMATS, read_graphs, write_graph
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import best_solutions
from diffuco.inference.solver import Solver
from diffuco.model import Checkpoint, Gnn, GnnConfig
from diffuco.pretrained import load_model
from diffuco.pretrained.choice import Choice, full_models
from diffuco.problems import MaximumIndependentSet, all_problems, get_problem, without_ignored_weights

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"
NAMES = [problem.name for problem in all_problems()]


def untrained(problem: str, num_steps: int = 2) -> Checkpoint:
    torch.manual_seed(0)
    model = Gnn(GnnConfig(num_steps=num_steps, num_layers=2, num_hidden=8, weighted=problem == "qubo"))
    return Checkpoint(model.eval(), problem, "untrained", {})


@pytest.mark.parametrize("name", NAMES)
def test_shipped_models_solve_small_graphs_to_the_optimum(name):
    """Best of 8 on graphs of a handful of nodes; each answer is compared with the enumeration of all states."""
    problem = get_problem(name)
    graphs = [without_ignored_weights(problem, graph) for graph in oracle.small_graphs(problem)]
    for graph, solution in zip(graphs, diffuco.solve(graphs, name, method="diffuco"), strict=True):
        verdicts = [problem.check(graph, x.astype(bool)) for x in oracle.all_states(graph.num_nodes)]
        best = (max if problem.sense == "max" else min)(v.objective for v in verdicts if v.feasible)
        assert solution.feasible
        assert solution.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("decode", ["ce", "ce-st"])
def test_every_decoded_answer_is_feasible_whatever_the_model(name, decode):
    solver = Solver(name, untrained(name), device="cpu")
    graphs = oracle.small_graphs(solver.problem)
    with pytest.warns(GraphWarning) if name != "qubo" else nullcontext():
        solutions = solver.solve(graphs, samples=3, decode=decode, token_size=3)
    for solution in solutions:
        assert solution.feasible
        assert solution.objective == solver.problem.check(solution.graph, solution.chosen).objective
        assert len(solution.energies) == len(solution.objectives) == 3
        assert set(solution.seconds) == {"load", "sample", "decode", "refine"}


def test_an_infeasible_answer_says_so():
    complete = Graph.from_edges([(u, v) for u in range(12) for v in range(u)])
    solver = Solver("mis", untrained("mis"), device="cpu")
    (solution,) = solver.solve([complete], samples=1, decode="none", seed=3)
    assert solution.violations > 0
    assert not solution.feasible
    assert solution.to_dict()["feasible"] is False


def test_the_best_feasible_sample_is_kept():
    graph, problem = Graph.from_edges([(0, 1)], num_nodes=3), get_problem("mis")
    states = torch.tensor([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])  # energies -1.99, -1, -2
    about = {"found_by": "me", "reason": "why not", "seed": 5, "seconds": {"sample": 1.0}}
    (best,) = best_solutions(problem, [graph], make_batch([graph]), states, **about)
    assert best.nodes == [0, 2]
    assert {name: getattr(best, name) for name in about} == about
    (only_infeasible,) = best_solutions(problem, [graph], make_batch([graph]), states[:, :1], **about)
    assert not only_infeasible.feasible


def test_same_seed_same_result_and_other_seed_other_samples():
    graphs = [graph for graph in oracle.small_graphs() if graph.num_nodes > 3]
    solver = Solver("max-cut", untrained("max-cut"), device="cpu")
    runs = [solver.solve(graphs, decode="none", seed=seed) for seed in (5, 5, 6)]
    energies = [[solution.energies for solution in run] for run in runs]
    assert energies[0] == energies[1]
    assert energies[0] != energies[2]


@pytest.mark.parametrize("name", NAMES)
def test_refined_samples_are_never_worse_than_the_same_samples_without(name):
    dataset = get_dataset("qubo-50-150" if name == "qubo" else "rb-small")
    solver = Solver(name, untrained(name), device="cpu")
    plain, refined, again, drawn = (
        solver.solve(dataset.graphs("validation", 2), samples=3, step_factor=1, **options)
        for options in ({"refine": 0}, {}, {}, {"decode": "none"})
    )
    assert [(s.sweeps, s.seconds["refine"] > 1e-4) for s in (plain[0], refined[0], drawn[0])] == [
        (0, False),
        (1000, True),
        (0, False),
    ]
    for before, after, same in zip(plain, refined, again, strict=True):
        assert after.feasible
        assert all(x <= y + 1e-3 for x, y in zip(after.energies, before.energies, strict=True))
        assert min(after.energies) < min(before.energies)
        assert after.energies == same.energies


def test_graphs_of_several_kinds_get_the_model_made_for_them(monkeypatch):
    small, large = get_dataset("ba-tiny").graph("test", 0), get_dataset("ba-small").graph("test", 0)
    choices = {graph.num_nodes: Choice(f"model of {graph.num_nodes}", "", True) for graph in (small, large)}
    monkeypatch.setattr(
        "diffuco.methods.model.choose_models", lambda problem, graphs: [choices[graph.num_nodes] for graph in graphs]
    )
    monkeypatch.setattr(
        "diffuco.inference.solver.load_model", lambda name, device: replace(untrained("mis"), name=name)
    )
    solutions = diffuco.solve([large, small, large], "mis", samples=1, step_factor=1)
    assert [solution.graph for solution in solutions] == [large, small, large]
    assert [solution.found_by for solution in solutions] == [f"model of {s.graph.num_nodes}" for s in solutions]


def test_results_come_in_the_order_given_whatever_the_batches(monkeypatch):
    monkeypatch.setitem(ROWS_PER_BATCH, "cpu", 20)
    graphs = oracle.small_graphs()[::-1]
    done: list[int] = []
    solver = Solver("max-cut", untrained("max-cut"), device="cpu")
    solutions = solver.solve(graphs, samples=2, on_solved=done.append)
    assert [solution.graph for solution in solutions] == graphs
    assert len(done) > 2
    assert sum(done) == len(graphs)


def test_batches_hold_every_graph_once_and_stay_small():
    rng = np.random.default_rng(0)
    graphs = [Graph.from_edges([], num_nodes=int(size)) for size in rng.integers(0, 9000, 60)]
    groups = list(batches_by_size(graphs, samples=8, max_rows=2**18))
    assert sorted(position for group in groups for position in group) == list(range(60))
    for group in groups:
        largest = max(graphs[position].num_nodes for position in group)
        assert len(group) == 1 or len(group) * largest * 8 <= 2**18


@pytest.mark.parametrize(
    "source",
    [
        np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]),
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
        nx.cycle_graph(5),
        scipy.sparse.csr_matrix(nx.to_scipy_sparse_array(nx.cycle_graph(5))),
        nx.to_numpy_array(nx.cycle_graph(5)),
        Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]),
    ],
    ids=["edge array", "edge list", "networkx", "scipy", "adjacency", "Graph"],
)
def test_solve_takes_what_python_users_have(source):
    solution = diffuco.solve(source, "mis", model=untrained("mis"))
    assert solution.objective == 2
    assert len(solution.nodes) == 2


def test_solve_takes_paths_and_lists_and_keeps_labels(tmp_path):
    write_graph(Graph.from_edges([(0, 1), (1, 2)]), tmp_path / "path.clq")
    named = nx.Graph([("anna", "ben"), ("ben", "carl")])
    solutions = diffuco.solve([tmp_path / "path.clq", named], "mis", model=untrained("mis"))
    assert [sorted(map(str, solution.nodes)) for solution in solutions] == [["1", "3"], ["anna", "carl"]]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"samples": 0}, "samples is 0"),
        ({"step_factor": 0}, "step factor is 0"),
        ({"token_size": 0}, "token size is 0"),
        ({"decode": "magic"}, "unknown decoding"),
        ({"refine": -1}, "refine is -1; give a whole number, 0 or more"),
        ({"refine": "none"}, "refine is 'none'; give a whole number, 0 or more"),
        ({"samples": 2.5}, "samples is 2.5; give a whole number, 1 or more"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, complaint):
    with pytest.raises(InputError, match=complaint):
        diffuco.solve([(0, 1)], "mis", model=untrained("mis"), **options)


def test_a_model_of_another_problem_is_refused():
    with pytest.raises(InputError, match="trained for mds, not mis"):
        Solver("mis", untrained("mds"))


def test_models_for_independent_sets_serve_vertex_covers():
    (graph,) = get_dataset("rb-tiny").graphs("test", 1)
    options = {"model": "mis-rb-small", "samples": 64, "refine": 0, "device": "cpu"}
    independent, cover = diffuco.solve(graph, "mis", **options), diffuco.solve(graph, "mvc", **options)
    assert (cover.found_by, cover.feasible) == ("mis-rb-small", True)
    assert cover.objective == graph.num_nodes - independent.objective
    # Each node is as often in a cover as it is outside of an independent set.
    assert np.abs(cover.states.mean(1) - (1 - independent.states.mean(1))).max() < 0.4
    assert abs(np.mean(cover.objectives) - (graph.num_nodes - np.mean(independent.objectives))) < 0.5
    with pytest.raises(InputError, match="was trained for mvc, not mis"):
        diffuco.solve(graph, "mis", model="mvc-rb-200")


def test_large_vertex_covers_have_the_models_of_independent_sets():
    graph = ba_graph(500, 4, np.random.default_rng(0))
    assert full_models("mvc", graph) == full_models("mis", graph) != []
    assert full_models("mvc", graph)[0] == "mis-sparse-48"


def test_unknown_models_and_devices_are_refused():
    with pytest.raises(InputError, match="did you mean 'mis-rb-small'"):
        diffuco.load_model("mis-rb-smal")
    with pytest.raises(InputError, match="cannot be used here"):
        pick_device("quantum")


@pytest.mark.filterwarnings("ignore::diffuco.foundation.errors.GraphWarning")
@pytest.mark.parametrize("name", NAMES)
def test_every_problem_on_every_format(tmp_path, name):
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)])
    solver = Solver(name, untrained(name), device="cpu")
    written = [kind for kind in FORMATS if kind.write is not None]
    assert len(written) >= 9
    for kind in written:
        path = tmp_path / f"graph{kind.suffixes[0]}"
        write_graph(graph, path)
        (read,) = read_graphs(path)
        (solution,) = solver.solve([read], samples=2)
        assert solution.feasible
        assert read.num_edges == graph.num_edges


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::diffuco.foundation.errors.GraphWarning")
@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the benchmark instances are not beside this checkout")
@pytest.mark.parametrize("name", NAMES)
def test_every_problem_on_every_benchmark_instance(name):
    suffixes = (".clq.gz", ".mc.gz", ".sparse.gz", ".gr.gz", ".edges.gz", ".txt.gz")
    skipped = ("cuts", "graph_indicator", "graph_labels")
    files = [path for path in sorted(SHARED_DATA.rglob("*.gz")) if path.name.endswith(suffixes)]
    files = [path for path in files if not any(part in str(path) for part in skipped)]
    assert len(files) > 400
    graphs = [graph for path in files for graph in read_graphs(path)]
    if name != "qubo":  # whose diagonal is no node weight
        graphs = [replace(graph, node_weights=None) if _is_qubo(graph) else graph for graph in graphs]
    for solution in Solver(name, device="cpu").solve(graphs, samples=2, step_factor=1):
        assert solution.feasible, solution.graph.name
        assert independent_check(name, solution), solution.graph.name


def _is_qubo(graph) -> bool:
    return graph.node_weights is not None and bool((graph.node_weights < 0).any())


def independent_check(name, solution) -> bool:
    """Feasibility by networkx, which knows nothing of this package."""
    graph = nx.empty_graph(solution.graph.num_nodes)
    graph.add_edges_from(solution.graph.edges.tolist())
    nodes = set(np.flatnonzero(solution.chosen).tolist())
    if name == "mis":
        return graph.subgraph(nodes).number_of_edges() == 0
    if name == "mvc":
        return graph.subgraph(set(graph) - nodes).number_of_edges() == 0
    if name == "max-clique":
        return graph.subgraph(nodes).number_of_edges() == len(nodes) * (len(nodes) - 1) // 2
    if name == "mds":
        return nx.is_dominating_set(graph, nodes)
    return True


def test_each_training_step_is_repeated_at_evaluation():
    assert evaluation_steps(4, 3) == [4, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1]
    model = untrained("mis", num_steps=3).model
    batch = make_batch(oracle.small_graphs()[3:])
    taken = list(
        sample_steps(model, batch, num_steps=3, num_samples=2, step_factor=2, random=RowRandom(oracle.seeded(0)))
    )
    assert [step.step for step in taken] == [3, 3, 2, 2, 1, 1]
    assert all(not step.logits.requires_grad for step in taken)


def test_a_problem_with_an_array_takes_a_loaded_model(models):
    @dataclass(frozen=True)
    class Priced(MaximumIndependentSet):
        prices: np.ndarray = field(default_factory=lambda: np.ones(3))

    loaded = load_model(models["mis"])
    for _ in range(2):
        assert diffuco.solve([(0, 1), (1, 2)], Priced(), model=loaded, samples=2, device="cpu").feasible
