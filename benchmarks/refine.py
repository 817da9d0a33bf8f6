"""Speed and quality of annealing from given states: numba, torch and Triton, from coin flips or samples of a model.

    python benchmarks/refine.py --sets mis:rb-small mds:ba-small --graphs 100 --chains 8 --json refine.json

Graphs come from the validation split, because schedules are chosen with this benchmark. Every implementation gets the
same states, and the run stops unless all return the same states. "call" is the median of `--repeats` calls after one to
warm up, with the device synchronised before and after each. "ns per proposal" is this time divided by nodes, chains and
sweeps. "best" and "mean" are the energies of a graph's best chain and of all its chains after Conditional Expectation,
averaged over the graphs; without sweeps they are the energies of the start. Temperatures are multiples of the default
temperature of the problem.
"""

import argparse
import os
import statistics
from collections.abc import Iterator
from itertools import product

import numpy as np
import torch
from evidence import Record, add_options, measured_limits, require_green, seconds, write_record
from rich.console import Console
from rich.table import Table
from torch import Tensor

from diffuco import ops
from diffuco.foundation.provenance import hardware
from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import conditional_expectation
from diffuco.inference.refinement import Schedule, anneal, schedule_for
from diffuco.problems import Problem, get_problem
from diffuco.solving.entry import solvers_for

TESTS = ("tests/test_triton_anneal.py", "tests/test_refinement.py")
ANNEALERS: dict[str, tuple[ops.Decoder, type[Batch], str]] = {
    "numba-sparse": ("numba", SparseBatch, "cpu"),
    "numba-dense": ("numba", DenseBatch, "cpu"),
    "torch-cpu": ("torch", DenseBatch, "cpu"),
    "torch-gpu": ("torch", DenseBatch, "cuda"),
    "triton-gpu": ("triton", DenseBatch, "cuda"),
}
"""Implementation, kind of batch and device for each name on the command line."""
SLOW = ("torch-cpu", "torch-gpu")
"""These are measured only if named."""


def main() -> None:
    """Measure, print a table, and write JSON if a path is given."""
    arguments = _arguments()
    on_gpu = any(ANNEALERS[name][2] == "cuda" for name in arguments.annealers)
    device = torch.device("cuda" if on_gpu else "cpu")
    tests = require_green(TESTS, skip=arguments.skip_tests)
    limits = measured_limits(device)
    columns = ("set", "start", "sweeps", "temperature", "annealer", "call ms", "ms per graph", "ns per proposal")
    title = f"{arguments.graphs} graphs x {arguments.chains} chains, {hardware(device)}"
    table = Table(*columns, "best", "mean", title=title, caption=str(limits))
    records: list[Record] = []
    for pair in arguments.sets:
        for record in _measure_set(pair, arguments):
            records.append(record)
            table.add_row(*_cells(record, arguments.graphs))
    Console(width=140).print(table)
    write_record(arguments, device, tests, limits, records)


def _arguments() -> argparse.Namespace:
    usable = [name for name, (_, _, device) in ANNEALERS.items() if device == "cpu" or torch.cuda.is_available()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["mis:rb-small"], metavar="PROBLEM:DATASET")
    parser.add_argument("--graphs", type=int, default=24)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--sweeps", nargs="+", type=int, default=[100, 1000])
    parser.add_argument("--temperatures", nargs="+", type=float, default=[1.0])
    parser.add_argument("--starts", nargs="+", choices=["random", "model"], default=["random", "model"])
    parser.add_argument("--annealers", nargs="+", choices=usable, default=[name for name in usable if name not in SLOW])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    add_options(parser)
    arguments = parser.parse_args()
    if len(arguments.annealers) < 2:
        parser.error("one annealer alone cannot be compared; name two or more")
    torch.set_num_threads(arguments.threads)
    return arguments


