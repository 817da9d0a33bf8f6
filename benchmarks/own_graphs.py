"""Graph files one by one: is `auto` behind any other method in the same time, or does one prove what it leaves open?

    python benchmarks/own_graphs.py FILE... --problems mis mds --limit 10 --json own-graphs.json

Every method that solves the problem gets the same file and the same limit, one after the other. "behind" is by how much
the best other objective is ahead of that of `auto`, as a share of it; objectives and seconds are means over `--seeds`
seeds. Files that are no graphs are left out.
"""

import argparse
import statistics
import time
from dataclasses import replace
from pathlib import Path

from evidence import Record, add_options, measured_limits, require_green, write_record
from rich.console import Console
from rich.table import Table

import diffuco
from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware
from diffuco.graphs.graph import Graph
from diffuco.methods import get_method
from diffuco.problems import get_problem

TESTS = ("tests/test_automatic.py",)
METHODS = ("auto", "anneal", "bifurcation", "cp-sat", "highs", "numvc")


def main() -> None:
    """Measure the files named on the command line."""
    arguments = _arguments()
    device = pick_device(arguments.device)
    tests, limits = require_green(TESTS, skip=arguments.skip_tests), measured_limits(device)
    records: list[Record] = []
    for path in arguments.files:
        try:
            graph = diffuco.read_graph(path)
        except diffuco.InputError:
            continue
        for problem in arguments.problems:
            records.append(measured(graph, path, problem, arguments))
            print(*(f"{key} {value}" for key, value in records[-1].items()), sep=", ", flush=True)
            write_record(arguments, device, tests, limits, records)  # a run that is cut off keeps what it has
    Console().print(table(records, f"{arguments.limit:g} s each, {hardware(device)}"))


def measured(graph: Graph, path: str, problem: str, arguments: argparse.Namespace) -> Record:
    """What every method finds in a graph, and how far `auto` is behind the best of the others."""
    known = get_problem(problem)
    able = [name for name in arguments.methods if get_method(name).solves(known) and not get_method(name).missing()]
    options = {"time_limit_s": arguments.limit, "device": arguments.device}
    answers = {}
    for name in able:
        started = time.perf_counter()
        found = [
            diffuco.solve(replace(graph), problem, method=name, seed=seed, **options)  # of which nothing is known yet
            for seed in range(arguments.seeds)
        ]
        seconds = (time.perf_counter() - started) / len(found)
        answers[name] = {
            "objective": statistics.mean(solution.objective for solution in found),
            "objectives": [solution.objective for solution in found],
            "optimal": all(solution.optimal for solution in found),
            "feasible": all(solution.feasible for solution in found),
            "seconds": round(seconds, 2),
            "found_by": found[0].found_by,
        }
    own = answers["auto"]["objective"]
    best = min(known.sign * answer["objective"] for answer in answers.values() if answer["feasible"])
    behind = max(0.0, known.sign * own - best) / max(1.0, abs(own))
    open_only = not answers["auto"]["optimal"] and any(answer["optimal"] for answer in answers.values())
    about = {"file": Path(path).name, "problem": problem, "nodes": graph.num_nodes, "edges": graph.num_edges}
    return about | {"behind": round(behind, 5), "only_others_prove": open_only, "answers": answers}


def table(records: list[Record], title: str) -> Table:
    """One row per file and problem, with the methods that prove or match the best in words."""
    shown = Table("file", "nodes", "problem", "auto", "by", "seconds", "proven", "behind", "others", title=title)
    for record in records:
        own = record["answers"]["auto"]
        others = [(name, answer) for name, answer in record["answers"].items() if name != "auto"]
        words = ", ".join(f"{name} {a['objective']:,.6g}{'*' if a['optimal'] else ''}" for name, a in others)
        proven = "yes" if own["optimal"] else "NO" if record["only_others_prove"] else "-"
        cells = (record["file"], f"{record['nodes']:,}", record["problem"], f"{own['objective']:,.6g}", own["found_by"])
        shown.add_row(*cells, f"{own['seconds']:.1f}", proven, f"{100 * record['behind']:.2f} %", words)
    return shown


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--problems", nargs="+", default=["mis", "max-cut", "mds"])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="auto")
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
