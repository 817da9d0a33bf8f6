"""Solve many graphs on a local Ray cluster while workers and the run itself are killed: is every graph solved once?

    python experiments/kill_ray_workers.py --json experiments/results/kill-ray-workers.json

Two workers are killed, one at a quarter and one at half of the graphs; at three quarters the whole run is killed and
the same command is given again. Every solution is then verified against its graph.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import diffuco
from diffuco.foundation.provenance import hardware, source_commit
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.formats import read_graph, write_graph

Record = dict[str, Any]


def main() -> None:
    """Solve, kill, solve on, check; the exit code tells whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="rb-tiny")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write what happened here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        graphs, output = Path(folder) / "graphs", Path(folder) / "found.jsonl"
        write_graphs(arguments.dataset, arguments.count, graphs)
        options = ["mis", "graphs", "--samples", "4", "--engine", "ray", "--output", output.name]
        record = solve_and_kill(["solve", *options], output, arguments.count) | check(output, graphs)
    command = shlex.join(["python", "experiments/kill_ray_workers.py", *sys.argv[1:]])
    about = {"command": command, "commit": source_commit(), "hardware": hardware(torch.device("cpu"))}
    about |= {"date": datetime.now(UTC).isoformat(timespec="seconds"), "dataset": arguments.dataset}
    text = json.dumps(about | record, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    raise SystemExit(not record["every_graph_once"])


def write_graphs(dataset: str, count: int, folder: Path) -> None:
    """The first training graphs of a dataset, one file each."""
    folder.mkdir()
    for index in range(count):
        write_graph(get_dataset(dataset).graph("train", index), folder / f"{index:05}.clq")


def solve_and_kill(arguments: Sequence[str], output: Path, count: int) -> Record:
    """Run the command, kill two workers and then the run, and run it again."""
    command = [sys.executable, "-m", "diffuco", *arguments]
    killed_at: list[int] = []
    started = time.monotonic()
    with subprocess.Popen(command, cwd=output.parent) as run:
        for share in (0.25, 0.5):
            wait_for_lines(output, share * count, run)
            os.kill(worker_processes(run.pid)[0], signal.SIGKILL)
            killed_at.append(num_lines(output))
        wait_for_lines(output, 0.75 * count, run)
        run.kill()
    run_killed_at = num_lines(output)
    last = subprocess.run([*command, "--json"], cwd=output.parent, check=True, capture_output=True, text=True)
    return {
        "solve": shlex.join(["diffuco", *arguments]),
        "graphs": count,
        "workers_killed_at": killed_at,
        "run_killed_at": run_killed_at,
        "seconds": round(time.monotonic() - started, 1),
        "last_run": json.loads(last.stdout),
    }


def check(output: Path, graphs: Path) -> Record:
    """Whether every graph has exactly one record, and each record a feasible solution of the objective it claims."""
    records = [json.loads(line) for line in output.read_text().splitlines()]
    files = Counter(record["file"] for record in records)
    wrong = 0
    for record in records:
        graph = read_graph(graphs.parent / record["file"])
        verdict = diffuco.check(graph, "mis", record["solution"])
        wrong += not (verdict.feasible and verdict.objective == record["objective"])
    expected = {f"{graphs.name}/{path.name}" for path in graphs.iterdir()}
    return {
        "records": len(records),
        "graphs_twice": sum(number > 1 for number in files.values()),
        "graphs_missing": len(expected - files.keys()),
        "wrong_solutions": wrong,
        "every_graph_once": len(records) == len(expected) and files.keys() == expected and not wrong,
    }


def worker_processes(ancestor: int) -> list[int]:
    """Processes of the workers of the cluster that a process has started."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue

    def descends(pid: int) -> bool:
        return pid == ancestor or (pid in parents and descends(parents[pid]))

    return [pid for pid, name in names.items() if name.startswith("ray::_Worker") and descends(pid)]


def wait_for_lines(path: Path, number: float, run: "subprocess.Popen[bytes]") -> None:
    """Until so many graphs are solved; a run that ends before is an error."""
    while num_lines(path) < number:
        if run.poll() is not None:
            raise SystemExit(f"the run ended with code {run.returncode} after {num_lines(path)} graphs")
        time.sleep(0.05)


def num_lines(path: Path) -> int:
    """Graphs solved so far."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    main()