def _measure_set(pair: str, arguments: argparse.Namespace) -> Iterator[Record]:
    """One record per start, schedule and annealer, after a first record of the start alone."""
    name, dataset = pair.split(":")
    problem = get_problem(name)
    graphs = get_dataset(dataset).graphs("validation", arguments.graphs)
    temperature = schedule_for(problem, graphs[0].num_nodes).temperature
    kinds = dict.fromkeys(ANNEALERS[annealer][1:] for annealer in arguments.annealers)
    batches = {(kind, device): kind.from_graphs(graphs, device) for kind, device in kinds}
    for start in arguments.starts:
        states, about = _start(start, name, graphs, arguments.chains)
        setting = {"set": pair, "start": start}
        batch = next(iter(batches.values()))
        yield setting | about | {"sweeps": 0} | _energies(problem, batch, _collect(batch, states))
        for num_sweeps, factor in product(arguments.sweeps, arguments.temperatures):
            schedule = Schedule(num_sweeps, factor * temperature)
            expected: Tensor | None = None
            for annealer in arguments.annealers:
                ops.decoder_override, kind, device = ANNEALERS[annealer]
                batch = batches[kind, device]
                annealed, median_s = _measure(problem, batch, _collect(batch, states), schedule, arguments.repeats)
                parts = torch.cat(batch.split(annealed)).cpu()
                expected = parts if expected is None else expected
                if not torch.equal(parts, expected):
                    raise SystemExit(f"{annealer} gives different states for {pair}, {schedule}: no speeds to report")
                proposals = num_sweeps * arguments.chains * sum(graph.num_nodes for graph in graphs)
                speeds = {"median_s": median_s, "ns_per_proposal": 1e9 * median_s / max(1, proposals)}
                about = {"sweeps": num_sweeps, "temperature": schedule.temperature, "annealer": annealer}
                yield setting | about | speeds | _energies(problem, batch, annealed)
            ops.decoder_override = None


def _start(kind: str, problem: str, graphs: list[Graph], num_chains: int) -> tuple[list[Tensor], Record]:
    """States of every graph: coin flips, or decoded samples with the seconds they took."""
    if kind == "random":
        generator = torch.Generator().manual_seed(0)
        return [torch.randint(2, (graph.num_nodes, num_chains), generator=generator).float() for graph in graphs], {}
    states: dict[int, Tensor] = {}
    sampling_s = 0.0
    for solver, positions in solvers_for(problem, graphs):
        for solution, position in zip(
            solver.solve([graphs[position] for position in positions], samples=num_chains, refine=0),
            positions,
            strict=True,
        ):
            states[position] = torch.from_numpy(solution.states.astype(np.float32))
            sampling_s += solution.seconds["sample"] + solution.seconds["decode"]
    return [states[position] for position in range(len(graphs))], {"median_s": sampling_s}


def _measure(problem: Problem, batch: Batch, states: Tensor, schedule: Schedule, repeats: int) -> tuple[Tensor, float]:
    """States of all chains, and the median time of a call in seconds."""

    def call() -> Tensor:
        return anneal(problem, batch, states, schedule)

    annealed = call()
    return annealed, statistics.median(seconds(call, batch.device) for _ in range(repeats))


def _energies(problem: Problem, batch: Batch, states: Tensor) -> Record:
    """Energies of decoded states, of the best chain and of all chains, averaged over the graphs."""
    energies = problem.energy(batch, conditional_expectation(problem, batch, states))  # [B, S]
    return {"best": float(energies.amin(1).double().mean()), "mean": float(energies.double().mean())}


def _collect(batch: Batch, states: list[Tensor]) -> Tensor:
    """One tensor of all graphs' states, with 0 in the padding. -> [N, S]."""
    collected = torch.zeros(batch.num_rows, states[0].shape[1])
    for start, part in zip(batch.row_starts.tolist(), states, strict=True):
        collected[start : start + len(part)] = part
    return collected.to(batch.device)


def _cells(record: Record, num_graphs: int) -> list[str]:
    """One row of the table."""
    median_s = record.get("median_s")
    return [
        *(str(record.get(name, "")) for name in ("set", "start", "sweeps", "temperature", "annealer")),
        *(["", ""] if median_s is None else [f"{1e3 * median_s:.2f}", f"{1e3 * median_s / num_graphs:.3f}"]),
        f"{record['ns_per_proposal']:.2f}" if "ns_per_proposal" in record else "",
        f"{record['best']:.3f}",
        f"{record['mean']:.3f}",
    ]


if __name__ == "__main__":
    main()
