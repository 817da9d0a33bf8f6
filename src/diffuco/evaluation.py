"""How good a solver is on a set of graphs: the mean of the samples, the best of them, and the gap to a reference.

Samples are scored by their energy with the problem's sign, which is the objective of a feasible solution and is worse
than it where constraints are violated, so that infeasible samples can only lose (App. C.1).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from diffuco import metrics
from diffuco.graphs.graph import Graph
from diffuco.provenance import hardware, source_commit
from diffuco.solver import Decode, Solver


def evaluate(
    solver: Solver,
    graphs: Sequence[Graph],
    *,
    samples: int = 8,
    step_factor: int = 3,
    decode: Decode = "ce",
    token_size: int = 8,
    seed: int = 0,
    references: Sequence[float] | None = None,
    tightness: Sequence[float] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Solve the graphs and summarise; `references` are their optimal or best known objectives.

    With the `tightness` of every graph, the ratio of the best sample to the reference is told for each value of it.
    """
    with Progress(console=Console(stderr=True), disable=not progress, transient=True) as bar:
        task = bar.add_task("solving", total=len(graphs))
        solutions = solver.solve(
            graphs,
            samples=samples,
            step_factor=step_factor,
            decode=decode,
            token_size=token_size,
            seed=seed,
            on_solved=lambda count: bar.update(task, completed=count),
        )
    sign = -1.0 if solver.problem.sense == "max" else 1.0
    energies = np.array([solution.energies for solution in solutions])  # [graphs, samples]
    means = sign * energies.mean(axis=1)
    best = sign * metrics.best_of(energies)
    record: dict[str, Any] = {
        "problem": solver.problem.name,
        "model": solver.checkpoint.name,
        "graphs": len(graphs),
        "mean_edges": float(np.mean([graph.num_edges for graph in graphs])),
        "samples": samples,
        "steps": step_factor * solver.checkpoint.model.config.num_steps,
        "step_factor": step_factor,
        "decode": f"ce-st{token_size}" if decode == "ce-st" else decode,
        "seed": seed,
        "mean": float(means.mean()),
        "mean_standard_error": _standard_error(means),
        "best": float(best.mean()),
        "feasible": sum(solution.feasible for solution in solutions),
        "seconds": {
            stage: sum(solution.seconds[stage] for solution in solutions) for stage in ("load", "sample", "decode")
        },
        "hardware": hardware(solver.device),
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
            "gap_of_means": float(abs(sign * means.mean() - optima.mean()) / abs(optima.mean())),
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
    title = f"{record['problem']}: {record['model']}, {record['graphs']} graphs, {record['hardware']}"
    shown = Table(title=title, show_header=False)
    rows = {
        "samples x steps, decoding": f"{record['samples']} x {record['steps']}, {record['decode']}",
        "mean of the samples": f"{record['mean']:.3f} +- {record['mean_standard_error']:.3f}",
        f"mean of the best of {record['samples']}": f"{record['best']:.3f}",
        "feasible answers": f"{record['feasible']} of {record['graphs']}",
        "seconds to sample / decode": f"{record['seconds']['sample']:.2f} / {record['seconds']['decode']:.2f}",
    }
    if record["problem"] == "max-cut":
        rows["mean cut over mean edges"] = f"{record['mean'] / record['mean_edges']:.4f}"
    reference = record.get("reference")
    if reference:
        rows["mean of the references"] = f"{reference['mean']:.3f}"
        rows["gap, mean of the samples"] = f"{reference['gap']:.2%} +- {reference['gap_standard_error']:.2%}"
        rows["gap, best of the samples"] = f"{reference['gap_of_best']:.2%}"
        rows["gap between the two means"] = f"{reference['gap_of_means']:.2%}"
        for ratio in reference.get("best_ratios", ()):
            name = f"best sample over reference, p = {ratio['tightness']:.3g}"
            rows[name] = f"{ratio['mean']:.4f} +- {ratio['standard_error']:.4f}"
        if "n_query" in reference:
            rows["graphs until training pays off"] = f"{reference['n_query']:g}"
    for name, value in rows.items():
        shown.add_row(name, value)
    return shown


def _standard_error(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
