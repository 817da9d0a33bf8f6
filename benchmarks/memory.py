"""Peak memory of solving one large random graph, or of training steps as the number of diffusion steps grows.

    python benchmarks/memory.py --nodes 1000000 --edges 5000000 --samples 2 --json memory.json
    python benchmarks/memory.py --recipe mis-rb-large-paper --steps 4 40 --steps-per-chunk 4 --json memory.json

The first command shows the measured memory next to the prediction of `diffuco.inference.memory`. The second takes
optimiser steps of a recipe with T replaced and `--steps-per-chunk` diffusion steps differentiated at once (0: all). It
counts the memory needed beyond the training graphs, which needs a GPU, because only a GPU reports its memory in use.
"""

import argparse
import dataclasses
import resource
import time
import warnings

import numpy as np
import torch
from evidence import Limits, Record, add_options, measured_limits, require_green, write_record
from rich.console import Console
from rich.table import Table
from roofline import SPEED_COLUMNS, speed_cells, speeds
from train_step import measure, shape, time_cells, training_graphs

from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import GraphWarning
from diffuco.foundation.provenance import hardware
from diffuco.graphs.graph import Graph
from diffuco.inference.solver import Solver
from diffuco.model.engine.acceleration import ENGINES, pick_engine
from diffuco.training.parts import choose_parts
from diffuco.training.recipes import get_recipe

TESTS = {
    "solve": ("tests/test_memory.py",),
    "train": ("tests/test_fused.py", "tests/test_loss.py"),
}


def main() -> None:
    """Solve the graph or train the recipe that the options describe."""
    arguments = _arguments()
    device = pick_device(arguments.device)
    tests = require_green(TESTS["train" if arguments.recipe else "solve"], skip=arguments.skip_tests)
    if arguments.recipe:
        limits = measured_limits(device)
        records = _train(arguments, device, limits)
        table = _training_table(records)
    else:
        records = [_solve(arguments, device)]
        limits = measured_limits(device)  # measured last, because the peak memory of a process never falls
        table = _solving_table(records[0])
    table.title = f"{arguments.recipe or records[0]['graph']}, {hardware(device)}"
    table.caption = str(limits)
    Console(width=130).print(table)
    write_record(arguments, device, tests, limits, records)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    solving = parser.add_argument_group("solving one graph")
    solving.add_argument("--problem", default="mis")
    solving.add_argument("--nodes", type=int, default=100_000)
    solving.add_argument("--edges", type=int, default=500_000)
    solving.add_argument("--samples", type=int, default=2)
    solving.add_argument("--step-factor", type=int, default=1)
    training = parser.add_argument_group("training")
    training.add_argument("--recipe")
    training.add_argument("--steps", nargs="+", type=int, default=[4, 40], help="values of T, each measured once")
    training.add_argument("--steps-per-chunk", type=int, default=0, help="steps differentiated at once; 0: all")
    training.add_argument("--engines", nargs="+", choices=ENGINES, help="default: the engine that `auto` picks")
    parser.add_argument("--device", default="auto")
    add_options(parser)
    return parser.parse_args()


def _solve(arguments: argparse.Namespace, device: torch.device) -> Record:
    """Memory and time of solving one graph."""
    graph = random_graph(arguments.nodes, arguments.edges)
    solver = Solver(arguments.problem, device=str(device))
    before = peak_bytes(device)
    started = time.perf_counter()
    (solution,) = solver.solve([graph], samples=arguments.samples, step_factor=arguments.step_factor)
    need = solver.requirement(graph, arguments.samples)
    return {
        "graph": graph.name,
        "problem": arguments.problem,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "samples": arguments.samples,
        "samples_at_once": need.samples_at_once,
        "steps": arguments.step_factor * solver.checkpoint.model.config.num_steps,
        "predicted_gib": need.num_bytes / 2**30,
        "measured_gib": (peak_bytes(device) - before) / 2**30,
        "seconds": time.perf_counter() - started,
        "objective": solution.objective,
        "feasible": solution.feasible,
    }


def random_graph(num_nodes: int, num_edges: int) -> Graph:
    """A graph with uniformly drawn edges; the few repeated ones are dropped."""
    pairs = np.random.default_rng(0).integers(0, num_nodes, (num_edges, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        return Graph.from_edges(pairs, num_nodes, name=f"random {num_nodes} x {num_edges}")


def peak_bytes(device: torch.device) -> int:
    """Peak memory so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _solving_table(record: Record) -> Table:
    table = Table("measure", "value")
    for name, value in record.items():
        table.add_row(name, f"{value:.2f}" if isinstance(value, float) else str(value))
    return table


def _train(arguments: argparse.Namespace, device: torch.device, limits: Limits) -> list[Record]:
    """Memory and time of optimiser steps, for every T and engine."""
    recipe = get_recipe(arguments.recipe)
    data = training_graphs(recipe, device)
    records = []
    for engine in arguments.engines or [pick_engine("auto", choose_parts(recipe).network, device)]:
        for num_steps in arguments.steps:
            config = dataclasses.replace(recipe, num_steps=num_steps, steps_per_chunk=arguments.steps_per_chunk)
            times, work = measure(config, data, engine, passes=1)
            setting = {"recipe": arguments.recipe, "shape": shape(config), "engine": engine, "steps": num_steps}
            speed = speeds(work, times["ms"] / 1000, limits, engine)
            records.append(setting | {"steps_at_once": config.steps_at_once} | times | speed)
    return records


def _training_table(records: list[Record]) -> Table:
    columns = ("graphs x samples x steps x layers", "at once", "engine", "ms", "first s", "peak GiB")
    table = Table(*columns, *SPEED_COLUMNS)
    for record in records:
        cells = (record["shape"], str(record["steps_at_once"]), record["engine"])
        table.add_row(*cells, *time_cells(record), *speed_cells(record))
    return table


if __name__ == "__main__":
    main()
