import inspect
import json
import math
import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import diffuco
from diffuco.cli import COMMANDS
from diffuco.cli.evaluate import table
from diffuco.cli.options import PROBLEM_HELP, DecodeName
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.formats import FORMATS, read_graph, write_graph
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import Decode
from diffuco.inference.solver import Solver
from diffuco.problems import all_problems
from diffuco.solution.files import label_line, read_solution, write_solution

PROBLEMS = [problem.name for problem in all_problems()]
HEAVY = ("torch", "scipy.sparse", "numba", "networkx", "ortools", "pandas", "matplotlib")
JSON_KEYS = {
    *("problem", "file", "nodes", "edges", "objective", "feasible", "solution", "energies", "seconds"),
    *("found_by", "reason", "optimal", "bound", "gap", "violations", "objectives", "sweeps", "seed"),
}


def test_choices_are_those_of_the_package():
    assert re.findall(r"[\w-]+", PROBLEM_HELP.partition(":")[2].replace(" or ", " ")) == PROBLEMS
    assert list(DecodeName) == list(get_args(Decode))


def test_every_command_has_a_module_and_its_summary_is_the_first_line_of_its_help():
    for name, summary in COMMANDS.items():
        command = getattr(import_module(f"diffuco.cli.{name}"), name)
        assert inspect.getdoc(command).splitlines()[0] == summary
        assert callable(import_module(f"diffuco.cli.{name}").add_to)


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=lambda command: " ".join(command) or "-")
def test_help_has_examples(run, command):
    outcome = run(*command, "--help")
    assert outcome.code == 0
    assert "Examples:" in outcome.out
    assert f"$ diffuco {' '.join(command)}".strip() in outcome.out
    assert outcome.err == ""


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from diffuco.cli import COMMANDS, main; print([main([name, '--help']) for name in COMMANDS]);"
        "print([name for name in ('torch', 'numpy', 'scipy', 'numba', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *_, codes, heavy = done.stdout.splitlines()
    assert (codes, heavy) == (str([0] * len(COMMANDS)), "[]")


def test_check_does_not_import_the_solver(tmp_path, house):
    (tmp_path / "house.sol").write_text("1\n3\n")
    arguments = ["check", "mis", str(house), str(tmp_path / "house.sol")]
    program = f"import sys; from diffuco.cli import main; print(main({arguments!r}), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False"


@pytest.mark.parametrize(
    "arguments", [["solve", "mis", "-", "--format", "dimacs"], ["models"]], ids=lambda given: given[0]
)
def test_what_needs_no_tensor_imports_nothing_heavy(house, arguments):
    program = f"import sys; from diffuco.cli import main; print(main({arguments!r}));"
    program += f"print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, input=house.read_text()
    )
    assert done.stdout.splitlines()[-2:] == ["0", "[]"]


def test_public_names_are_lazy_and_complete():
    assert set(diffuco.__all__) <= set(dir(diffuco))
    for name in diffuco.__all__:
        assert getattr(diffuco, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        _ = diffuco.slove


def test_version(run):
    assert run("--version").out.strip() == diffuco.__version__ == metadata.version("diffuco")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_solve_writes_a_solution_that_check_accepts(run, models, tmp_path, house, problem):
    for suffix in (".sol", ".json"):
        path = tmp_path / f"out{suffix}"
        solved = run("solve", problem, house, "--model", models[problem], "--output", path, "--samples", 2)
        assert (solved.code, len(solved.err.splitlines())) == (0, problem == "qubo")  # a QUBO without weights is told
        assert "yes" in solved.out
        checked = run("check", problem, house, path, "--json")
        assert (checked.code, checked.err) == (0, "")
        assert json.loads(checked.out)["feasible"] is True


@pytest.mark.parametrize("known", [known for known in FORMATS if known.write], ids=lambda known: known.name)
def test_solve_reads_every_format(run, models, tmp_path, known):
    path = tmp_path / f"graph{known.suffixes[0]}.gz"
    write_graph(Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4)], 5), path, known.name)
    outcome = run("solve", "mds", path, "--model", models["mds"], "--samples", 2, "--json", "--format", known.name)
    assert outcome.code == 0
    record = json.loads(outcome.out)
    assert record["feasible"]
    assert (record["nodes"], record["file"]) == (5, str(path))


