"""One measurement: a trained model or another method on graphs, with the time the paper counts (App. C.7).

Models are measured without refinement, as the paper's are. Legend: G graphs, S samples.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffuco.evaluation import metrics
from diffuco.evaluation.reference_store import Reference
from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware
from diffuco.graphs.batch import make_batch
from diffuco.graphs.batch.by_size import batches_by_size, rows_per_batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import draw_solutions
from diffuco.inference.solver import Solver
from diffuco.methods import get_method, solve_with
from diffuco.methods.annealer import BatchedMethod
from diffuco.problems import Problem, get_problem


@dataclass(frozen=True)
class Measurement:
    """What came out, and the seconds for one sample of all graphs."""

    energies: NDArray[np.float64]
    """[G, S]"""
    seconds: float


def measure_model(
    solver: Solver,
    graphs: Sequence[Graph],
    *,
    samples: int = 8,
    step_factor: int = 3,
    token_size: int = 1,
    seed: int = 0,
) -> Measurement:
    """Sample and decode (token size 0: do not decode) one sample of all graphs after the other.

    The time is that of sampling and decoding, without loading, as a mean over the samples: the paper takes different
    samples to be computed in parallel.
    """
    groups = list(batches_by_size(graphs, 1, rows_per_batch(solver.device)))
    batches = [make_batch([graphs[position] for position in group], solver.device) for group in groups]
    energies = np.empty((len(graphs), samples))
    seconds = 0.0
    # What is compiled or recorded for a shape at its first two calls is not part of solving.
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
                seeds=seeds,
            )
            if sample >= 0:
                energies[group, sample] = solver.problem.energy(batch, states)[:, 0].double().cpu().numpy()
                seconds += spent["sample"] + spent["decode"]
    return Measurement(energies, seconds / samples)


def measure_method(
    name: str,
    problem: str,
    graphs: Sequence[Graph],
    *,
    device: str,
    seed: int = 0,
    limit_s: float | None = None,
) -> Measurement:
    """Solve the graphs with a method, whose answer is one sample, whatever it tried on the way."""
    # What is compiled or loaded at the first call is not part of solving.
    solve_with(name, problem, graphs[:1], seed=seed, device=device, time_limit_s=limit_s and min(limit_s, 1.0))
    started = time.perf_counter()
    solutions = solve_with(name, problem, graphs, seed=seed, device=device, time_limit_s=limit_s)
    seconds = time.perf_counter() - started
    return Measurement(_sign(get_problem(problem)) * np.array([[found.objective] for found in solutions]), seconds)


def about_models(solvers: Sequence[Solver]) -> dict[str, Any]:
    """Which weights were measured and how long they were trained."""
    checkpoints = [solver.checkpoint for solver in solvers]
    return {
        "models": [checkpoint.name for checkpoint in checkpoints],
        "weights": [checkpoint.digest for checkpoint in checkpoints],
        "training_minutes": [checkpoint.card.get("minutes") for checkpoint in checkpoints],
    }


def method_hardware(name: str, device: str) -> str:
    """What a method runs on: only those that work on batches of tensors use a GPU."""
    uses_tensors = isinstance(get_method(name), BatchedMethod)
    return hardware(pick_device(device if uses_tensors else "cpu"))


def summary(
    problem: Problem, graphs: Sequence[Graph], references: Sequence[Reference | None], runs: Sequence[Measurement]
) -> dict[str, Any]:
    """Means over graphs, samples and runs, which differ by the training seed, and gaps where references are known.

    Errors are standard errors over the runs where there are several, else over the graphs; `error_over` says which.
    """
    sign = _sign(problem)
    samples = np.stack([run.energies for run in runs])  # [runs, G, S]
    of_graphs = sign * samples.mean(axis=2)  # [runs, G]
    value = _mean_over(of_graphs)
    record: dict[str, Any] = {
        "graphs": len(graphs),
        "mean": value.mean,
        "error": value.standard_error,
        "error_over": "seeds" if len(runs) > 1 else "graphs",
        "seeds": len(runs),
        "samples": samples.shape[2],
        "best": float(sign * samples.min(axis=2).mean()),
        "seconds_per_graph": float(np.mean([run.seconds for run in runs])) / len(graphs),
    }
    if problem.name == "max-cut":
        record["cut_over_edges"] = value.mean / float(np.mean([graph.num_edges for graph in graphs]))
    known = [place for place, reference in enumerate(references) if reference is not None]
    if known:
        optima = sign * np.array([reference.objective for reference in references if reference is not None])
        gap = _mean_over(np.stack([metrics.relative_error(run[known], optima) for run in samples]))
        record |= {
            "gap": gap.mean,
            "gap_error": gap.standard_error,
            "gap_of_best": float(np.mean([metrics.best_relative_error(run[known], optima) for run in samples])),
            "referenced": len(known),
            "proven": sum(reference.proven for reference in references if reference is not None),
        }
    return record


def _mean_over(values: NDArray[np.float64]) -> metrics.Mean:
    """Mean of [runs, G] with the error over runs or, where there is one, over graphs."""
    return metrics.mean_with_error(values.mean(axis=1) if len(values) > 1 else values[0])


def _sign(problem: Problem) -> float:
    """From objectives to energies of feasible solutions and back."""
    return -1.0 if problem.sense == "max" else 1.0
