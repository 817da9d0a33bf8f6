"""Speed of Conditional Expectation: numba, torch and Triton, CE and CE-ST_8, on RB-small graphs, in one run.

    python benchmarks/decode.py --graphs 500 --samples 8 --json decode.json

Every decoder gets the same probabilities, and the run stops unless all give the same states. "first" is the first call
in this process, compilation included unless it is cached; "best" is the best of `--repeats` calls after it.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from diffuco import ops
from diffuco.decoding import conditional_expectation
from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    arguments = _arguments()
    graphs = get_dataset("rb-small").graphs("test", arguments.graphs)
    generator = torch.Generator().manual_seed(0)
    probs = [torch.rand(graph.num_nodes, arguments.samples, generator=generator) for graph in graphs]
    num_nodes, num_edges = sum(g.num_nodes for g in graphs), sum(g.num_edges for g in graphs)
    hardware = f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
    if torch.cuda.is_available():
        hardware += f"; {torch.cuda.get_device_name()}"
    print(f"{len(graphs)} graphs x {arguments.samples} samples, {num_nodes} nodes, {num_edges} edges; {hardware}")
    print(f"{'problem':<12}{'k':>3}  {'decoder':<20}{'first s':>9}{'best s':>9}{'M edges/s':>11}")
    records = []
    for name in arguments.problems:
        for token_size in arguments.token_sizes:
            for record in _measure(name, token_size, graphs, probs, arguments.repeats):
                speed = 2 * num_edges * arguments.samples / record["best_s"] / 1e6
                print(
                    f"{name:<12}{token_size:>3}  {record['decoder']:<20}"
                    f"{record['first_s']:>9.3f}{record['best_s']:>9.3f}{speed:>11.0f}"
                )
                records.append({**record, "directed_edges_per_s": speed * 1e6})
    if arguments.json:
        setting = {"hardware": hardware, "graphs": len(graphs), "samples": arguments.samples, "edges": num_edges}
        arguments.json.write_text(json.dumps({**setting, "torch": torch.__version__, "records": records}, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--problems", nargs="+", default=["mis", "mds"])
    parser.add_argument("--token-sizes", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    return arguments


def _measure(
    name: str, token_size: int, graphs: list[Graph], probs: list[Tensor], repeats: int
) -> Iterator[dict[str, float | str | int]]:
    problem = get_problem(name)
    expected: Tensor | None = None
    for decoder, batch in _decoders(graphs):
        padded = _collect(batch, probs)
        seconds = []
        for _ in range(repeats + 1):
            start = time.perf_counter()
            states = conditional_expectation(problem, batch, padded, token_size)
            if batch.device.type == "cuda":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        found = torch.cat(batch.split(states)).cpu()
        expected = found if expected is None else expected
        if not torch.equal(found, expected):
            raise SystemExit(f"{decoder} gives other states for {name}, k = {token_size}: no speeds to report")
        yield {
            "problem": name,
            "token_size": token_size,
            "decoder": decoder,
            "first_s": seconds[0],
            "best_s": min(seconds[1:]),
        }


def _decoders(graphs: list[Graph]) -> Iterator[tuple[str, Batch]]:
    """Name and batch of every decoder, each in force until the next is asked for."""
    ops.decoder_override = None
    yield "numba, sparse", SparseBatch.from_graphs(graphs)
    dense = DenseBatch.from_graphs(graphs)
    yield "numba, dense", dense
    ops.decoder_override = "torch"
    yield "torch, dense", dense
    if torch.cuda.is_available():
        on_gpu = DenseBatch.from_graphs(graphs, "cuda")
        yield "torch, dense, GPU", on_gpu
        ops.decoder_override = "triton"
        yield "triton, dense, GPU", on_gpu


def _collect(batch: Batch, probs: list[Tensor]) -> Tensor:
    """One tensor of all graphs' probabilities, with NaN in the padding. -> [N, S]."""
    collected = torch.full((batch.num_rows, probs[0].shape[1]), torch.nan)
    for start, part in zip(batch.row_starts.tolist(), probs, strict=True):
        collected[start : start + len(part)] = part
    return collected.to(batch.device)


if __name__ == "__main__":
    main()