@pytest.mark.parametrize("known", [known for known in FORMATS if known.write], ids=lambda known: known.name)
def test_node_weights_of_a_file_are_weights_of_the_set(run, models, tmp_path, known):
    if "node_weights" not in known.holds:
        pytest.skip("no node weights in this format")
    path = tmp_path / f"graph{known.suffixes[0]}"
    write_graph(Graph.from_edges([(0, 1), (1, 2)], node_weights=[1, 5, 1], edge_weights=[2, 2]), path, known.name)
    for problem, objective in (("mis", 5), ("mvc", 2), ("max-clique", 6), ("mds", 2)):
        for by in (("--method", "auto"), ("--model", models[problem])):
            outcome = run("solve", problem, path, *by, "--json", "--output", tmp_path / "solution.json")
            record = json.loads(outcome.out)
            assert (outcome.code, record["objective"], record["feasible"]) == (0, objective, True)
            assert run("check", problem, path, tmp_path / "solution.json").code == 0


def test_node_weights_below_0_are_refused_in_one_line(run, models, tmp_path):
    path = tmp_path / "graph.graphml"
    write_graph(Graph.from_edges([(0, 1), (1, 2)], node_weights=[1, -5, 1], labels=["a", "b", "c"]), path)
    for by in (("--method", "auto"), ("--model", models["mis"])):
        outcome = run("solve", "mis", path, *by)
        assert outcome.code == 2
        assert outcome.errors == [f"error: {path}: node b weighs -5; mis takes node weights from 0 to 1e+30"]


def test_json_has_the_promised_keys(run, models, house):
    record = json.loads(run("solve", "mis", house, "--model", models["mis"], "--json").out)
    assert record.keys() == JSON_KEYS
    assert record["seconds"].keys() == {"load", "sample", "decode", "refine"}
    assert (record["sweeps"], record["optimal"], record["bound"], record["reason"]) == (1000, False, None, "")
    assert record["found_by"] == str(models["mis"])
    assert len(record["energies"]) == 8
    assert set(record["solution"]) <= {1, 2, 3, 4, 5}
    assert record["objective"] == len(record["solution"]) == 2


def test_a_solution_is_improved_from_a_start(run, tmp_path):
    graph, own = tmp_path / "graph.clq", tmp_path / "own.sol"
    write_graph(get_dataset("ba-small").graph("validation", 0), graph)
    assert run("solve", "mis", graph, "--method", "anneal", "--output", own).code == 0
    given = json.loads(run("check", "mis", graph, own, "--json").out)["objective"]
    plain = json.loads(run("solve", "mis", graph, "--method", "greedy", "--json").out)
    outcome = run("solve", "mis", graph, "--method", "greedy", "--start", own, "--json")
    record = json.loads(outcome.out)
    assert record["objective"] >= given > plain["objective"]
    assert (record["found_by"], record["feasible"]) == ("anneal", True)
    assert outcome.err == "note: solved by anneal: annealing from the given solution was ahead of greedy\n"
    (tmp_path / "nothing.sol").write_text("")
    from_nothing = json.loads(run("solve", "mis", graph, "--start", tmp_path / "nothing.sol", "--json").out)
    assert from_nothing["objective"] >= json.loads(run("solve", "mis", graph, "--json").out)["objective"]


def test_same_seed_same_result(run, models, tmp_path):
    write_graph(get_dataset("rb-tiny").graph("test", 0), tmp_path / "graph.clq")
    records = []
    for seed in (1, 1, 2):
        options = ("--model", models["mis"], "--decode", "none", "--seed", seed, "--json")
        records.append(json.loads(run("solve", "mis", tmp_path / "graph.clq", *options).out))
        del records[-1]["seconds"]
    assert records[0] == records[1]
    assert records[0]["energies"] != records[2]["energies"]


