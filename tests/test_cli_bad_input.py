"""Everything a user can get wrong ends in one line that names the place, exit code 2 and no traceback."""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from diffuco.graphs.formats import write_graph
from diffuco.graphs.graph import Graph

BINARY = np.random.default_rng(0).bytes(3000)

BAD_GRAPHS = {
    "wrong-suffix": ("graph.docx", b"1 2\n", "suffix"),
    "empty": ("graph.clq", b"", "empty"),
    "empty-edge-list": ("graph.txt", b"", "empty"),
    "binary": ("graph.clq", b"p edge 3 1\n\0\1\2" + BINARY, "graph.clq:2"),
    "random-npz": ("graph.npz", BINARY, "graph.npz"),
    "random-edge-list": ("graph.txt", BINARY, "graph.txt"),
    "truncated-gz": ("graph.clq.gz", gzip.compress(b"p edge 2 1\ne 1 2\n" * 500)[:-20], "damaged or cut off"),
    "no-header": ("graph.clq", b"e 1 2\n", "graph.clq"),
    "lying-header": ("graph.clq", b"p edge 3 7\ne 1 2\n", "graph.clq:1"),
    "lying-metis": ("graph.graph", b"3 9\n2\n1 3\n2\n", "graph.graph"),
    "huge-header": ("graph.clq", b"p edge 99999999999 1\ne 1 2\n", "graph.clq:1"),
    "negative-header": ("graph.gr", b"p td -3 1\n1 2\n", "graph.gr:1"),
    "node-out-of-range": ("graph.clq", b"p edge 3 2\ne 1 2\ne 2 4\n", "graph.clq:3"),
    "node-zero": ("graph.clq", b"p edge 3 1\ne 0 2\n", "graph.clq:2"),
    "words": ("graph.clq", b"p edge 3 1\ne one two\n", "graph.clq:2"),
    "nan-weight": ("graph.mc", b"3 2\n1 2 1\n2 3 nan\n", "graph.mc:3"),
    "infinite-weight": ("graph.mc", b"3 2\n1 2 1\n2 3 inf\n", "graph.mc:3"),
    "negative-node-weight": ("graph.clq", b"p edge 2 1\nn 1 -5\ne 1 2\n", "graph.clq:2"),
    "broken-graphml": ("graph.graphml", b"<graphml><graph>", "graph.graphml"),
    "broken-mtx": ("graph.mtx", b"%%MatrixMarket matrix nonsense\n", "graph.mtx"),
}


def assert_one_line(outcome, *hints: str) -> None:
    assert outcome.code == 2
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("error: ")
    assert len(lines[0]) < 600
    for hint in hints:
        assert hint in lines[0]


@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_bad_graph_file(run, tmp_path, case):
    name, content, hint = BAD_GRAPHS[case]
    (tmp_path / name).write_bytes(content)
    assert_one_line(run("solve", "mis", tmp_path / name), name, hint)
    (tmp_path / "s.sol").write_text("1\n")
    assert_one_line(run("check", "mis", tmp_path / name, tmp_path / "s.sol"), name, hint)


def test_weights_whose_sum_may_be_infinite(run, tmp_path):
    (tmp_path / "graph.mc").write_text("3 2\n1 2 1\n2 3 1e308\n")
    outcome = run("solve", "max-cut", tmp_path / "graph.mc")
    assert_one_line(outcome, "graph.mc: edge weight number 1 is 1e+308; scale the weights to at most 1e+100")


def test_missing_file(run, tmp_path):
    assert_one_line(run("solve", "mis", tmp_path / "none.clq"), "none.clq", "no such file")
    assert_one_line(run("solve", "mis", tmp_path / "folder"), "folder: there is no such file or folder; check the path")


def test_folder_without_graphs(run, tmp_path):
    (tmp_path / "notes.md").write_text("no graph")
    assert_one_line(run("solve", "mis", tmp_path), str(tmp_path), "no graph files")


def test_standard_input_needs_a_format(run):
    assert_one_line(run("solve", "mis", "-"), "--format")


def test_self_loops_and_repeated_edges_are_a_warning(run, models, tmp_path):
    path = tmp_path / "loops.txt"
    path.write_text("a b\nb a\na a\nb c\n")
    outcome = run("solve", "mis", path, "--model", models["mis"], "--samples", 1)
    assert outcome.code == 0
    assert outcome.warnings == outcome.err.splitlines()
    assert len(outcome.warnings) == 1
    assert "loops.txt" in outcome.err
    assert "dropped 1 self-loop and 1 repeated edge" in outcome.err


