"""Speed of Conditional Expectation: numba, torch and Triton, CE and CE-ST_8, on graphs of named datasets, in one run.

    python benchmarks/decode.py --datasets rb-small rb-large --graphs 500 --json decode.json

Every decoder gets the same probabilities, and the run stops unless all give the same states. "first" is the first call
in this process, compilation included unless it is cached; "call" is the median of `--repeats` calls after warm-up, with
the device synchronised before and after each; "kernel" is what the GPU spent in the decoding kernel alone.

Decoding needs every row of a dense adjacency once per sample, in another order for each. Those bytes over the kernel's
time are "rows GB/s"; samples of one graph run side by side and share rows in the caches, so the memory need deliver no
more than one sample's ("rows once"), which stands beside the speed of a copy in device memory.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from diffuco import ops
from diffuco.decoding import conditional_expectation
from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem
from diffuco.provenance import hardware, source_commit

DECODERS: dict[str, tuple[ops.Decoder, type[Batch], str]] = {
    "numba-sparse": ("numba", SparseBatch, "cpu"),
    "numba-dense": ("numba", DenseBatch, "cpu"),
    "torch-cpu": ("torch", DenseBatch, "cpu"),
    "torch-gpu": ("torch", DenseBatch, "cuda"),
    "triton-gpu": ("triton", DenseBatch, "cuda"),
}
"""Decoder, kind of batch and device by the name on the command line."""
KERNELS = ("quadratic_kernel", "cover_kernel")

Record = dict[str, Any]


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    arguments = _arguments()
    on_gpu = any(DECODERS[name][2] == "cuda" for name in arguments.decoders)
    place = hardware(torch.device("cuda" if on_gpu else "cpu"))
    copy_speed = _copy_bytes_per_s() if on_gpu else None
    title = f"{arguments.graphs} graphs x {arguments.samples} samples, {place}"
    if copy_speed:
        title += f", copies {copy_speed / 1e9:.0f} GB/s"
    columns = ("dataset", "problem", "k", "decoder", "first s", "call ms", "kernel ms", "M edges/s", "rows GB/s")
    table = Table(*columns, "rows once GB/s", title=title)
    records: list[Record] = []
    for dataset in arguments.datasets:
        for record in _measure_dataset(dataset, arguments):
            records.append(record)
            table.add_row(*_cells(record))
    Console(width=130).print(table)
    if arguments.json:
        setting = {"graphs": arguments.graphs, "samples": arguments.samples, "repeats": arguments.repeats}
        origin = {"hardware": place, "torch": torch.__version__, "commit": source_commit()}
        speeds = {"copy_bytes_per_s": copy_speed, "measurements": records}
        arguments.json.write_text(json.dumps(setting | origin | speeds, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    usable = [name for name, (_, _, device) in DECODERS.items() if device == "cpu" or torch.cuda.is_available()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["rb-small"])
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--problems", nargs="+", default=["mis", "mds"])
    parser.add_argument("--token-sizes", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--decoders", nargs="+", choices=usable, default=usable)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="write the measurements here")
    arguments = parser.parse_args()
    if len(arguments.decoders) < 2:
        parser.error("one decoder alone cannot be compared: name two or more")
    torch.set_num_threads(arguments.threads)
    return arguments


def _measure_dataset(dataset: str, arguments: argparse.Namespace) -> Iterator[Record]:
    """One record per problem, token size and decoder."""
    graphs = get_dataset(dataset).graphs("test", arguments.graphs)
    generator = torch.Generator().manual_seed(0)
    probs = [torch.rand(graph.num_nodes, arguments.samples, generator=generator) for graph in graphs]
    kinds = dict.fromkeys(DECODERS[name][1:] for name in arguments.decoders)
    batches = {(kind, device): kind.from_graphs(graphs, device) for kind, device in kinds}
    for problem in arguments.problems:
        for token_size in arguments.token_sizes:
            expected: Tensor | None = None
            for name in arguments.decoders:
                ops.decoder_override, kind, device = DECODERS[name]
                batch = batches[kind, device]
                states, times = _measure(problem, token_size, batch, _collect(batch, probs), arguments.repeats)
                expected = states if expected is None else expected
                if not torch.equal(states, expected):
                    raise SystemExit(f"{name} gives other states for {problem}, k = {token_size}: no speeds to report")
                setting = {"dataset": dataset, "problem": problem, "token_size": token_size, "decoder": name}
                yield setting | times | _speeds(graphs, arguments.samples, batch, times)


def _measure(name: str, token_size: int, batch: Batch, probs: Tensor, repeats: int) -> tuple[Tensor, Record]:
    """States of all nodes, and the times of a call in seconds."""
    problem = get_problem(name)

    def decode() -> Tensor:
        return conditional_expectation(problem, batch, probs, token_size)

    first = _seconds(decode, batch.device)
    states = decode()
    median = statistics.median(_seconds(decode, batch.device) for _ in range(repeats))
    kernel = _kernel_seconds(decode, repeats) if ops.decoder_override == "triton" else None
    return torch.cat(batch.split(states)).cpu(), {"first_s": first, "median_s": median, "kernel_s": kernel}


def _seconds(function: Callable[[], Tensor], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _kernel_seconds(function: Callable[[], Tensor], repeats: int) -> float:
    """Median time of the Triton kernel on the GPU."""
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:  # else it warns of cycles
        for _ in range(repeats):
            function()
        torch.cuda.synchronize()
    return float(statistics.median(e.device_time for e in profiler.events() if e.name in KERNELS)) / 1e6


def _copy_bytes_per_s() -> float:
    """Bytes read and written per second by a copy in device memory."""
    source = torch.rand(2**29, device="cuda")
    target = torch.empty_like(source)
    _seconds(lambda: target.copy_(source), source.device)
    seconds = statistics.median(_seconds(lambda: target.copy_(source), source.device) for _ in range(9))
    return 2 * source.nbytes / seconds


def _speeds(graphs: list[Graph], num_samples: int, batch: Batch, times: Record) -> Record:
    """Work and speed: edges by the whole call, adjacency rows by the kernel alone."""
    num_edges = sum(graph.num_edges for graph in graphs)
    speeds: Record = {
        "nodes": sum(graph.num_nodes for graph in graphs),
        "edges": num_edges,
        "directed_edges_per_s": 2 * num_edges * num_samples / times["median_s"],
    }
    if isinstance(batch, DenseBatch) and times["kernel_s"]:
        once = batch.adjacency.element_size() * sum(graph.num_nodes**2 for graph in graphs)
        speeds["row_bytes_once"] = once
        speeds["row_bytes_once_per_s"] = once / times["kernel_s"]
        speeds["row_bytes_of_all_samples_per_s"] = num_samples * once / times["kernel_s"]
    return speeds


def _cells(record: Record) -> list[str]:
    """One row of the table."""

    def cell(name: str, unit: float, digits: int) -> str:
        return "" if record.get(name) is None else f"{record[name] / unit:.{digits}f}"

    return [
        *(str(record[name]) for name in ("dataset", "problem", "token_size", "decoder")),
        cell("first_s", 1, 2),
        cell("median_s", 1e-3, 2),
        cell("kernel_s", 1e-3, 2),
        cell("directed_edges_per_s", 1e6, 0),
        cell("row_bytes_of_all_samples_per_s", 1e9, 0),
        cell("row_bytes_once_per_s", 1e9, 0),
    ]


def _collect(batch: Batch, probs: list[Tensor]) -> Tensor:
    """One tensor of all graphs' probabilities, with NaN in the padding. -> [N, S]."""
    collected = torch.full((batch.num_rows, probs[0].shape[1]), torch.nan)
    for start, part in zip(batch.row_starts.tolist(), probs, strict=True):
        collected[start : start + len(part)] = part
    return collected.to(batch.device)


if __name__ == "__main__":
    main()
