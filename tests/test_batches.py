"""Many graphs into one file of solutions: continued after a kill, every graph once, here and on a Ray cluster."""

import json
import os
import runpy
import signal
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest

from diffuco.cli import main
from diffuco.foundation.errors import InputError
from diffuco.foundation.files import replacing
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import ba_graph
from diffuco.integrations.ray_workers import import_ray
from diffuco.solution.log import SolutionLog
from processes import start

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
NUM_GRAPHS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small graphs, one file each."""
    path = tmp_path_factory.mktemp("graphs")
    rng = np.random.default_rng(0)
    for number in range(NUM_GRAPHS):
        write_graph(ba_graph(num_nodes=10 + number % 7, attachments=2, rng=rng), path / f"{number:02}.clq")
    return path


def records_of(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        from pyarrow import parquet

        with path.open("rb") as stream:
            return parquet.read_table(stream).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_seconds(records: list[dict]) -> list[dict]:
    return sorted(({**record, "seconds": None} for record in records), key=lambda record: record["file"])


def assert_each_once(path: Path, folder: Path) -> None:
    assert sorted(record["file"] for record in records_of(path)) == sorted(map(str, folder.iterdir()))
    assert all(record["feasible"] for record in records_of(path))


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_stopped_run_is_continued(run, models, folder, tmp_path, monkeypatch, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    whole, path = tmp_path / f"whole{suffix}", tmp_path / f"found{suffix}"
    arguments = ("solve", "mis", folder, "--model", models["mis"], "--samples", 2, "--output")
    assert run(*arguments, whole).code == 0

    append = SolutionLog.append

    def interrupted(self, records):
        if len(self.files) > 20:
            raise KeyboardInterrupt
        append(self, records)

    with monkeypatch.context() as patch:
        patch.setattr(SolutionLog, "append", interrupted)
        outcome = run(*arguments, path)
    assert outcome.code == 130
    assert "24 graphs solved so far; run the same command to continue" in outcome.err
    outcome = run(*arguments, path, "--json")
    assert json.loads(outcome.out) == {
        **{"output": str(path), "graphs": NUM_GRAPHS, "before": 24, "solved": NUM_GRAPHS - 24},
        **{"infeasible": 0, "optimal": 0},
    }
    assert without_seconds(records_of(path)) == without_seconds(records_of(whole))
    assert run(*arguments, path).out.endswith("0 solved now\n")
    assert [file.name for file in tmp_path.iterdir() if "unfinished" in file.name] == []


def test_killed_run_is_continued_after_the_last_whole_line(run, folder, tmp_path):
    path = tmp_path / "found.jsonl"
    arguments = ["solve", "mis", str(folder), "--method", "rlsa", "--time-limit", "0.02", "--output", str(path)]
    process = start(main, arguments, output=tmp_path / "output.txt")
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 8)
    process.kill()
    process.join()
    kept = path.read_bytes()
    assert kept.count(b"\n") < NUM_GRAPHS
    path.write_bytes(kept + b'{"problem": "mis", "file": "cut o')
    assert run(*arguments).code == 0
    assert path.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    assert_each_once(path, folder)


def test_parquet_has_a_column_for_every_field_and_grows(run, models, folder, tmp_path):
    pytest.importorskip("pyarrow")
    path, lines = tmp_path / "found.parquet", tmp_path / "found.jsonl"
    files = sorted(folder.iterdir())
    arguments = ("solve", "mds", "--model", models["mds"], "--samples", 2, "--output")
    assert run(*arguments, path, *files[:3]).code == 0
    assert run(*arguments, path, *files[:5]).out.startswith(f"5 graphs in {path}, 2 solved now")
    assert run(*arguments, lines, *files[:3]).code == 0
    first, expected = records_of(path)[0], records_of(lines)[0]
    assert first | {"seconds": None} == expected | {"seconds": None, "solution": list(map(str, expected["solution"]))}
    assert first["seconds"].keys() == expected["seconds"].keys()


def test_lines_left_beside_a_finished_parquet_file_count_once(run, models, folder, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "found.parquet"
    files = sorted(folder.iterdir())[:3]
    arguments = ("solve", "mis", *files, "--model", models["mis"], "--samples", 2, "--output")
    run(*arguments, tmp_path / "found.jsonl")
    run(*arguments, path)
    (tmp_path / "found.jsonl").rename(f"{path}.unfinished.jsonl")
    assert run(*arguments, path).code == 0
    assert [record["file"] for record in records_of(path)] == list(map(str, files))


def test_collection_that_was_half_written_is_completed(run, models, tmp_path):
    source, path = tmp_path / "three.dgcnn.txt", tmp_path / "found.jsonl"
    source.write_text("3\n2 0\n0 1 1\n0 1 0\n2 0\n0 1 1\n0 1 0\n2 0\n0 1 1\n0 1 0\n")
    arguments = ("solve", "mis", source, "--model", models["mis"], "--output", path)
    assert run(*arguments).code == 0
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:2]))
    assert run(*arguments).code == 0
    assert [record["file"] for record in records_of(path)] == [f"{source}[{number}]" for number in range(3)]


def test_bad_file_costs_only_itself_and_is_tried_again(run, models, house, tmp_path):
    bad, path = tmp_path / "bad.clq", tmp_path / "found.jsonl"
    bad.write_text("p edge 2 1\ne 1 7\n")
    arguments = ("solve", "mis", bad, house, tmp_path / "none.clq", "--model", models["mis"], "--output", path)
    outcome = run(*arguments)
    assert outcome.code == 2
    assert len(outcome.errors) == 2
    assert outcome.errors[0].startswith(f"error: {bad}:2:")
    assert [record["file"] for record in records_of(path)] == [str(house)]
    bad.write_text("p edge 2 1\ne 1 2\n")
    assert len(run(*arguments).errors) == 1
    assert [record["file"] for record in records_of(path)] == [str(house), str(bad)]


def test_standard_input_is_a_file_like_any_other(run, house, tmp_path, monkeypatch):
    path = tmp_path / "found.jsonl"
    arguments = ("solve", "mis", "-", "--format", "dimacs", "--method", "greedy", "--output", path)
    with house.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert run(*arguments).code == 0
    assert [record["file"] for record in records_of(path)] == ["-"]
    assert "cannot read standard input" in run(*arguments, "--engine", "ray").err


def test_warnings_are_shown_as_one_line_each(run, models, tmp_path):
    (tmp_path / "loop.clq").write_text("p edge 2 2\ne 1 2\ne 1 1\n")
    outcome = run("solve", "mis", tmp_path / "loop.clq", "--model", models["mis"], "--output", tmp_path / "found.jsonl")
    assert len(outcome.warnings) == 1
    assert "self-loop" in outcome.err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"file": "x", "problem": "mvc", "seed": 0}\n', "holds solutions of mvc with seed 0"),
        ('{"file": "x", "problem": "mis", "seed": 7}\n', "holds solutions of mis with seed 7"),
        ("1 2\n", ":1: not a record of `diffuco solve`"),
        ("an only line without its end", ":1: not a record of `diffuco solve`"),
        ('{"file": "x", "problem": "mis", "seed": 0}\nan own note', ":2: not a record of `diffuco solve`"),
        ('{"problem": "mis", "file": "x"}', ":1: not a record of `diffuco solve`"),
        ('{"problem": "mvc", "file": "cut o', ":1: not a record of `diffuco solve`"),
        ('{"file": ["x"], "problem": "mis", "seed": 0}\n', ":1: not a record of `diffuco solve`"),
        ("[" * 100_000, ":1: not a record of `diffuco solve`"),
    ],
)
def test_file_of_something_else_is_refused_and_kept(run, house, tmp_path, content, reason):
    path = tmp_path / "found.jsonl"
    path.write_text(content)
    outcome = run("solve", "mis", house, "--output", path)
    assert (outcome.code, len(outcome.errors)) == (2, 1)
    assert reason in outcome.err
    assert path.read_text() == content


def test_last_record_counts_without_its_line_break(run, house, tmp_path):
    path = tmp_path / "found.jsonl"
    assert run("solve", "mis", house, "--output", path).code == 0
    whole = path.read_bytes()
    path.write_bytes(whole.removesuffix(b"\n"))
    assert run("solve", "mis", house, "--output", path).code == 0
    assert path.read_bytes() == whole


@pytest.mark.parametrize("output", ["x.sol", "x.json", "x.jsonl", "x.parquet", "out"])
@pytest.mark.parametrize("stem", [b"x", b"o\xff"], ids=["plain", "odd"])
def test_file_names_that_are_not_utf8_are_solved(run, house, tmp_path, output, stem):
    if output.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    odd, path = (tmp_path / os.fsdecode(name) for name in (b"g\xff.clq", output.encode().replace(b"x", stem)))
    try:
        odd.write_bytes(house.read_bytes())
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    if output == "out":
        path.mkdir()
    for _ in range(2):
        outcome = run("solve", "mis", odd, "--output", path)
        assert (outcome.code, outcome.errors) == (0, [])
    if output.endswith((".jsonl", ".parquet")):
        assert [record["file"] for record in records_of(path)] == [f"{tmp_path}/g\\udcff.clq"]
    if output == "x.sol":
        assert run("check", "mis", odd, path).code == 0


def test_two_runs_do_not_write_to_the_same_file(run, house, tmp_path):
    pytest.importorskip("fcntl")
    with SolutionLog(tmp_path / "found.jsonl", problem="mis", seed=0):
        outcome = run("solve", "mis", house, "--output", tmp_path / "found.jsonl")
    assert outcome.code == 2
    assert "another run is writing to it" in outcome.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--engine", "ray"), "give --output FILE.jsonl or FILE.parquet"),
        (("--engine", "ray", "--output", "folder"), "give --output FILE.jsonl or FILE.parquet"),
        (("--output", "found.jsonl", "--plot", "x.png"), "--plot is for one graph; it excludes --output found.jsonl"),
        (("--output", "found.jsonl", "--start", "x.sol"), "--start is for one graph; it excludes --output found.jsonl"),
        (("--output", "found.jsonl", "--engine", "ray", "--device", "cuda:1"), "give auto, cpu or cuda"),
        (("--output", "found.jsonl", "--model", "mds-ba-small"), "was trained for mds, not mis"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, house, tmp_path, monkeypatch, options, reason):
    monkeypatch.chdir(tmp_path)
    outcome = run("solve", "mis", house, *options)
    assert (outcome.code, len(outcome.errors)) == (2, 1)
    assert reason in outcome.err


@pytest.mark.parametrize(
    ("module", "options"), [("ray", ("found.jsonl", "--engine", "ray")), ("pyarrow", ("found.parquet",))]
)
def test_missing_package_is_named_with_the_remedy(run, house, tmp_path, monkeypatch, module, options):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    outcome = run("solve", "mis", house, "--output", *options)
    assert (outcome.code, len(outcome.errors)) == (2, 1)
    assert "pip install '" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["house.clq"]


@pytest.fixture(scope="module")
def _cluster():
    """A Ray cluster of two slots."""
    if find_spec("ray") is None:
        pytest.skip("the extra `ray` is not installed")
    ray = import_ray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # by default, workers wait minutes for the tests beside this one
        ray.init(num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.mark.usefixtures("_cluster")
def test_workers_find_what_one_process_finds_each_graph_once_though_one_is_killed(
    run, models, folder, tmp_path, monkeypatch
):
    worker_processes = runpy.run_path(str(EXPERIMENTS / "kill_ray_workers.py"))["worker_processes"]
    monkeypatch.chdir(folder.parent)  # names in the file are as given, wherever workers run
    paths = {engine: tmp_path / f"{engine}.jsonl" for engine in ("local", "ray")}
    killed_at = []

    def kill_a_worker() -> None:
        wait_for(lambda: paths["ray"].exists() and paths["ray"].read_bytes().count(b"\n") >= 8)
        os.kill(worker_processes(os.getpid())[0], signal.SIGKILL)
        killed_at.append(paths["ray"].read_bytes().count(b"\n"))

    thread = threading.Thread(target=kill_a_worker)
    thread.start()
    # Enough steps that most graphs are unsolved when the worker is killed.
    options = ("--model", models["mis"], "--samples", 2, "--step-factor", 50)
    for engine in ("ray", "local"):
        outcome = run("solve", "mis", folder.name, *options, "--output", paths[engine], "--engine", engine)
        assert (outcome.code, outcome.errors) == (0, [])
    thread.join()
    assert len(killed_at) == 1
    assert killed_at[0] < NUM_GRAPHS
    found = {engine: without_seconds(records_of(path)) for engine, path in paths.items()}
    assert found["ray"] == found["local"]
    assert [record["file"] for record in found["ray"]] == sorted(
        f"{folder.name}/{file.name}" for file in folder.iterdir()
    )
    assert all(record["feasible"] for record in found["ray"])


@pytest.mark.usefixtures("_cluster")
def test_a_cluster_that_is_started_here_listens_to_this_machine_only():
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = [
        port.laddr.ip for process in processes for port in process.net_connections() if port.status == "LISTEN"
    ]
    assert listening
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


@pytest.mark.usefixtures("_cluster")
def test_a_device_has_to_be_one_of_the_cluster(run, house, tmp_path):
    options = ("--engine", "ray", "--output", tmp_path / "found.jsonl", "--device", "cuda")
    outcome = run("solve", "mis", house, *options)
    assert (outcome.code, outcome.errors) == (2, ["error: the Ray cluster has no GPU; give --device cpu"])


@pytest.mark.usefixtures("_cluster")
def test_item_that_kills_its_workers_costs_only_itself(monkeypatch):
    from diffuco.integrations.ray_workers import Death, spread

    # Starting workers takes seconds: here one after the other, and a task is split when the first has died of it.
    monkeypatch.setattr("diffuco.integrations.ray_workers.MAX_DEATHS", 1)
    monkeypatch.setattr("diffuco.integrations.ray_workers.num_slots", lambda resource: 1)

    def squares(numbers):
        if 3 in numbers:
            os.kill(os.getpid(), signal.SIGKILL)
        return [number**2 for number in numbers]

    results = list(spread(squares, [[1, 2], [3, 4], [5]], "CPU"))
    assert [task for task, result in results if isinstance(result, Death)] == [[3]]
    assert sorted(value for _, result in results if not isinstance(result, Death) for value in result) == [1, 4, 16, 25]


@pytest.mark.usefixtures("_cluster")
def test_workers_that_cannot_import_the_work_end_the_run():
    from diffuco.integrations.ray_workers import spread

    with pytest.raises(InputError, match=r"workers cannot start .* No module named 'test_batches'"):
        list(spread(work_that_is_only_here, [[1]], "CPU"))


def work_that_is_only_here(task):
    return task


def wait_for(condition, limit_s: float = 600) -> None:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < limit_s, "waited in vain"
        time.sleep(0.02)


def test_spellings_of_a_path_are_the_same_file(run, house, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs/a.clq").write_bytes(house.read_bytes())
    (tmp_path / "two.dgcnn.txt").write_text("2\n1 0\n0 0\n2 0\n0 1 1\n0 1 0\n")
    files = ["graphs/a.clq", "./graphs/../graphs/a.clq", "two.dgcnn.txt"]
    assert run("solve", "mis", *files, "--output", "found.jsonl").out.endswith("3 solved now (3 optimal)\n")
    assert [record["file"] for record in records_of(tmp_path / "found.jsonl")] == [
        "graphs/a.clq",
        "two.dgcnn.txt[0]",
        "two.dgcnn.txt[1]",
    ]
    for spelling in ("./graphs/a.clq", tmp_path / "graphs/a.clq", "graphs", "./two.dgcnn.txt"):
        assert run("solve", "mis", spelling, "--output", "found.jsonl").out.endswith("0 solved now\n")


def test_what_a_killed_run_has_left_is_removed(tmp_path):
    path = tmp_path / "a.sol"
    old, new, other = (
        tmp_path / f".{name}.unfinished" for name in ("a.sol.00000000", "a.sol.11111111", "b.sol.00000000")
    )
    for left in (old, new, other):
        left.touch()
    for left in (old, other):
        os.utime(left, (0, 0))
    with replacing(path) as out:
        out.write(b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([new, other, path])
