"""Speed of Conditional Expectation in one run: numba, torch and Triton, CE and CE-ST_8, on graphs of named datasets.

    python benchmarks/decode.py --datasets rb-small rb-large --graphs 500 --json decode.json

Every decoder gets the same probabilities, and the run stops unless all give the same states. "first" is the time of the
first call in this process, including compilation unless it is cached. "call" is the median of `--repeats` calls after
warm-up, with the device synchronised before and after each. "kernel" is the time the GPU spent in the decoding kernel.

Decoding reads every row of a dense adjacency once per sample, in a different order for each. "rows GB/s" is this number
of bytes divided by the kernel's time. Samples of one graph run side by side and share rows in the caches, so the memory
needs to deliver the rows of one sample only: "rows once", with its share of the speed of a copy in device memory.
"""

import argparse
import os
import statistics
from collections.abc import Callable, Iterator

import torch
from evidence import Limits, Record, add_options, measured_limits, require_green, seconds, write_record
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from diffuco import ops
from diffuco.foundation.provenance import hardware
from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import conditional_expectation
from diffuco.problems import get_problem

TESTS = ("tests/test_triton_decode.py", "tests/test_decoding.py")
DECODERS: dict[str, tuple[ops.Decoder, type[Batch], str]] = {
    "numba-sparse": ("numba", SparseBatch, "cpu"),
    "numba-dense": ("numba", DenseBatch, "cpu"),
    "torch-cpu": ("torch", DenseBatch, "cpu"),
    "torch-gpu": ("torch", DenseBatch, "cuda"),
    "triton-gpu": ("triton", DenseBatch, "cuda"),
}
"""Decoder, kind of batch and device for each name on the command line."""
KERNELS = ("quadratic_kernel", "cover_kernel")


def main() -> None:
    """Measure, print a table, and write JSON if a path is given."""
    arguments = _arguments()
    on_gpu = any(DECODERS[name][2] == "cuda" for name in arguments.decoders)
    device = torch.device("cuda" if on_gpu else "cpu")
    tests = require_green(TESTS, skip=arguments.skip_tests)
    limits = measured_limits(device)
    columns = ("dataset", "problem", "k", "decoder", "first s", "call ms", "kernel ms", "M edges/s", "rows GB/s")
    title = f"{arguments.graphs} graphs x {arguments.samples} samples, {hardware(device)}"
    table = Table(*columns, "rows once GB/s", title=title, caption=str(limits))
    records: list[Record] = []
    for dataset in arguments.datasets:
        for record in _measure_dataset(dataset, arguments, limits):
            records.append(record)
            table.add_row(*_cells(record))
    Console(width=140).print(table)
    write_record(arguments, device, tests, limits, records)


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
    add_options(parser)
    arguments = parser.parse_args()
    if len(arguments.decoders) < 2:
        parser.error("one decoder alone cannot be compared; name two or more")
    torch.set_num_threads(arguments.threads)
    return arguments


def _measure_dataset(dataset: str, arguments: argparse.Namespace, limits: Limits) -> Iterator[Record]:
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
                    raise SystemExit(
                        f"{name} gives different states for {problem}, k = {token_size}: no speeds to report"
                    )
                setting = {"dataset": dataset, "problem": problem, "token_size": token_size, "decoder": name}
                yield setting | times | _speeds(graphs, arguments.samples, batch, times, limits)


def _measure(name: str, token_size: int, batch: Batch, probs: Tensor, repeats: int) -> tuple[Tensor, Record]:
    """States of all nodes, and the times of a call in seconds."""
    problem = get_problem(name)

    def decode() -> Tensor:
        return conditional_expectation(problem, batch, probs, token_size)

    first = seconds(decode, batch.device)
    states = decode()
    median = statistics.median(seconds(decode, batch.device) for _ in range(repeats))
    kernel = _kernel_seconds(decode, repeats) if ops.decoder_override == "triton" else None
    return torch.cat(batch.split(states)).cpu(), {"first_s": first, "median_s": median, "kernel_s": kernel}


def _kernel_seconds(function: Callable[[], Tensor], repeats: int) -> float:
    """Median time of the Triton kernel on the GPU."""
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:  # without this, it warns of cycles
        for _ in range(repeats):
            function()
        torch.cuda.synchronize()
    return float(statistics.median(e.device_time for e in profiler.events() if e.name in KERNELS)) / 1e6


def _speeds(graphs: list[Graph], num_samples: int, batch: Batch, times: Record, limits: Limits) -> Record:
    """Work and speed: edges over the time of the whole call, adjacency rows over that of the kernel alone."""
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
        speeds["share_of_gb_per_s"] = once / times["kernel_s"] / 1e9 / limits.copy_gb_per_s
        speeds["row_bytes_of_all_samples_per_s"] = num_samples * once / times["kernel_s"]
    return speeds


def _cells(record: Record) -> list[str]:
    """One row of the table."""

    def cell(name: str, unit: float, digits: int) -> str:
        return "" if record.get(name) is None else f"{record[name] / unit:.{digits}f}"

    share = record.get("share_of_gb_per_s")
    return [
        *(str(record[name]) for name in ("dataset", "problem", "token_size", "decoder")),
        cell("first_s", 1, 2),
        cell("median_s", 1e-3, 2),
        cell("kernel_s", 1e-3, 2),
        cell("directed_edges_per_s", 1e6, 0),
        cell("row_bytes_of_all_samples_per_s", 1e9, 0),
        cell("row_bytes_once_per_s", 1e9, 0) + (f" ({share:.0%})" if share else ""),
    ]


def _collect(batch: Batch, probs: list[Tensor]) -> Tensor:
    """One tensor of all graphs' probabilities, with NaN in the padding. -> [N, S]."""
    collected = torch.full((batch.num_rows, probs[0].shape[1]), torch.nan)
    for start, part in zip(batch.row_starts.tolist(), probs, strict=True):
        collected[start : start + len(part)] = part
    return collected.to(batch.device)


if __name__ == "__main__":
    main()