def test_ignored_weights_are_a_warning(run, models, tmp_path):
    path = tmp_path / "weights.mc"
    path.write_text("3 2\n1 2 5\n2 3 7\n")
    outcome = run("solve", "mis", path, "--model", models["mis"], "--samples", 1)
    assert outcome.code == 0
    assert len(outcome.warnings) == len(outcome.err.splitlines()) == 1
    assert "weights" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["solve", "mis"], "Missing argument 'FILE'"),
        (["solve", "mis", "FILE", "--sample", "3"], "--samples"),
        (["solve", "mis", "FILE", "--samples", "many"], "--samples"),
        (["solve", "mis", "FILE", "--decode", "best"], "--decode"),
        (["slove"], "Did you mean 'solve'"),
    ],
)
def test_usage(run, house, arguments, hint):
    outcome = run(*[str(house) if argument == "FILE" else argument for argument in arguments])
    assert_one_line(outcome, hint, "--help'")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--samples", 0], "samples is 0"),
        (["--samples", -1], "samples is -1"),
        (["--step-factor", 0], "step factor is 0"),
        (["--token-size", 0], "token size is 0"),
        (["--device", "cuda:77"], "cuda:77"),
        (["--device", "toaster"], "toaster"),
        (["--model", "no-such-model"], "no-such-model"),
        (["--format", "word"], "word"),
        (["--plot", "picture.docx"], "picture.docx"),
        (["--plot", "/proc/none/picture.png"], "/proc/none"),
        (["--output", "/proc/none/solution.sol"], "/proc/none"),
    ],
)
def test_bad_solve_option(run, models, house, options, hint):
    model = [] if "--model" in options else ["--model", models["mis"]]
    assert_one_line(run("solve", "mis", house, *model, *options), hint)


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "misses", "FILE"],
        ["check", "misses", "FILE", "FILE"],
        ["reference", "rb-tiny", "misses"],
        ["compare", "--problem", "misses", "--dataset", "rb-tiny"],
        ["evaluate", "--problem", "misses", "--dataset", "rb-tiny", "--method", "greedy"],
        ["train", "--problem", "misses", "--graphs", "FILE"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_unknown_problem(run, house, arguments):
    outcome = run(*[str(house) if argument == "FILE" else argument for argument in arguments])
    assert_one_line(outcome, "unknown problem 'misses'; did you mean 'mis'?")


@pytest.mark.parametrize(
    ("content", "hint"),
    [("77\n", "own.sol:1: the graph has no node '77'"), ("1\n1\n", "own.sol:2: node '1' is listed twice")],
)
def test_bad_start(run, house, tmp_path, content, hint):
    (tmp_path / "own.sol").write_text(content)
    assert_one_line(run("solve", "mis", house, "--start", tmp_path / "own.sol"), hint)


def test_start_is_for_one_graph(run, house, tmp_path):
    assert_one_line(run("solve", "mis", house, "--start", tmp_path / "none.sol"), "none.sol", "no such file")
    assert_one_line(
        run("solve", "mis", house, house, "--start", "own.sol"), "--start is for one graph, but there are 2"
    )
    outcome = run("solve", "mis", house, "--start", "own.sol", "--output", tmp_path / "found.jsonl")
    assert_one_line(outcome, "--start is for one graph; it excludes --output")


def test_several_graphs_do_not_fit_in_one_file(run, models, house):
    several = ("solve", "mis", house, house, "--model", models["mis"])
    assert_one_line(run(*several, "--output", "all.json"), "folder")
    assert_one_line(run(*several, "--output", house), "folder")
    for name in ("all.jsonl.gz", "all.csv", "all.sol"):
        assert_one_line(run(*several, "--output", name), f"{name}: several solutions go into a folder; give one")
    assert_one_line(run(*several, "--plot", "all.png"), "one graph")


def test_missing_matplotlib(run, models, house, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = run("solve", "mis", house, "--model", models["mis"], "--plot", "picture.png")
    assert_one_line(outcome, "pip install 'matplotlib>=3.8'")


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "mis", "FILE", "--method", "greedy"],
        ["sample", "mis", "FILE", "--temperature", "1"],
        ["evaluate", "--dataset", "rb-tiny", "--method", "greedy", "--problem", "mis"],
        ["compare", "--dataset", "rb-tiny", "--methods", "greedy", "--problem", "mis"],
        ["generate", "rb-tiny", "--out", "OUT"],
        ["train", "mis-tiny", "--out", "OUT"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("seed", [-1, 2**63])
def test_bad_seed(run, house, tmp_path, arguments, seed):
    names = {"OUT": str(tmp_path / "OUT"), "FILE": str(house)}
    outcome = run(*[names.get(argument, argument) for argument in arguments], "--seed", seed)
    assert_one_line(outcome, f"seed is {seed}; give a whole number from 0 to 9223372036854775807")
    assert not (tmp_path / "OUT").exists()


def _truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    return content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]


def _flipped_header(content: bytes) -> bytes:
    return bytes([content[0] ^ 255]) + content[1:]


@pytest.mark.parametrize(
    "damage", [_truncated, _flipped, _flipped_header, lambda _: BINARY, lambda _: b"", lambda _: b"{}"]
)
def test_damaged_checkpoint(run, models, tmp_path, house, damage):
    path = tmp_path / "model.safetensors"
    path.write_bytes(damage(models["mis"].read_bytes()))
    assert_one_line(run("solve", "mis", house, "--model", path), "model.safetensors")


def test_foreign_safetensors(run, tmp_path, house):
    from safetensors.numpy import save_file

    save_file({"weights": np.zeros(3)}, tmp_path / "foreign.safetensors")
    outcome = run("solve", "mis", house, "--model", tmp_path / "foreign.safetensors")
    assert_one_line(outcome, "foreign.safetensors", "not a diffuco checkpoint")


def test_checkpoint_of_another_problem(run, models, house):
    assert_one_line(run("solve", "mis", house, "--model", models["mds"]), "mds", "mis")
    outcome = run("evaluate", "--model", models["mds"], "--dataset", "rb-tiny", "--problem", "mis")
    assert_one_line(outcome, "mds", "mis")


def test_folder_as_model(run, tmp_path, house):
    assert_one_line(run("solve", "mis", house, "--model", tmp_path), str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("s.sol", "# made by hand\n1\n77\n", "s.sol:3: the graph has no node '77'"),
        ("s.sol", "1\n2\n1\n", "s.sol:3: node '1' is listed twice"),
        ("s.sol", '1\n"open\n', "s.sol:2"),
        ("s.sol", b"1\n\xff\xfe\n", "s.sol:2"),
        ("s.json", '{"solution": [1, 77]}', "s.json: entry 2: the graph has no node '77'"),
        ("s.json", '{"solution": 3}', "s.json"),
        ("s.json", "[1, 2]", "s.json"),
        ("s.json", '{"solution": [1,', "s.json:1"),
        ("s.json", "", "s.json"),
    ],
)
def test_bad_solution_file(run, tmp_path, house, name, content, hint):
    path: Path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_one_line(run("check", "mis", house, path), hint)


