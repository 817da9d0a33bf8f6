"""Table 5: cuts of Gset graphs by models that learned on random graphs of 200 to 500 nodes."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from diffuco.evaluation.metrics import mean_with_error
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import make_batch
from diffuco.graphs.formats import read_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import draw_solutions
from diffuco.inference.solver import Solver
from experiments.paper.measurement import about_method, about_models, heeds_time_limit, measure_method, methods_for
from experiments.paper.records import Row, Task
from experiments.paper.reported import CE_ST, GSET_DEVIATIONS, GSET_GROUPS
from experiments.paper.workspace import Workspace

MODELS = {CE_ST: "max-cut-er", f"{CE_ST}, mixed graphs": "max-cut-gset"}
"""Recipes by row: one for the paper's random graphs, one for more kinds of graphs."""
PARALLEL_RUNS = 20
METHODS = {"greedy": "Greedy", "sdp": "SDP", "rlsa": "rlsa", "sa": "sa"}
"""Other methods to measure, and their labels."""

BEST_KNOWN: dict[str, dict[str, int]] = {
    "800": {
        **{"G1": 11624, "G2": 11620, "G3": 11622, "G4": 11646, "G5": 11631},
        **{"G14": 3064, "G15": 3050, "G16": 3052, "G17": 3047},
    },
    "1K": {
        **{"G43": 6660, "G44": 6650, "G45": 6654, "G46": 6649, "G47": 6657},
        **{"G51": 3848, "G52": 3851, "G53": 3850, "G54": 3852},
    },
    "2K": {
        **{"G22": 13359, "G23": 13344, "G24": 13337, "G25": 13340, "G26": 13328},
        **{"G35": 7687, "G36": 7680, "G37": 7691, "G38": 7688},
    },
    ">=3K": {
        **{"G48": 6000, "G49": 6000, "G50": 5880, "G55": 10299},
        **{"G58": 19293, "G60": 14188, "G63": 27045, "G70": 9591},
    },
}
"""Best known cuts by group and graph."""


def gset_tasks(space: Workspace, groups: dict[str, dict[str, int]] | None = None) -> list[Task]:
    """One row per group of graphs and system: those that the paper reports, our methods, and last our models."""
    measures: dict[str, Callable[[dict[str, int]], Row] | None] = dict.fromkeys(GSET_DEVIATIONS)
    for name in methods_for("max-cut", space.methods(tuple(METHODS), quick="greedy")):
        measures[METHODS.get(name, name)] = partial(_method_deviation, space, name)
    del measures[CE_ST]
    measures |= {label: partial(_model_deviation, space, recipe) for label, recipe in MODELS.items()}
    return [
        _task(label, group, measure and partial(measure, best_known))
        for label, measure in measures.items()
        for group, best_known in (groups or BEST_KNOWN).items()
    ]


def _task(label: str, group: str, measure: Callable[[], Row] | None) -> Task:
    about: Row = {"method": label, "group": group}
    reported = dict(zip(GSET_GROUPS, GSET_DEVIATIONS.get(label, ()), strict=False)).get(group)
    return Task(f"{label} | {group}", about | ({"paper": {"deviation": reported}} if reported else {}), measure)


def _graphs(space: Workspace, best_known: dict[str, int]) -> list[tuple[Graph, int]]:
    """The graphs of a group, each with its best known cut."""
    folder = space.options.graphs
    if folder is None:
        raise InputError("no graphs; give the folder of Gset files with --graphs")
    count = space.options.count or (1 if space.options.quick else None)
    return [(_read(folder, name), best) for name, best in list(best_known.items())[:count]]


def _read(folder: Path, name: str) -> Graph:
    files = sorted(path for path in folder.glob(f"{name}.*") if path.name.split(".")[0] == name)
    if not files:
        raise InputError(f"{folder}: no file {name}.txt or {name}.txt.gz; fetch Gset into this folder")
    graph = read_graph(files[0], "rudy")
    if graph.edge_weights is not None and not np.all(graph.edge_weights == 1):
        raise InputError(f"{files[0]}: edges have weights other than 1; this is not {name} of Gset")
    return graph


