"""Figures that need no training of their own: Fig. 2 left and right, Fig. 3 left."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from diffuco.evaluation.metrics import best_approximation_ratio, mean_by
from diffuco.evaluation.references import stored_references
from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import Dataset, get_dataset
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem
from diffuco.reproduction.benchmarks import MIS_RB_SMALL, Benchmark
from diffuco.reproduction.measurement import (
    Measurement,
    about_models,
    measure_method,
    measure_model,
    method_hardware,
    summary,
)
from diffuco.reproduction.records import Row, Task
from diffuco.reproduction.reported import RATIO_SECONDS, RATIOS_BY_TIGHTNESS
from diffuco.reproduction.workspace import Workspace

RATIO_DATASET = "rb-200"
RATIO_MODELS = {
    "DiffUCO": ("mvc-rb-200", 3),
    "EGN": ("mvc-rb-200-egn", 1),
    "EGN-Anneal": ("mvc-rb-200-egn-anneal", 1),
}
"""Recipe and step factor."""
RATIO_METHODS = {"DB-Greedy": "db-greedy", "greedy": "greedy", "mfa": "mfa", "rlsa": "rlsa"}
METHOD_GRAPHS_PER_TIGHTNESS = 10

STEP_FACTORS = (1, 2, 3, 4, 6, 8, 10)
TOKEN_SIZES = (1, 2, 4, 6, 8, 10, 12)


def ratio_tasks(space: Workspace, dataset: str = RATIO_DATASET) -> list[Task]:
    """Fig. 2 left: AR* of vertex covers over p, by method."""
    tasks = []
    for label, (recipe, factor) in RATIO_MODELS.items():
        tasks.append(_ratio_task(label, "UL", partial(_model_ratios, space, dataset, recipe, factor)))
    asked = space.options.methods
    named = {name: label for label, name in RATIO_METHODS.items()}
    chosen = asked if asked is not None else ("db-greedy",) if space.options.quick else tuple(named)
    for name in chosen:
        tasks.append(_ratio_task(named.get(name, name), "H", partial(_method_ratios, space, dataset, name)))
    ours = {task.about["method"] for task in tasks}
    return tasks + [_ratio_task(label, "", None) for label in RATIOS_BY_TIGHTNESS if label not in ours]


def _ratio_task(label: str, kind: str, measure: Any) -> Task:
    about: Row = {"method": label, "kind": kind}
    if label in RATIOS_BY_TIGHTNESS:
        tightness = np.linspace(0.25, 1, 10).tolist()
        points = [{"x": x, "y": y} for x, y in zip(tightness, RATIOS_BY_TIGHTNESS[label], strict=False)]
        about["paper"] = {"points": points, "seconds_per_graph": RATIO_SECONDS.get(label)}
    return Task(label, about, measure)


def _model_ratios(space: Workspace, dataset: str, recipe: str, step_factor: int) -> Row:
    solvers = space.solvers(recipe)
    count = space.options.count or (2 if space.options.quick else 100)
    graphs, tightness = graphs_by_tightness(get_dataset(dataset), count)
    settings = {"step_factor": step_factor, "samples": space.samples, "seed": space.options.seed}
    runs = [measure_model(solver, graphs, **settings) for solver in solvers]
    return about_models(solvers) | {"seeds": len(solvers)} | settings | _ratios(graphs, tightness, runs)


def _method_ratios(space: Workspace, dataset: str, name: str) -> Row:
    options = space.options
    most = 2 if options.quick else METHOD_GRAPHS_PER_TIGHTNESS
    graphs, tightness = graphs_by_tightness(get_dataset(dataset), min(most, options.count or most))
    run = measure_method(name, "mvc", graphs, device=options.device, seed=options.seed)
    about = {"method": name, "hardware": method_hardware(name, options.device)}
    return about | _ratios(graphs, tightness, [run])


def graphs_by_tightness(dataset: Dataset, count: int) -> tuple[list[Graph], list[float]]:
    """The first test graphs of each tightness, and the tightness of every graph."""
    part = dataset.sizes["test"] // max(1, len(dataset.test_tightness))
    chosen = [start + place for start in range(0, dataset.sizes["test"], part) for place in range(min(count, part))]
    graphs = [dataset.graph("test", index) for index in chosen]
    return graphs, [dataset.parameters("test", index)["tightness"] for index in chosen]


def _ratios(graphs: Sequence[Graph], tightness: Sequence[float], runs: Sequence[Measurement]) -> Row:
    references = stored_references("mvc", graphs)
    if not all(references):
        raise InputError("references are missing; `diffuco reference DATASET mis` finds them")
    optima = [reference.objective for reference in references if reference]
    ratios = np.mean([best_approximation_ratio(run.energies, optima) for run in runs], axis=0)  # over seeds [G]
    return {
        "points": [
            {"x": p, "y": ratio.mean, "error": ratio.standard_error} for p, ratio in mean_by(ratios, tightness).items()
        ],
        "graphs": len(graphs),
        "proven": sum(reference.proven for reference in references if reference),
        "seconds_per_graph": float(np.mean([run.seconds for run in runs])) / len(graphs),
    }


def step_tasks(space: Workspace, benchmark: Benchmark = MIS_RB_SMALL) -> list[Task]:
    """Fig. 2 right: error and time over the steps of evaluation."""
    factors = STEP_FACTORS[:3] if space.options.quick else STEP_FACTORS
    return [
        Task(f"step factor {factor}", {"step_factor": factor}, partial(_sweep, space, benchmark, factor, 1))
        for factor in factors
    ]


def token_tasks(space: Workspace, benchmark: Benchmark = MIS_RB_SMALL) -> list[Task]:
    """Fig. 3 left: error and time over the token size of Conditional Expectation."""
    sizes = TOKEN_SIZES[:3] if space.options.quick else TOKEN_SIZES
    return [
        Task(f"token size {size}", {"token_size": size}, partial(_sweep, space, benchmark, 3, size)) for size in sizes
    ]


def _sweep(space: Workspace, benchmark: Benchmark, step_factor: int, token_size: int) -> Row:
    """One point of either figure: all models of the benchmark's recipe with these settings."""
    solvers = space.solvers(benchmark.recipe)
    count = benchmark.num_graphs(space)
    graphs = space.graphs(benchmark.dataset, count)
    settings = {"step_factor": step_factor, "token_size": token_size, "seed": space.options.seed}
    runs = [measure_model(solver, graphs, samples=space.samples, **settings) for solver in solvers]
    num_steps = solvers[0].checkpoint.model.config.num_steps
    about = about_models(solvers) | {"training_steps": num_steps, "steps": step_factor * num_steps}
    references = space.references(benchmark.problem, benchmark.dataset, count)
    return about | settings | summary(get_problem(benchmark.problem), graphs, references, runs)
