"""Table 4: after how many graphs training has paid off, against our reference solver and the paper's Gurobi."""

from functools import partial

import numpy as np

from diffuco.evaluation.metrics import n_query
from diffuco.foundation.errors import InputError
from experiments.paper.benchmarks import TABLE_1, TABLE_3, Benchmark
from experiments.paper.measurement import about_models, measure_model
from experiments.paper.records import Row, Task
from experiments.paper.reported import N_QUERY
from experiments.paper.workspace import Workspace


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
    card = solver.checkpoint.card
    if card.get("minutes") is None:
        raise InputError(f"the card of {solver.checkpoint.name} does not tell how long it was trained")
    graphs, references = benchmark.test_set(space)
    run = measure_model(solver, graphs, samples=2, token_size=8, seed=space.options.seed)
    ours: Row = {
        **about_models([solver]),
        "training_minutes": card["minutes"],
        "training_hardware": card.get("hardware", "not on the card"),
        "graphs": len(graphs),
        "seconds_per_graph": run.seconds_per_graph,
    }
    known = [reference.seconds for reference in references if reference is not None]
    others = {
        "reference": float(np.mean(known)) if known else None,
        "gurobi": next(line.seconds_per_graph for line in benchmark.reported if line.method == "Gurobi"),
    }
    for name, seconds in others.items():
        if seconds is not None:
            ours[f"{name}_seconds_per_graph"] = seconds
            ours[f"n_query_{name}"] = n_query(60 * card["minutes"], ours["seconds_per_graph"], seconds)
    return ours
