"""One large graph: `auto` and samples of models against annealing and bifurcation, at equal seconds, in one run.

    python benchmarks/large_graphs.py --nodes 100000 --families uniform preferential --limits 1 4 16 --json large.json

Every method gets the same graph and the same limits. A model is measured as it samples: one pass over its steps with
one sample, the paper's three passes with four samples, and one pass with so many `--rounds`, all decoded by Conditional
Expectation and not refined; then with the limits, in which its samples are annealed.
"seconds" is the time of the whole call of `diffuco.solve`, from arrays in memory to a checked solution. Before the
clock starts, each method solves the graph once, for a second, because first calls compile kernels.
Objectives and seconds are means over `--seeds` seeds; the graph stays the same.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from evidence import Record, add_options, measured_limits, require_green, write_record
from rich.console import Console
from rich.table import Table

import diffuco
from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware
from diffuco.graphs.families import geometric_graph, grid_graph, power_law_graph, regular_graph
from diffuco.graphs.generate import ba_graph, er_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import get_method
from diffuco.problems import get_problem


def roads(num_nodes: int, rng: np.random.Generator) -> Graph:
    """Crossings on a grid, a quarter of the streets missing, and up to ten points on each street."""
    crossings = num_nodes * 2 // 17  # a crossing has 1.5 streets, with 5 points each
    streets = grid_graph(crossings, 0.25, rng).edges
    points = rng.integers(0, 11, len(streets))
    ends = crossings + points.cumsum()
    edges = []
    for (u, v), number, end in zip(streets.tolist(), points.tolist(), ends.tolist(), strict=True):
        edges += pairwise([u, *range(end - number, end), v])
    return Graph.from_edges(edges, int(ends[-1]))


TESTS = ("tests/test_methods.py",)
FAMILIES = {
    "uniform": lambda n, rng: er_graph(n, 8 / (n - 1), rng),
    "regular": lambda n, rng: regular_graph(n, 5, rng),
    "power-law": lambda n, rng: power_law_graph(n, 2.5, 3, rng),
    "loose-power-law": lambda n, rng: power_law_graph(n, 2.5, 2, rng),
    "geometric": lambda n, rng: geometric_graph(n, 8.0, rng),
    "mesh": lambda n, rng: grid_graph(n, 0.1, rng, triangles=True),
    "roads": roads,
    "preferential": lambda n, rng: ba_graph(n, 4, rng),
}
"""Mean degree about 8, 5 where every node has the same, 5.5 with loose ends, 5.4 of triangles, a tenth missing, and 2.1
on roads."""
METHODS = ("auto", "anneal", "bifurcation")
WARM_UP_S = 1.0
PASSES = ({"samples": 1, "step_factor": 1}, {"samples": 4, "step_factor": 3})


def main() -> None:
    """Measure the graphs named on the command line."""
    arguments = _arguments()
    device = pick_device(arguments.device)
    tests = require_green(TESTS, skip=arguments.skip_tests)
    limits = measured_limits(device)
    records: list[Record] = []
    for family in arguments.families:
        for num_nodes in arguments.nodes:
            graph = FAMILIES[family](num_nodes, np.random.default_rng(0))
            if arguments.weights:
                weights = np.random.default_rng(1).integers(1, arguments.weights, graph.num_nodes, endpoint=True)
                graph = replace(graph, node_weights=weights)
            about = {"family": family, "nodes": graph.num_nodes, "edges": graph.num_edges}
            for problem in arguments.problems:
                for found in measured(graph, problem, arguments):
                    records.append(about | {"problem": problem} | found)
                    print(*(f"{key} {value}" for key, value in records[-1].items()), sep=", ", flush=True)
                write_record(arguments, device, tests, limits, records)  # a run that is cut off keeps what it has
    Console().print(table(records, hardware(device)))


def measured(graph: Graph, problem: str, arguments: argparse.Namespace) -> Iterator[Record]:
    """What every method finds in a graph, and in which time."""
    for model in arguments.models:
        if diffuco.load_model(model).problem != problem:
            continue
        for options in (*PASSES, *(PASSES[0] | {"rounds": rounds} for rounds in arguments.rounds)):
            settings = {"model": model, "refine": 0, **options}
            diffuco.solve(graph, problem, device=arguments.device, seed=99, **settings)
            yield {"method": model, **options} | solved(graph, problem, arguments, settings)
        diffuco.solve(graph, problem, model=model, time_limit_s=WARM_UP_S, device=arguments.device, seed=99)
        for limit_s in arguments.limits:
            settings = {"model": model, "time_limit_s": limit_s}
            yield {"method": f"{model}, annealed", "limit_s": limit_s} | solved(graph, problem, arguments, settings)
    for name in arguments.methods:
        if not get_method(name).solves(get_problem(problem)):
            continue
        if get_method(name).time_limit == "ignored":
            yield {"method": name} | solved(graph, problem, arguments, {"method": name})
            continue
        diffuco.solve(graph, problem, method=name, time_limit_s=WARM_UP_S, device=arguments.device, seed=99)
        for limit_s in arguments.limits:
            settings = {"method": name, "time_limit_s": limit_s}
            yield {"method": name, "limit_s": limit_s} | solved(graph, problem, arguments, settings)


def solved(graph: Graph, problem: str, arguments: argparse.Namespace, settings: Record) -> Record:
    """Means over the seeds; nothing that is known of a graph after the first counts for the others."""
    objectives, seconds, finders = [], [], []
    for seed in range(arguments.seeds):
        started = time.perf_counter()
        solution = diffuco.solve(replace(graph), problem, device=arguments.device, seed=seed, **settings)
        seconds.append(time.perf_counter() - started)
        assert solution.feasible
        objectives.append(solution.objective)
        finders.append(solution.found_by)
    means = {"objective": statistics.mean(objectives), "seconds": round(statistics.mean(seconds), 3)}
    return means | {"objectives": objectives, "found_by": finders}


def table(records: list[Record], title: str) -> Table:
    """One row per graph, problem and method."""
    shown = Table("graph", "problem", "method", "limit s", "seconds", "objective", title=title)
    for record in records:
        passes = f" x{record['step_factor']}, {record['samples']} samples" if "samples" in record else ""
        passes += f", {record['rounds']} rounds" if "rounds" in record else ""
        name, limit = f"{record['method']}{passes}", str(record.get("limit_s", ""))
        cells = (f"{record['family']} {record['nodes']:,}", record["problem"], name, limit)
        shown.add_row(*cells, f"{record['seconds']:.2f}", f"{record['objective']:,.1f}")
    return shown


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--nodes", nargs="+", type=int, default=[10_000])
    parser.add_argument("--problems", nargs="+", default=["mis", "max-cut", "mds"])
    parser.add_argument("--models", nargs="*", default=["mis-sparse-48", "max-cut-sparse-48", "mds-sparse-48"])
    parser.add_argument("--rounds", nargs="*", type=int, default=[])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--limits", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--weights", type=int, metavar="MOST", help="nodes weigh 1 to so much; default: 1")
    parser.add_argument("--device", default="auto")
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
