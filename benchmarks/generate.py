"""Speed of the graph generators: graphs per second on one core and on all of them, Graph objects included.

python benchmarks/generate.py --json out/generate.json
"""

import argparse
import json
import platform
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from diffuco.graphs import datasets

NAMES = ("rb-small", "rb-large", "ba-small", "ba-large")


def main() -> None:
    """Measure the chosen datasets and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="dataset")
    parser.add_argument("--count", type=int, default=1000, help="graphs per measurement")
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many measurements counts")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers here")
    options = parser.parse_args()
    rows = [measure(name, options.count, options.repeats) for name in options.names]
    num_cores = datasets.available_cores()
    table = Table("dataset", "mean edges", "graphs/s, 1 core", f"graphs/s, {num_cores} cores")
    for row in rows:
        table.add_row(str(row["dataset"]), *(f"{float(row[key]):,.0f}" for key in list(row)[1:]))
    Console().print(table)
    if options.json:
        report = {"machine": platform.machine(), "cores": num_cores, "count": options.count, "results": rows}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def measure(name: str, count: int, repeats: int) -> dict[str, str | float]:
    """Graphs per second of one dataset's training split."""
    dataset = datasets.get_dataset(name)
    graphs = list(dataset.generate("train", count, workers=1))
    return {
        "dataset": name,
        "mean_edges": sum(graph.num_edges for graph in graphs) / count,
        "one_core": max(rate(dataset, count, 1) for _ in range(repeats)),
        "all_cores": max(rate(dataset, count, datasets.available_cores()) for _ in range(repeats)),
    }


def rate(dataset: datasets.Dataset, count: int, workers: int) -> float:
    """Graphs per second of one pass that reads no cache and is not the first, which compiles."""
    start = time.perf_counter()
    list(dataset.generate("train", count, workers=workers))
    return count / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