def test_refine_none_is_the_method_of_the_paper(run, models, tmp_path):
    write_graph(get_dataset("rb-small").graph("validation", 0), tmp_path / "graph.clq")
    plain, refined = (
        json.loads(run("solve", "mis", tmp_path / "graph.clq", "--model", models["mis"], *options, "--json").out)
        for options in (("--refine", "none"), ("--refine", 50))
    )
    assert (plain["sweeps"], refined["sweeps"]) == (0, 50)
    assert sum(refined["energies"]) < sum(plain["energies"])


def test_infeasible_solutions_are_called_so(run, models, tmp_path):
    write_graph(Graph.from_edges([(u, v) for v in range(12) for u in range(v)]), tmp_path / "complete.clq")
    options = ("--model", models["mis"], "--decode", "none", "--samples", 1, "--output", tmp_path / "bad.sol")
    outcome = run("solve", "mis", tmp_path / "complete.clq", *options)
    assert outcome.code == 0
    assert "NO: " in outcome.out
    checked = run("check", "mis", tmp_path / "complete.clq", tmp_path / "bad.sol")
    assert checked.code == 1
    assert "NO: " in checked.out


def test_folder_is_solved_file_by_file(run, models, tmp_path, house):
    (tmp_path / "notes.md").write_text("no graph")
    (tmp_path / "a.txt").write_text("x y\ny z\n")
    outcome = run("solve", "mvc", tmp_path, "--model", models["mvc"], "--json", "--output", tmp_path / "out")
    assert outcome.code == 0
    assert [Path(record["file"]).name for record in json.loads(outcome.out)] == ["a.txt", "house.clq"]
    assert len(outcome.warnings) == len(outcome.err.splitlines()) == 1
    assert "notes.md" in outcome.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.sol", "house.sol"]
    assert run("check", "mvc", tmp_path / "a.txt", tmp_path / "out" / "a.sol").code == 0


def test_a_bad_file_costs_only_itself(run, models, tmp_path, house):
    missing, empty_folder = tmp_path / "missing.clq", tmp_path / "empty"
    empty_folder.mkdir()
    for extra in ((), ("--json",)):
        outcome = run("solve", "mis", missing, empty_folder, house, "--model", models["mis"], *extra)
        assert outcome.code == 2
        assert len(outcome.errors) == len(outcome.err.splitlines()) == 2
        assert "missing.clq" in outcome.err
        assert "house.clq" in outcome.out


def test_files_of_one_name_get_distinct_solution_files(run, models, tmp_path, house):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "house.clq"
    other.write_bytes(house.read_bytes())
    assert run("solve", "mis", house, other, "--model", models["mis"], "--output", tmp_path / "out").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["house.2.sol", "house.sol"]


def test_long_solutions_are_shortened(run, models, tmp_path):
    write_graph(Graph.from_edges([(0, 1)], 500), tmp_path / "sparse.clq")
    outcome = run("solve", "mis", tmp_path / "sparse.clq", "--model", models["mis"], "--samples", 1)
    assert "more (all of them with --output FILE or --json)" in outcome.out
    assert len(outcome.out) < 2000


