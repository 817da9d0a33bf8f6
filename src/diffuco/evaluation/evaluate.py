"""How good a solver is on a set of graphs: the mean of the samples, the best of them, and the gap to a reference.

Samples are scored by their energy with the problem's sign, which is the objective of a feasible solution and is worse
than it where constraints are violated, so that infeasible samples can only lose (App. C.1).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from diffuco.evaluation import metrics
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem
from diffuco.foundation.provenance import hardware, source_commit
from diffuco.solution.result import Solution
from diffuco.inference.solver import Decode, Solver
from diffuco.foundation.wording import counted

NUM_WARM_UP = 16
"""Graphs solved on a GPU before the clock starts, as the first call of a kernel compiles it."""


def evaluate(
    solver: Solver,
    graphs: Sequence[Graph],
    *,
    samples: int = 8,
    step_factor: int = 3,
    decode: Decode = "ce",
    token_size: int = 8,
    refine: int | None = 0,
    seed: int = 0,
    references: Sequence[float] | None = None,
    tightness: Sequence[float] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Solve the graphs and summarise; `references` are their optimal or best known objectives.

    Gaps are positive where the reference is better, negative where it was beaten, which a proven one cannot be.

    Unlike in `Solver.solve`, samples are not refined unless told so: it is the model that is measured. With the
    `tightness` of every graph, the ratio of the best sample to the reference is told for each value of it.
    """
    settings: dict[str, Any] = {"samples": samples, "step_factor": step_factor, "refine": refine, "seed": seed}
    settings |= {"decode": decode, "token_size": token_size}
    if solver.device.type == "cuda":
        solver.solve(graphs[:NUM_WARM_UP], **settings)
    with Progress(console=Console(stderr=True), disable=not progress, transient=True) as bar:
        task = bar.add_task("solving", total=len(graphs))
        solutions = solver.solve(graphs, **settings, on_solved=lambda count: bar.update(task, completed=count))
    about = {
        "model": solver.checkpoint.name,
        "weights": solver.checkpoint.digest,
        "samples": samples,
        "steps": step_factor * solver.checkpoint.model.config.num_steps,
        "step_factor": step_factor,
        "decode": f"ce-st{token_size}" if decode == "ce-st" else decode,
        "sweeps": max((solution.sweeps for solution in solutions), default=0),
        "seed": seed,
    }
    energies = np.array([solution.energies for solution in solutions])
    return about | summarise(solver.problem, solutions, energies, solver.device, references, tightness)


def summarise(
    problem: Problem,
    solutions: Sequence[Solution],
    energies: NDArray[np.float64],
    device: torch.device,
    references: Sequence[float] | None = None,
    tightness: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Means, time and gaps of solutions and the energies they are scored by, [graphs, samples]."""
    sign = -1.0 if problem.sense == "max" else 1.0
    means = sign * energies.mean(axis=1)
    best = sign * metrics.best_of(energies)
    record: dict[str, Any] = {
        "problem": problem.name,
        "graphs": len(solutions),
        "mean_edges": float(np.mean([solution.graph.num_edges for solution in solutions])),
        "mean": float(means.mean()),
        "mean_standard_error": _standard_error(means),
        "best": float(best.mean()),
        "feasible": sum(solution.feasible for solution in solutions),
        "seconds": {stage: sum(solution.seconds[stage] for solution in solutions) for stage in solutions[0].seconds},
        "hardware": hardware(device),
        "torch": torch.__version__,
        "commit": source_commit(),
    }
    if references is not None:
        optima = sign * np.asarray(references, dtype=np.float64)
        gaps, best_gaps = metrics.relative_error(energies, optima), metrics.best_relative_error(energies, optima)
        record["reference"] = {
            "mean": float(np.mean(references)),
            "gap": float(gaps.mean()),
            "gap_standard_error": _standard_error(gaps),
            "gap_of_best": float(best_gaps.mean()),
            "gap_of_means": float((sign * means.mean() - optima.mean()) / abs(optima.mean())),
        }
        if tightness is not None:
            ratios = metrics.mean_by(metrics.best_approximation_ratio(energies, optima), tightness)
            record["reference"]["best_ratios"] = [
                {"tightness": p, "mean": ratio.mean, "standard_error": ratio.standard_error, "graphs": ratio.num_values}
                for p, ratio in ratios.items()
            ]
    return record


def table(record: dict[str, Any]) -> Table:
    """The record as people read it."""
    solver, scored = (record["model"], "samples") if "model" in record else (record["method"], "answers")
    title = f"{record['problem']}: {solver}, {counted(record['graphs'], 'graph')}, {record['hardware']}"
    shown = Table(title=title, show_header=False)
    rows = {}
    if "model" in record:
        rows["samples x steps, decoding"] = f"{record['samples']} x {record['steps']}, {record['decode']}"
        if record["sweeps"]:
            rows["sweeps of refinement"] = f"{record['sweeps']}"
    elif record["time_limit_s"] is not None:
        rows["time limit, seconds a graph"] = f"{record['time_limit_s']:g}"
    rows[f"mean of the {scored}"] = f"{record['mean']:.3f} +- {record['mean_standard_error']:.3f}"
    if "model" in record:
        rows[f"mean of the best of {record['samples']}"] = f"{record['best']:.3f}"
    rows |= {
        "feasible answers": f"{record['feasible']} of {record['graphs']}",
        "seconds to sample / decode": f"{record['seconds']['sample']:.2f} / {record['seconds']['decode']:.2f}",
        **({"seconds to refine": f"{record['seconds']['refine']:.2f}"} if record.get("sweeps") else {}),
    }
    if record["problem"] == "max-cut":
        rows["mean cut over mean edges"] = f"{record['mean'] / record['mean_edges']:.4f}"
    reference = record.get("reference")
    if reference:
        rows["mean of the references"] = f"{reference['mean']:.3f}"
        if "proven" in reference:
            rows["references proven optimal"] = f"{reference['proven']} of {record['graphs']}"
        rows[f"gap, mean of the {scored}"] = f"{reference['gap']:.2%} +- {reference['gap_standard_error']:.2%}"
        if "model" in record:
            rows["gap, best of the samples"] = f"{reference['gap_of_best']:.2%}"
        rows["gap between the two means"] = f"{reference['gap_of_means']:.2%}"
        for ratio in reference.get("best_ratios", ()):
            name = f"best sample over reference, p = {ratio['tightness']:.3g}"
            rows[name] = f"{ratio['mean']:.4f} +- {ratio['standard_error']:.4f}"
        if "n_query" in reference:
            rows["graphs until training pays off, if as good"] = f"{reference['n_query']:g}"
    for name, value in rows.items():
        shown.add_row(name, value)
    return shown


def _standard_error(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