def test_missing_solution_file(run, tmp_path, house):
    assert_one_line(run("check", "mis", house, tmp_path / "none.sol"), "none.sol", "no such file")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["generate", "rb-smal", "--out", "OUT"], "rb-small"),
        (["generate", "rb-tiny", "--out", "OUT", "--split", "dev"], "dev"),
        (["generate", "rb-tiny", "--out", "OUT", "--count", "100000"], "100,000 graphs requested from rb-tiny"),
        (["generate", "rb-tiny", "--out", "OUT", "--count", "1", "--format", "tu"], "'tu'"),
        (["generate", "rb-tiny", "--out", "/proc/none", "--count", "1"], "/proc/none"),
        (["train", "mis-tinny", "--out", "OUT"], "mis-tiny"),
        (["train", "mis-tiny", "--out", "OUT", "--set", "num_step=3"], "num_steps"),
        (["train", "mis-tiny", "--out", "OUT", "--set", "num_steps"], "key=value"),
        (["train", "mis-tiny", "--out", "OUT", "--set", "num_steps=few"], "num_steps"),
        (["train", "mis-tiny", "--out", "OUT", "--set", "num_steps=0"], "num_steps"),
        (["train", "mis-tiny", "--out", "OUT", "--set", "noise=loud"], "noise"),
        (["train", "mis-tiny", "--out", "OUT", "--set", "learning_rate=-1"], "learning_rate is -1.0; give a number"),
        (["train", "mis-tiny", "--out", "OUT", "--set", "learning_rate=nan"], "learning_rate is nan; give a number"),
        (["train", "mis-tiny", "--out", "OUT", "--set", "seed=-1"], "seed is -1; give a number, 0 or more"),
        (["train", "mis-tiny", "--out", "OUT", "--max-minutes", "-1"], "--max-minutes is -1; give minutes, 0 or more"),
        (["train", "mis-tiny", "--out", "OUT", "--max-minutes", "nan"], "--max-minutes is nan; give minutes"),
        (["train", "mis-tiny", "--out", "OUT", "--stop-after", "-1"], "--stop-after is -1; give minutes, 0 or more"),
        (["train", "mis-tiny", "--out", "OUT", "--resume", "--json"], "OUT"),
        (["train", "mis-tiny", "--out", "/proc/none"], "/proc/none"),
        (["evaluate", "--model", "MODEL", "--dataset", "rb-tini"], "rb-tiny"),
        (["evaluate", "--model", "MODEL", "--dataset", "rb-tiny", "--count", "0"], "--count"),
        (["evaluate", "--model", "MODEL", "--dataset", "rb-tiny", "--count", "1", "--samples", "0"], "samples is 0"),
        (["evaluate", "--model", "none", "--dataset", "rb-tiny"], "none"),
        (["evaluate", "--dataset", "rb-tiny"], "--model"),
        (["evaluate", "--model", "MODEL", "--dataset", "rb-tiny", "--output", "/proc/none/r.json"], "/proc/none"),
        (["evaluate", "--model", "MODEL", "--dataset", "rb-tiny", "--output", "."], ".: this is a folder; give a file"),
        (["compare", "--problem", "mis", "--dataset", "rb-tiny", "--output", "."], ".: this is a folder; give a file"),
    ],
)
def test_bad_generate_train_evaluate(run, models, tmp_path, arguments, hint):
    names = {"OUT": str(tmp_path / "OUT"), "MODEL": str(models["mis"])}
    assert_one_line(run(*[names.get(argument, argument) for argument in arguments]), hint)


