"""Speed of the graph generators: graphs per second on one core and on all cores, including Graph objects.

    python benchmarks/generate.py --json generate.json

"edges" is the rate at which all cores together write the graphs' lists of edges; the share of a copy's speed is in
brackets.
"""

import argparse
import time

import torch
from evidence import Limits, Record, add_options, measured_limits, require_green, write_record
from rich.console import Console
from rich.table import Table

from diffuco.foundation.provenance import hardware
from diffuco.graphs import datasets

TESTS = ("tests/test_generate.py",)
NAMES = ("rb-small", "rb-large", "ba-small", "ba-large")


def main() -> None:
    """Measure the chosen datasets and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="dataset")
    parser.add_argument("--count", type=int, default=1000, help="graphs per measurement")
    parser.add_argument("--repeats", type=int, default=3, help="number of measurements; the fastest counts")
    add_options(parser)
    arguments = parser.parse_args()
    device = torch.device("cpu")
    tests = require_green(TESTS, skip=arguments.skip_tests)
    limits = measured_limits(device)
    records = [measure(name, arguments.count, arguments.repeats, limits) for name in arguments.names]
    num_cores = datasets.available_cores()
    columns = ("dataset", "mean edges", "graphs/s, 1 core", f"graphs/s, {num_cores} cores", "edges GB/s")
    table = Table(*columns, title=hardware(device), caption=str(limits))
    for record in records:
        numbers = (f"{record[name]:,.0f}" for name in ("mean_edges", "one_core", "all_cores"))
        table.add_row(record["dataset"], *numbers, f"{record['gb_per_s']:.3g} ({record['share_of_gb_per_s']:.0%})")
    Console(width=110).print(table)
    write_record(arguments, device, tests, limits, records)


def measure(name: str, count: int, repeats: int, limits: Limits) -> Record:
    """Graphs per second of one dataset's training split."""
    dataset = datasets.get_dataset(name)
    graphs = list(dataset.generate("train", count, workers=1))
    all_cores = max(rate(dataset, count, datasets.available_cores()) for _ in range(repeats))
    gb_per_s = all_cores * sum(graph.edges.nbytes for graph in graphs) / count / 1e9
    return {
        "dataset": name,
        "cores": datasets.available_cores(),
        "mean_edges": sum(graph.num_edges for graph in graphs) / count,
        "one_core": max(rate(dataset, count, 1) for _ in range(repeats)),
        "all_cores": all_cores,
        "gb_per_s": gb_per_s,
        "share_of_gb_per_s": gb_per_s / limits.copy_gb_per_s,
    }


def rate(dataset: datasets.Dataset, count: int, workers: int) -> float:
    """Graphs per second of one pass without a cache; it must not be the first, which compiles."""
    start = time.perf_counter()
    list(dataset.generate("train", count, workers=workers))
    return count / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