def test_standard_input(house):
    command = [sys.executable, "-m", "diffuco", "solve", "mis", "-", "--format", "dimacs", "--json"]
    done = subprocess.run([*command, "--method", "greedy"], input=house.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["nodes"] == 5


@pytest.mark.parametrize(("problem", "suffix"), [("max-cut", ".png"), ("mis", ".svg"), ("mds", ".pdf")])
def test_plot(run, models, tmp_path, house, problem, suffix):
    path = tmp_path / "pictures" / f"house{suffix}"
    assert run("solve", problem, house, "--model", models[problem], "--plot", path).code == 0
    assert path.stat().st_size > 3000


def test_large_graphs_are_drawn_as_matrix(tmp_path, models):
    from diffuco.plotting import plot_solution

    graph = Graph.from_edges(np.stack([np.arange(2500), np.arange(1, 2501)], axis=1))
    solution = Solver("mis", models["mis"]).solve([graph], samples=1, step_factor=1)[0]
    plot_solution(solution, tmp_path / "path.png")
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("label", ["New York", "#1", '"quoted"', " padded ", "", "two\nlines", "tab\t", "ü", "7"])
def test_labels_survive_a_solution_file(tmp_path, label):
    graph = Graph.from_edges([(0, 1)], labels=[label, "other"])
    record = {"problem": "mis", "file": "f", "objective": 1, "feasible": True, "found_by": "m", "seed": 0}
    for suffix in (".sol", ".json"):
        write_solution(tmp_path / f"s{suffix}", record | {"solution": [label]})
        assert read_solution(tmp_path / f"s{suffix}", graph).chosen.tolist() == [True, False]
    assert "\n" not in label_line(label)


def test_check_compares_with_what_the_file_claims(run, tmp_path, house):
    (tmp_path / "s.sol").write_text("# problem: mis\n# objective: 3\n1\n3\n")
    outcome = run("check", "mis", house, tmp_path / "s.sol")
    assert outcome.code == 0
    assert "objective  2" in outcome.out
    assert outcome.warnings == [f"warning: {tmp_path / 's.sol'}: the file claims objective 3, but it is 2"]
    outcome = run("check", "max-cut", house, tmp_path / "s.sol")
    assert "this is a solution of mis, but it was checked as max-cut" in outcome.err


def test_generate_writes_the_graphs_of_the_dataset(run, tmp_path):
    options = ("--out", tmp_path, "--count", 3, "--split", "validation", "--format", "dimacs", "--seed", 5)
    outcome = run("generate", "rb-tiny", *options, "--json")
    assert outcome.code == 0
    files = json.loads(outcome.out)["files"]
    expected = [graph.digest for graph in get_dataset("rb-tiny").graphs("validation", 3, seed=5)]
    assert [read_graph(file).digest for file in files] == expected
    assert "3 graphs" in run("generate", "rb-tiny", *options).out


def test_generated_qubo_keeps_its_weights(run, tmp_path):
    outcome = run("generate", "qubo-tiny", "--out", tmp_path, "--count", 1, "--json")
    (file,) = json.loads(outcome.out)["files"]
    assert read_graph(file).digest == get_dataset("qubo-tiny").graph("test", 0).digest


def test_lists(run):
    assert "rb-small" in run("generate", "--list").out
    assert "mis-rb-small" in run("train", "--list").out


def test_models_lists_shipped_models(run, models, monkeypatch):
    monkeypatch.setattr("diffuco.pretrained.FOLDER", models["mis"].parent)
    assert "mis-untrained" in run("models").out
    cards = json.loads(run("models", "--json").out)
    assert {card["problem"] for card in cards} == set(PROBLEMS)
    assert all(card["parameters"] > 1000 for card in cards)


def test_models_to_compare_with_are_a_list_of_their_own(run):
    shown = run("models")
    assert "egn" not in shown.out
    baselines = json.loads(run("models", "--baselines", "--json").out)
    assert f"note: --baselines lists {len(baselines)} models more" in shown.err
    assert all(card["name"].endswith(("-egn", "-egn-anneal")) for card in baselines)


def test_where_baselines_are_is_told_without_them(run, tmp_path, monkeypatch):
    monkeypatch.setenv("DIFFUCO_MODELS", str(tmp_path))
    assert "set DIFFUCO_MODELS to the folder" in run("models", "--baselines").out


def test_doctor_names_versions_devices_and_implementations(run):
    report = json.loads(run("doctor", "--json").out)
    assert report["devices"]["cpu"]["implementations"]["decode dense"] == "numba"
    assert report["packages"]["torch"]
    text = run("doctor").out
    assert "decode dense" in text
    assert "ortools" in text


def test_doctor_says_how_to_get_what_is_missing(run, monkeypatch):
    version = metadata.version

    def without_matplotlib(name):
        if name == "matplotlib":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without_matplotlib)
    assert "missing; pip install 'matplotlib>=3.8'" in run("doctor").out