def test_labels_that_read_the_same_cannot_be_checked(tmp_path):
    from diffuco.foundation.errors import InputError
    from diffuco.solution.files import read_solution

    (tmp_path / "s.sol").write_text("1\n")
    graph = Graph.from_edges([(0, 1)], labels=[1, "1"])
    with pytest.raises(InputError, match="look the same as text"):
        read_solution(tmp_path / "s.sol", graph)


def test_graphs_are_not_overwritten(run, tmp_path):
    graph, arrays = tmp_path / "graph.edges", tmp_path / "graph.npz"
    graph.write_text("a b\n")
    assert run("solve", "mis", graph, "--output", tmp_path / "." / "graph.edges").code == 2
    assert graph.read_text() == "a b\n"
    (tmp_path / "graph.sol").write_text("a b\n")
    folder = ("solve", "mis", tmp_path, "--format", "edge-list", "--output", tmp_path)
    assert_one_line(run(*folder), "graph.sol: this graph would be overwritten; give --output another name")
    write_graph(Graph.from_edges([(0, 1)]), arrays)
    before = arrays.read_bytes()
    outcome = run("sample", "mis", arrays, "--temperature", 1, "--samples", 10, "--output", arrays)
    assert_one_line(outcome, "graph.npz: this graph would be overwritten")
    assert arrays.read_bytes() == before


@pytest.mark.parametrize("options", [(), ("--json",), ("--output", "OUT")])
def test_a_graph_that_cannot_be_solved_does_not_stop_the_others(run, tmp_path, options):
    for name, weight in (("a", "2"), ("b", "1e99"), ("c", "3")):
        (tmp_path / f"{name}.edges").write_text(f"x y 0.123456789\ny z {weight}\n")
    command = ("solve", "max-cut", tmp_path, "--method", "cp-sat")
    outcome = run(*command, *(tmp_path / "found" if option == "OUT" else option for option in options))
    assert outcome.code == 2
    assert len(outcome.errors) == 1
    assert outcome.errors[0].startswith(f"error: {tmp_path / 'b.edges'}: ")
    if "--json" in options:
        assert [record["objective"] for record in json.loads(outcome.out)] == [2.123456789, 3.123456789]
    else:
        assert "c.edges" in outcome.out
    if "--output" in options:
        assert sorted(path.name for path in (tmp_path / "found").iterdir()) == ["a.sol", "c.sol"]
