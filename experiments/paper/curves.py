"""Figures that need no training of their own: Fig. 2 left and right, Fig. 3 left."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from diffuco.evaluation.metrics import best_approximation_ratio, mean_by
from diffuco.evaluation.references import stored_references
from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import Dataset, get_dataset
from diffuco.graphs.graph import Graph
from experiments.paper.benchmarks import MIS_RB_SMALL, Benchmark, measure_recipe
from experiments.paper.measurement import Measurement, about_method, about_models, measure_method, measure_model
from experiments.paper.records import Row, Task
from experiments.paper.reported import RATIO_SECONDS, RATIOS_BY_TIGHTNESS
from experiments.paper.workspace import Workspace

RATIO_DATASET = "rb-200"
RATIO_MODELS = {
    "DiffUCO": ("mvc-rb-200", 3),
    "EGN": ("mvc-rb-200-egn", 1),
    "EGN-Anneal": ("mvc-rb-200-egn-anneal", 1),
}
"""Recipe and step factor."""
RATIO_METHODS = {"db-greedy": "DB-Greedy", "greedy": "greedy", "mfa": "mfa", "rlsa": "rlsa"}
"""Other methods to measure, and their labels."""
METHOD_GRAPHS_PER_TIGHTNESS = 10

STEP_FACTORS = (1, 2, 3, 4, 6, 8, 10)
ROUNDS = (1, 2, 3, 5, 8, 11, 14)
TOKEN_SIZES = (1, 2, 4, 6, 8, 10, 12)


def ratio_tasks(space: Workspace, dataset: str = RATIO_DATASET) -> list[Task]:
    """Fig. 2 left: AR* of vertex covers over p, by method."""
    tasks = [
        _ratio_task(label, "UL", partial(_model_ratios, space, dataset, recipe, step_factor))
        for label, (recipe, step_factor) in RATIO_MODELS.items()
    ]
    tasks += [
        _ratio_task(RATIO_METHODS.get(name, name), "H", partial(_method_ratios, space, dataset, name))
        for name in space.methods(tuple(RATIO_METHODS), quick="db-greedy")
    ]
    ours = {task.about["method"] for task in tasks}
    return tasks + [_ratio_task(label, "", None) for label in RATIOS_BY_TIGHTNESS if label not in ours]


def _ratio_task(label: str, kind: str, measure: Callable[[], Row] | None) -> Task:
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
    most = 2 if space.options.quick else METHOD_GRAPHS_PER_TIGHTNESS
    graphs, tightness = graphs_by_tightness(get_dataset(dataset), min(most, space.options.count or most))
    run = measure_method(name, "mvc", graphs, space.options)
    return about_method(name, space.options) | _ratios(graphs, tightness, [run])


def graphs_by_tightness(dataset: Dataset, count: int) -> tuple[list[Graph], list[float]]:
    """The first test graphs of each tightness, and the tightness of every graph."""
    part = dataset.sizes["test"] // max(1, len(dataset.test_parts))
    chosen = [start + place for start in range(0, dataset.sizes["test"], part) for place in range(min(count, part))]
    graphs = [dataset.graph("test", index) for index in chosen]
    return graphs, [dataset.parameters("test", index)["tightness"] for index in chosen]


def _ratios(graphs: Sequence[Graph], tightness: Sequence[float], runs: Sequence[Measurement]) -> Row:
    references = [reference for reference in stored_references("mvc", graphs) if reference is not None]
    if len(references) < len(graphs):
        raise InputError("references are missing; `diffuco reference DATASET mis` finds them")
    optima = [reference.objective for reference in references]
    ratios = np.mean([best_approximation_ratio(run.energies, optima) for run in runs], axis=0)  # over seeds [G]
    return {
        "points": [
            {"x": p, "y": ratio.mean, "error": ratio.standard_error} for p, ratio in mean_by(ratios, tightness).items()
        ],
        "graphs": len(graphs),
        "proven": sum(reference.proven for reference in references),
        "seconds_per_graph": float(np.mean([run.seconds_per_graph for run in runs])),
    }


def step_tasks(space: Workspace, benchmark: Benchmark = MIS_RB_SMALL) -> list[Task]:
    """Fig. 2 right: error and time over the steps of evaluation, repeated as in the paper or in rounds."""
    sweep = partial(_sweep, space, benchmark, token_size=1)
    most = 3 if space.options.quick else None
    repeated = [
        Task(f"step factor {factor}", {"step_factor": factor}, partial(sweep, step_factor=factor))
        for factor in STEP_FACTORS[:most]
    ]
    return repeated + [
        Task(f"rounds {rounds}", {"step_factor": 1, "rounds": rounds}, partial(sweep, step_factor=1, rounds=rounds))
        for rounds in ROUNDS[:most]
    ]


def token_tasks(space: Workspace, benchmark: Benchmark = MIS_RB_SMALL) -> list[Task]:
    """Fig. 3 left: error and time over the token size of Conditional Expectation."""
    sweep = partial(_sweep, space, benchmark, step_factor=3)
    return [
        Task(f"token size {size}", {"token_size": size}, partial(sweep, token_size=size))
        for size in (TOKEN_SIZES[:3] if space.options.quick else TOKEN_SIZES)
    ]


def _sweep(space: Workspace, benchmark: Benchmark, **settings: int) -> Row:
    """One point of either figure: all models of the benchmark's recipe with these settings."""
    row = measure_recipe(benchmark, space, benchmark.recipe, **settings)
    return row | {"training_steps": space.solvers(benchmark.recipe)[0].checkpoint.model.config.num_steps}
