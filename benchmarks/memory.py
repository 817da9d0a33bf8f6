"""Peak memory of solving one large random graph beside what `diffuco.memory` predicts, and the time it takes."""

import argparse
import json
import resource
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from diffuco.graphs.graph import Graph, GraphWarning
from diffuco.provenance import hardware, source_commit
from diffuco.solver import Solver


def random_graph(num_nodes: int, num_edges: int) -> Graph:
    """Edges drawn uniformly; the few that repeat are dropped."""
    pairs = np.random.default_rng(0).integers(0, num_nodes, (num_edges, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        return Graph.from_edges(pairs, num_nodes, name=f"random {num_nodes} x {num_edges}")


def peak_bytes(device: torch.device) -> int:
    """Highest memory in use so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Solve the graph that the options describe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="mis")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=500_000)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--step-factor", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    arguments = parser.parse_args()
    graph = random_graph(arguments.nodes, arguments.edges)
    solver = Solver(arguments.problem, device=arguments.device)
    before = peak_bytes(solver.device)
    started = time.perf_counter()
    (solution,) = solver.solve([graph], samples=arguments.samples, step_factor=arguments.step_factor)
    need = solver.requirement(graph, arguments.samples)
    record = {
        "problem": arguments.problem,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "samples": arguments.samples,
        "samples_at_once": need.samples_at_once,
        "steps": arguments.step_factor * solver.checkpoint.model.config.num_steps,
        "predicted_gib": need.num_bytes / 2**30,
        "measured_gib": (peak_bytes(solver.device) - before) / 2**30,
        "seconds": time.perf_counter() - started,
        "objective": solution.objective,
        "feasible": solution.feasible,
        "hardware": hardware(solver.device),
        "torch": torch.__version__,
        "commit": source_commit(),
    }
    table = Table("measure", "value", title=f"{graph.name}, {record['hardware']}")
    for name, value in record.items():
        table.add_row(name, f"{value:.2f}" if isinstance(value, float) else str(value))
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
