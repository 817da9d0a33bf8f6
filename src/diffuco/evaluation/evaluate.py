"""How good a model or another method is on a set of graphs: means, the best samples, and the gap to a reference.

Samples are scored by their energy with the problem's sign. This is the objective of a feasible solution. Violated
constraints make it worse, so that infeasible samples can only lose (App. C.1).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from diffuco.evaluation import metrics
from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import InputError
from diffuco.foundation.provenance import hardware, source_commit
from diffuco.foundation.values import check_seed
from diffuco.inference.answers import Decode, SampleOptions
from diffuco.inference.solver import Model
from diffuco.methods import Method, ModelMethod, Settings, check_method, get_method
from diffuco.methods.annealer import Annealer
from diffuco.methods.model import solver_with
from diffuco.model.checkpoint import Checkpoint
from diffuco.pretrained import load_model, problem_of
from diffuco.problems import Problem, check_weights, get_problem, graph_for
from diffuco.solution.result import Solution

NUM_WARM_UP = 16
"""Graphs solved on a GPU before the clock starts, because the first call of a kernel compiles it."""


@dataclass(frozen=True)
class Gap:
    """How far answers are from the optimal or best known objectives."""

    mean: float
    """Mean of the references."""
    gap: float
    """Mean relative error of the samples, or of a method's answers."""
    gap_standard_error: float
    gap_of_best: float
    """The same for the best sample of each graph."""
    gap_of_means: float
    """Relative error of the mean over all graphs."""
    parts: list[dict[str, Any]] | None = None
    """The same by parts of the graphs, such as families, with the ratio of the best sample to the reference (AR*)."""


@dataclass(frozen=True)
class Measurement:
    """What was measured, how and on what: everything that a result must state."""

    solver: dict[str, Any]
    """The model and its settings, or the method and its time limit."""
    problem: str
    graphs: int
    mean_edges: float
    mean: float
    """Mean objective over samples and graphs."""
    mean_standard_error: float
    best: float
    """Mean over graphs of the best sample."""
    feasible: int
    """Graphs with a feasible answer."""
    seconds: dict[str, float]
    """Time of all graphs together, by stage."""
    hardware: str
    reference: Gap | None = None
    torch: str = torch.__version__
    commit: str = field(default_factory=source_commit)

    def to_dict(self) -> dict[str, Any]:
        """The record that `diffuco evaluate --output` writes."""
        record = self.solver | {name: value for name, value in asdict(self).items() if name != "solver"}
        reference = record.pop("reference")
        if reference is None:
            return record
        return record | {"reference": {name: value for name, value in reference.items() if value is not None}}


def evaluate(
    graphs: Sequence[object],
    problem: str | Problem | None = None,
    *,
    model: Model | None = None,
    method: str | Method | None = None,
    time_limit_s: float | None = None,
    samples: int = 8,
    step_factor: int = 3,
    decode: Decode = "ce",
    token_size: int = 8,
    rounds: int = 0,
    refine: int | None = 0,
    seed: int = 0,
    device: str = "auto",
    references: Sequence[float] | None = None,
    parts: Sequence[str] | None = None,
    on_solved: Callable[[int], None] | None = None,
) -> Measurement:
    """Solve graphs with a model or a method and measure it; `references` are their optimal or best known objectives.

    A graph is anything that `solve` takes. A gap is positive if the reference is better and negative if the reference
    was beaten; a proven one cannot be.
    Unlike in `solve`, samples are not refined unless `refine` says so, because the model itself is measured. The answer
    of a method counts as one sample, whatever it tried on the way. `parts` names the part that each graph belongs to,
    such as its family; gaps are then reported by part as well.

    >>> path = [(0, 1), (1, 2)]
    >>> measured = evaluate([path], "mis", method="greedy", references=[2])
    >>> measured.mean, measured.reference.gap
    (2.0, 0.0)
    """
    place, seed = pick_device(device), check_seed(seed)
    if (model is None) == (method is None):
        raise InputError("nothing to evaluate, or two things; give either a model or a method")
    if not graphs:
        raise InputError("no graphs to evaluate on; give one or more")
    if references is not None and len(references) != len(graphs):
        raise InputError(f"{len(references)} references for {len(graphs)} graphs; give one for each")
    if method is not None:
        chosen, known, about = _of_method(method, problem, time_limit_s, seed)
    else:
        assert model is not None
        if time_limit_s is not None:
            raise InputError("samples of a model are measured without a time limit; use the method diffuco to set one")
        options = SampleOptions(samples, step_factor, decode, token_size, rounds, refine)
        chosen, known, about = _of_model(model, problem, options, seed, place)
    check_method(chosen, known, time_limit_s)
    given = [graph_for(known, graph) for graph in graphs]
    check_weights(known, given)
    if place.type == "cuda" and isinstance(chosen, Annealer | ModelMethod):
        chosen.solve(known, given[:NUM_WARM_UP], Settings(seed, place, time_limit_s))
    solutions = chosen.solve(known, given, Settings(seed, place, time_limit_s, on_solved))
    if model is not None:
        about["sweeps"] = max((solution.sweeps for solution in solutions), default=0)
        energies = np.array([solution.energies for solution in solutions])
    else:
        energies = known.sign * np.array([[solution.objective] for solution in solutions])
    return measure(solutions, energies, about, device=place, references=references, parts=parts)