def _method_deviation(space: Workspace, name: str, best_known: dict[str, int]) -> Row:
    limit_s = space.options.time_limit_s if heeds_time_limit(name) else None
    known = _graphs(space, best_known)
    run = measure_method(name, "max-cut", [graph for graph, _ in known], space.options, time_limit_s=limit_s)
    cuts = (-run.energies[:, 0]).tolist()
    about = about_method(name, space.options) | {"time_limit_s": limit_s}
    return about | _deviation(known, cuts, run.seconds_per_graph)


def _model_deviation(space: Workspace, recipe: str, best_known: dict[str, int]) -> Row:
    """Mean over the models of the recipe."""
    solvers = space.solvers(recipe)
    known = _graphs(space, best_known)
    runs = 2 if space.options.quick else PARALLEL_RUNS
    by_model = [_best_deviation(space, solver, known, runs) for solver in solvers]
    deviation = mean_with_error([found["deviation"] for found in by_model])
    return about_models(solvers) | {
        "seeds": len(solvers),
        "parallel_runs": runs,
        "time_limit_s": space.options.time_limit_s,
        "deviation": deviation.mean,
        "error": deviation.standard_error if len(solvers) > 1 else None,
        "graphs": len(known),
        "seconds_per_graph": float(np.mean([found["seconds_per_graph"] for found in by_model])),
        "by_model": by_model,
    }


def _best_deviation(space: Workspace, solver: Solver, known: Sequence[tuple[Graph, int]], runs: int) -> Row:
    """Best of the parallel runs of a model; with a time limit, each run draws again until the time is over."""
    search = partial(_search, solver, runs=runs, limit_s=space.options.time_limit_s or 0.0, seed=space.options.seed)
    found = [search(graph) for graph, _ in known]
    seconds = float(np.mean([cuts.seconds for cuts in found]))
    return _deviation(known, [cuts.best for cuts in found], seconds) | {
        "first_deviation": _deviation(known, [cuts.first for cuts in found], seconds)["deviation"],
        "samples": [cuts.samples for cuts in found],
    }


class Cuts(NamedTuple):
    """Cuts of one graph."""

    first: float
    """The best of the first round."""
    best: float
    samples: int
    seconds: float


def _search(solver: Solver, graph: Graph, *, runs: int, limit_s: float, seed: int) -> Cuts:
    """Draw rounds of `runs` samples until the time is over, one round at least."""
    batch = make_batch([graph], solver.device)
    seeds = np.random.default_rng(seed)
    at_once = min(runs, solver.requirement(graph, runs).samples_at_once)

    def best_of_round() -> float:
        states, _ = draw_solutions(
            solver.sampler,
            solver.problem,
            batch,
            num_samples=runs,
            samples_at_once=at_once,
            step_factor=3,
            token_size=8,
            seeds=seeds,
        )
        return -solver.problem.energy(batch, states).min().item()

    if solver.device.type == "cuda":
        best_of_round()  # compile what a graph of this size needs
    cuts: list[float] = []
    spent_s, started = 0.0, time.perf_counter()
    while not cuts or spent_s < limit_s:
        cuts.append(best_of_round())
        spent_s = time.perf_counter() - started
    return Cuts(first=cuts[0], best=max(cuts), samples=runs * len(cuts), seconds=spent_s)


def _deviation(known: Sequence[tuple[Graph, int]], cuts: Sequence[float], seconds: float) -> Row:
    return {
        "deviation": float(np.mean([best - cut for (_, best), cut in zip(known, cuts, strict=True)])),
        "graphs": len(known),
        "cuts": {graph.name: cut for (graph, _), cut in zip(known, cuts, strict=True)},
        "seconds_per_graph": seconds,
    }
