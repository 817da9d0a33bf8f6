"""Measure a trained model or another method on graphs, with the time that the paper counts (App. C.7).

Models are measured without refinement, as in the paper. Everything that concerns other methods goes through here.
Legend: G graphs, S samples.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import diffuco
from diffuco.evaluation import metrics
from diffuco.evaluation.reference_store import Reference
from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware
from diffuco.graphs.batch import make_batch
from diffuco.graphs.by_size import batches_by_size, rows_per_batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import draw_solutions
from diffuco.inference.solver import Solver
from diffuco.methods import ModelMethod, get_method
from diffuco.methods.annealer import Annealer
from diffuco.problems import Problem, get_problem
from experiments.paper.workspace import Options


@dataclass(frozen=True)
class Measurement:
    """The energies found, and the seconds for one sample of all graphs."""

    energies: NDArray[np.float64]
    """[G, S]"""
    seconds: float

    @property
    def seconds_per_graph(self) -> float:
        """Seconds for one sample of one graph."""
        return self.seconds / len(self.energies)


def measure_model(
    solver: Solver,
    graphs: Sequence[Graph],
    *,
    samples: int = 8,
    step_factor: int = 3,
    token_size: int = 1,
    rounds: int = 0,
    seed: int = 0,
) -> Measurement:
    """Draw and decode the samples, one sample of all graphs after the other; token size 0: do not decode.

    The time is that of sampling and decoding, without loading. It is a mean over the samples, because the paper takes
    samples to be computed in parallel.
    """
    groups = list(batches_by_size(graphs, 1, rows_per_batch(solver.device)))
    batches = [make_batch([graphs[position] for position in group], solver.device) for group in groups]
    energies = np.empty((len(graphs), samples))
    seconds = 0.0
    # The first two calls with a shape compile and record; that is not part of solving.
    warm_ups = 2 if solver.device.type == "cuda" else 0
    for sample in range(-warm_ups, samples):
        seeds = np.random.default_rng([seed, max(0, sample)])
        for group, batch in zip(groups, batches, strict=True):
            states, spent = draw_solutions(
                solver.sampler,
                solver.problem,
                batch,
                num_samples=1,
                step_factor=step_factor,
                token_size=token_size,
                rounds=rounds,
                seeds=seeds,
            )
            if sample >= 0:
                energies[group, sample] = solver.problem.energy(batch, states)[:, 0].double().cpu().numpy()
                seconds += spent["sample"] + spent["decode"]
    return Measurement(energies, seconds / samples)


def about_models(solvers: Sequence[Solver]) -> dict[str, Any]:
    """Which weights were measured and how long they were trained."""
    checkpoints = [solver.checkpoint for solver in solvers]
    return {
        "models": [checkpoint.name for checkpoint in checkpoints],
        "weights": [checkpoint.digest for checkpoint in checkpoints],
        "training_minutes": [checkpoint.card.get("minutes") for checkpoint in checkpoints],
    }


def measure_method(
    name: str, problem: str, graphs: Sequence[Graph], options: Options, *, time_limit_s: float | None = None
) -> Measurement:
    """Solve the graphs with a method; its answer is one sample, whatever it tried on the way."""
    settings: dict[str, Any] = {"method": name, "seed": options.seed, "device": options.device}
    # The first call compiles and loads; that is not part of solving.
    diffuco.solve(list(graphs[:1]), problem, time_limit_s=time_limit_s and min(time_limit_s, 1.0), **settings)
    started = time.perf_counter()
    solutions = diffuco.solve(list(graphs), problem, time_limit_s=time_limit_s, **settings)
    seconds = time.perf_counter() - started
    return Measurement(get_problem(problem).sign * np.array([[found.objective] for found in solutions]), seconds)


def about_method(name: str, options: Options) -> dict[str, Any]:
    """The method and what it runs on: only methods that work on batches of tensors use a GPU."""
    uses_tensors = isinstance(get_method(name), Annealer | ModelMethod)
    return {"method": name, "hardware": hardware(pick_device(options.device if uses_tensors else "cpu"))}


def methods_for(problem: str, names: Iterable[str]) -> list[str]:
    """The methods that can solve a problem."""
    return [name for name in names if get_method(name).solves(get_problem(problem))]


def heeds_time_limit(name: str) -> bool:
    """Whether a time limit makes a difference to a method."""
    return get_method(name).time_limit != "ignored"


def summary(
    problem: Problem, graphs: Sequence[Graph], references: Sequence[Reference | None], runs: Sequence[Measurement]
) -> dict[str, Any]:
    """Means over graphs, samples and runs, and gaps where references are known. A run is one training seed.

    Errors are standard errors over the runs if there are several, else over the graphs; `error_over` says which.
    """
    samples = np.stack([run.energies for run in runs])  # [runs, G, S]
    value = _mean_over(problem.sign * samples.mean(axis=2))
    record: dict[str, Any] = {
        "graphs": len(graphs),
        "mean": value.mean,
        "error": value.standard_error,
        "error_over": "seeds" if len(runs) > 1 else "graphs",
        "seeds": len(runs),
        "samples": samples.shape[2],
        "best": float(problem.sign * samples.min(axis=2).mean()),
        "seconds_per_graph": float(np.mean([run.seconds_per_graph for run in runs])),
    }
    if problem.name == "max-cut":
        record["cut_over_edges"] = value.mean / float(np.mean([graph.num_edges for graph in graphs]))
    known = {place: reference for place, reference in enumerate(references) if reference is not None}
    if known:
        optima = problem.sign * np.array([reference.objective for reference in known.values()])
        samples = samples[:, list(known)]
        gap = _mean_over(np.stack([metrics.relative_error(run, optima) for run in samples]))
        record |= {
            "gap": gap.mean,
            "gap_error": gap.standard_error,
            "gap_of_best": float(np.mean([metrics.best_relative_error(run, optima) for run in samples])),
            "referenced": len(known),
            "proven": sum(reference.proven for reference in known.values()),
        }
    return record


def _mean_over(values: NDArray[np.float64]) -> metrics.Mean:
    """Mean of [runs, G] with the error over the runs or, if there is only one, over its graphs."""
    return metrics.mean_with_error(values.mean(axis=1) if len(values) > 1 else values[0])