def test_doctor_lists_all_packages_that_users_may_install(run):
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = [text for name, texts in extras.items() if name not in ("docs", "dev") for text in texts]
    report = json.loads(run("doctor", "--json").out)
    for listed, wanted in (("packages", project["dependencies"]), ("optional", optional)):
        assert list(report[listed]) == [re.match(r"[\w-]+", text)[0] for text in wanted]


TINY = ("--set", "anneal_epochs=1", "--set", "num_train_graphs=32", "--set", "num_validation_graphs=4")


def test_train_resume_and_solve_with_the_result(run, tmp_path, house, monkeypatch):
    monkeypatch.setattr("diffuco.training.reporting.LINE_EVERY_S", 0.0)
    folder = tmp_path / "run"
    stopped = run("train", "mis-tiny", "--out", folder, *TINY, "--stop-after", 0, "--json")
    assert stopped.code == 0, stopped.err
    assert json.loads(stopped.out)["finished"] is False
    # Into a file, training prints a line now and then.
    assert re.match(r"step 1 of 2, 0\.\d minutes, about 0\.\d left; energy -?\d+\.\d+\n$", stopped.err)
    assert json.loads(stopped.out)["best_energy"] is None
    refused = run("train", "mis-tiny", "--out", folder, *TINY)
    assert (refused.code, len(refused.errors)) == (2, 1)
    assert "--resume" in refused.err
    finished = run("train", "mis-tiny", "--out", folder, *TINY, "--resume")
    assert finished.code == 0, finished.err
    assert "num_train_graphs = 32" in finished.out
    assert "best.safetensors" in finished.out
    assert run("solve", "mis", house, "--model", folder / "best.safetensors").code == 0


