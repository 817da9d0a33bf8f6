"""Table 4: after how many graphs training has paid off, against our reference solver and the paper's Gurobi."""

from functools import partial

import numpy as np

from diffuco.evaluation.metrics import n_query
from diffuco.foundation.errors import InputError
from diffuco.reproduction.benchmarks import TABLE_1, TABLE_3, Benchmark
from diffuco.reproduction.measurement import about_models, measure_model
from diffuco.reproduction.records import Row, Task
from diffuco.reproduction.reported import N_QUERY
from diffuco.reproduction.workspace import Workspace


def query_tasks(space: Workspace, benchmarks: tuple[Benchmark, ...] = (*TABLE_1, *TABLE_3)) -> list[Task]:
    """One row per benchmark."""
    return [
        Task(
            benchmark.name,
            {"benchmark": benchmark.name, "paper": {"n_query": N_QUERY.get(benchmark.name)}},
            partial(_queries, space, benchmark),
        )
        for benchmark in benchmarks
    ]


def _queries(space: Workspace, benchmark: Benchmark) -> Row:
    solver = space.solvers(benchmark.recipe)[0]
    minutes = solver.checkpoint.card.get("minutes")
    if minutes is None:
        raise InputError(f"the card of {solver.checkpoint.name} does not tell how long it was trained")
    count = benchmark.num_graphs(space)
    graphs = space.graphs(benchmark.dataset, count)
    run = measure_model(solver, graphs, samples=2, token_size=8, seed=space.options.seed)
    ours: Row = {
        **about_models([solver]),
        "training_minutes": minutes,
        "training_hardware": solver.checkpoint.card.get("hardware", "not on the card"),
        "graphs": len(graphs),
        "seconds_per_graph": run.seconds / len(graphs),
    }
    known = [found for found in space.references(benchmark.problem, benchmark.dataset, count) if found is not None]
    others = {
        "reference": float(np.mean([found.seconds for found in known])) if known else None,
        "gurobi": next(line.seconds_per_graph for line in benchmark.reported if line.method.startswith("Gurobi")),
    }
    for name, seconds in others.items():
        if seconds is not None:
            ours[f"{name}_seconds_per_graph"] = seconds
            ours[f"n_query_{name}"] = n_query(60 * minutes, ours["seconds_per_graph"], seconds)
    return ours
