"""Speed and memory of reading one large edge list, and of the neighbour lists that sampling needs.

    python benchmarks/read.py --nodes 10000000 --edges 40000000 --json read.json

The file is written to a temporary folder first: random edges in random order. Memory is the peak beyond what the
process held before, so run one size at a time. "GB/s" is text read per second; the share of a copy's speed is in
brackets.
"""

import argparse
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from evidence import Limits, Record, add_options, measured_limits, require_green, write_record
from rich.console import Console
from rich.table import Table

from diffuco.foundation.errors import GraphWarning
from diffuco.foundation.provenance import hardware
from diffuco.graphs.formats import parse_graph, read_graph
from diffuco.graphs.graph import Csr, Graph

TESTS = ("tests/test_number_kernels.py", "tests/test_batch.py")
EDGES_AT_ONCE = 1_000_000


def main() -> None:
    """Write a file, read it and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=4_000_000)
    add_options(parser)
    arguments = parser.parse_args()
    device = torch.device("cpu")
    tests = require_green(TESTS, skip=arguments.skip_tests)
    limits = measured_limits(device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.txt"
        write_edges(path, arguments.nodes, arguments.edges)
        records = measure(path, limits)
    table = Table("what", "seconds", "peak GiB", "GB/s", title=hardware(device), caption=str(limits))
    for record in records:
        speed = f"{record['gb_per_s']:.3g} ({record['share_of_gb_per_s']:.0%})" if "gb_per_s" in record else ""
        table.add_row(record["what"], f"{record['seconds']:.2f}", f"{record['peak_gib']:.2f}", speed)
    Console(width=110).print(table)
    write_record(arguments, device, tests, limits, records)


def write_edges(path: Path, num_nodes: int, num_edges: int) -> None:
    """Random edges, some of them twice, as text."""
    random = np.random.default_rng(0)
    with path.open("w") as out:
        for first in range(0, num_edges, EDGES_AT_ONCE):
            ends = random.integers(0, num_nodes, (min(EDGES_AT_ONCE, num_edges - first), 2))
            out.writelines(f"{u} {v}\n" for u, v in ends.tolist())


def measure(path: Path, limits: Limits) -> list[Record]:
    """Reading the file, then making its neighbour lists."""
    warnings.simplefilter("ignore", GraphWarning)
    parse_graph("0 1\n" * 2**18, "compile.txt")
    graph, reading = measured("file to graph", lambda: read_graph(path))
    reading["gb_per_s"] = path.stat().st_size / reading["seconds"] / 1e9
    reading["share_of_gb_per_s"] = reading["gb_per_s"] / limits.copy_gb_per_s
    _, listing = measured("graph to neighbour lists", lambda: graph.csr)
    return [reading | {"nodes": graph.num_nodes, "edges": graph.num_edges}, listing]


def measured(what: str, function: Callable[[], Graph | Csr]) -> tuple[Any, Record]:
    """What a call returns, its time, and how far it raised the peak of the process."""
    before, started = peak_gib(), time.perf_counter()
    result = function()
    return result, {"what": what, "seconds": time.perf_counter() - started, "peak_gib": peak_gib() - before}


def peak_gib() -> float:
    """Most memory that the process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


if __name__ == "__main__":
    main()