def test_evaluate_against_exact_optima(run, models, tmp_path):
    options = ("--dataset", "rb-tiny", "--count", 3, "--reference", "best-known", "--samples", 2)
    outcome = run("evaluate", "--model", models["mis"], *options, "--output", tmp_path / "record.json", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert record == json.loads((tmp_path / "record.json").read_text())
    assert (record["dataset"], record["graphs"]) == ("rb-tiny", 3)
    assert (record["reference"]["solver"], record["reference"]["proven"]) == ("cp-sat", 3)
    outcome = run("evaluate", "--model", models["mis"], *options)
    assert "3 of 3" in outcome.out
    assert outcome.err == ""


def test_evaluate_refines_only_if_told(run, models):
    options = ("--model", models["mis"], "--dataset", "rb-tiny", "--count", 3, "--samples", 2)
    plain, refined = (json.loads(run("evaluate", *options, *more, "--json").out) for more in ((), ("--refine", "auto")))
    assert (plain["sweeps"], refined["sweeps"]) == (0, 1000)
    assert plain["seconds"]["refine"] < 0.01
    assert refined["mean"] >= plain["mean"]
    assert "sweeps of refinement" in run("evaluate", *options, "--refine", 10).out
    assert "sweeps of refinement" not in run("evaluate", *options).out


def test_evaluation_of_one_graph_is_valid_json(run, models):
    outcome = run("evaluate", "--model", models["mis"], "--dataset", "rb-tiny", "--count", 1, "--json")
    record = json.loads(outcome.out, parse_constant=pytest.fail)
    assert "reference" not in record


def test_evaluation_shows_no_infinity(run, tmp_path):
    (tmp_path / "a.edges").write_text("a b -1\nb c -1\n")
    outcome = run(
        *("evaluate", "--method", "greedy", "--problem", "max-cut", "--graphs", tmp_path, "--split", "all"),
        *("--reference", "best-known"),
    )
    assert (outcome.code, "inf" in outcome.out, "nan" in outcome.out) == (0, False, False)
    record = {"problem": "mis", "model": "m", "graphs": 1, "hardware": "h", "samples": 1, "steps": 1, "decode": "ce"}
    record |= {"sweeps": 0, "mean": 1.0, "mean_standard_error": math.nan, "best": 1.0, "feasible": 1}
    record |= {"seconds": {"sample": 0.0, "decode": 0.0}}
    gaps = {"mean": 0.0, "gap": math.inf, "gap_standard_error": math.nan, "gap_of_best": 0.0, "gap_of_means": math.inf}
    shown = table(record | {"reference": gaps | {"n_query": math.inf}})
    cells = [[str(cell) for cell in column.cells] for column in shown.columns]
    rows = dict(zip(*cells, strict=True))
    assert rows["graphs until training pays off, if the answers are as good"] == "never"
    assert "inf" not in str(rows)
    assert "nan" not in str(rows)


def test_labels_with_blanks_are_quoted_and_a_cut_says_its_sides(run, tmp_path):
    (tmp_path / "a.csv").write_text("source,target\nNew York,Rome\nRome,Paris\n")
    assert '2 nodes: "New York" Paris\n' in run("solve", "mis", tmp_path / "a.csv").out
    out = run("solve", "max-cut", tmp_path / "a.csv").out
    assert re.search(r"on one side of the cut, [12] on the other; the one side: ", out)


def test_a_qubo_without_weights_is_told(run, tmp_path):
    (tmp_path / "a.edges").write_text("a b\nb c\n")
    outcome = run("solve", "qubo", tmp_path / "a.edges")
    assert len(outcome.warnings) == 1
    assert "a: it has no weights; qubo takes 1 for every edge and 0 for every node" in outcome.err


def test_interrupt_is_one_line(run, monkeypatch, house):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("diffuco.cli.solve.load_inputs", interrupt)
    outcome = run("solve", "mis", house)
    assert outcome.code == 130
    assert outcome.err.strip() == "error: interrupted"


def test_broken_pipe_is_silent():
    command = [sys.executable, "-m", "diffuco", "generate", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() in (1, -signal.SIGPIPE, 128 + signal.SIGPIPE)


def test_program_without_arguments_shows_help():
    environment = os.environ | {"COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-m", "diffuco"], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    commands = (done.stdout + done.stderr).partition("Commands:")[2].partition("Examples:")[0]
    assert [line.split()[0] for line in commands.splitlines() if re.match(r"  \w", line)] == [*COMMANDS]
    for summary in COMMANDS.values():
        assert " ".join(summary.split()) in " ".join(commands.split())  # no line is cut off


@pytest.mark.parametrize("given", ["", "ACTIVE"])
def test_threads_wait_asleep_unless_the_user_says_otherwise(given):
    script = "import os, sys; from diffuco.cli import main; main(['--version']); "
    script += "assert 'torch' not in sys.modules; print(os.environ['OMP_WAIT_POLICY'])"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": given} if given else {}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == (given or "PASSIVE")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_labels_that_the_terminal_does_not_know_are_escaped(tmp_path, encoding):
    (tmp_path / "łódź.edges").write_text("Łódź 東京\n")
    done = subprocess.run(
        [sys.executable, "-m", "diffuco", "solve", "mvc", tmp_path / "łódź.edges"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
    )
    shown = done.stdout.decode(encoding)
    assert done.returncode == 0, done.stderr
    assert "1 node: " in shown
    assert r"\u0142" in shown
    assert b"Traceback" not in done.stderr


def test_an_interrupt_does_not_wait_for_proofs(tmp_path):
    one = er_graph(400, 0.1, np.random.default_rng(0))
    pieces = np.concatenate([one.edges, one.edges + one.num_nodes])
    write_graph(Graph.from_edges(pieces, 2 * one.num_nodes), tmp_path / "pieces.clq")
    program = """
import os, signal, threading
import scipy.optimize, torch
import diffuco.__main__

threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
diffuco.__main__.main()
"""
    arguments = ["solve", "mis", tmp_path / "pieces.clq", "--method", "highs"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=40)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")