def _of_method(
    method: str | Method, problem: str | Problem | None, time_limit_s: float | None, seed: int
) -> tuple[Method, Problem, dict[str, Any]]:
    """The method, the problem and what the record says of the method."""
    if problem is None:
        raise InputError("a method solves several problems; name the one to evaluate it on")
    known, chosen = get_problem(problem), get_method(method)
    return chosen, known, {"method": chosen.name, "time_limit_s": time_limit_s, "seed": seed}


def _of_model(
    model: Model, problem: str | Problem | None, options: SampleOptions, seed: int, device: torch.device
) -> tuple[Method, Problem, dict[str, Any]]:
    """The model as a method, the problem, by default its own, and what the record says of the model."""
    loaded = model if isinstance(model, Checkpoint) else load_model(model)
    known = problem_of(loaded) if problem is None else get_problem(problem)
    solver = solver_with(known, loaded, device)
    about = {
        "model": solver.checkpoint.name,
        "weights": solver.checkpoint.digest,
        "samples": options.samples,
        "steps": options.step_factor * solver.sampler.num_steps,
        "step_factor": options.step_factor,
        "rounds": options.rounds,
        "evaluations": solver.sampler.num_evaluations(options.step_factor, options.rounds),
        "decode": f"ce-st{options.token_size}" if options.decode == "ce-st" else options.decode,
        "seed": seed,
    }
    return ModelMethod(loaded, options), known, about


def measure(
    solutions: Sequence[Solution],
    energies: NDArray[np.float64],
    about: dict[str, Any],
    *,
    device: torch.device,
    references: Sequence[float] | None = None,
    parts: Sequence[str] | None = None,
) -> Measurement:
    """Means, time and gaps of solutions. `energies` are their scores, [graphs, samples]."""
    problem = solutions[0].problem
    means = metrics.mean_with_error(problem.sign * energies.mean(axis=1))
    return Measurement(
        solver=about,
        problem=problem.name,
        graphs=len(solutions),
        mean_edges=float(np.mean([solution.graph.num_edges for solution in solutions])),
        mean=means.mean,
        mean_standard_error=means.standard_error,
        best=float((problem.sign * metrics.best_of(energies)).mean()),
        feasible=sum(solution.feasible for solution in solutions),
        seconds={stage: sum(solution.seconds[stage] for solution in solutions) for stage in solutions[0].seconds},
        hardware=hardware(device),
        reference=None if references is None else _gap(problem, energies, references, parts),
    )


def _gap(
    problem: Problem,
    energies: NDArray[np.float64],
    references: Sequence[float],
    parts: Sequence[str] | None,
) -> Gap:
    optima = problem.sign * np.asarray(references, dtype=np.float64)
    errors, best_errors = metrics.relative_error(energies, optima), metrics.best_relative_error(energies, optima)
    gap = metrics.mean_with_error(errors)
    by_part = None
    if parts is not None:
        best, ratios = (
            metrics.mean_by(values, parts)
            for values in (best_errors, metrics.best_approximation_ratio(energies, optima))
        )
        by_part = [
            {"part": part, "graphs": found.num_values, "gap": found.mean, "gap_standard_error": found.standard_error}
            | {"gap_of_best": best[part].mean}
            | {"best_ratio": ratios[part].mean, "best_ratio_standard_error": ratios[part].standard_error}
            for part, found in metrics.mean_by(errors, parts).items()
        ]
    return Gap(
        mean=float(np.mean(references)),
        gap=gap.mean,
        gap_standard_error=gap.standard_error,
        gap_of_best=float(best_errors.mean()),
        gap_of_means=float(metrics.relative_error([[energies.mean()]], [optima.mean()])[0]),
        parts=by_part,
    )
