"""One large graph on a GPU: chains that start from samples of a model, at temperatures from cold to hot.

Which temperature finds more depends on the graph and on the time, and no rule that we measured holds for all graphs. A
cold chain improves its sample; the hottest forgets it and anneals as from coin flips. Large graphs need few chains, and
a GPU anneals a few more in almost the same time, so all run side by side. One pass of each model on the graph itself
tells which model draws the samples.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from diffuco.foundation.progress import report
from diffuco.graphs.batch import Batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import unit_batch
from diffuco.inference.memory import fits
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.annealer import decoded
from diffuco.methods.base import Deadline, Settings
from diffuco.methods.model import AnnealedSamples, Pass, solver_with
from diffuco.pretrained import full_models
from diffuco.problems import Problem
from diffuco.solution.result import Solution

SHARE_FOR_MODELS = 0.1
"""Of the time limit, in which one model after the other is tried."""
_used: set[tuple[str, torch.device]] = set()
"""Models that have drawn from a large graph before, and where: their kernels are compiled."""


def contest(
    problem: Problem, graph: Graph, settings: Settings, is_settled: Callable[[], bool] = lambda: False
) -> Solution:
    """The best of all chains, or of the samples alone if `is_settled` says after sampling that there is no need."""
    clock = Deadline.after(settings.time_limit_s)
    batch = unit_batch(problem, [graph], settings.device)
    generator = torch.Generator(settings.device).manual_seed(settings.seed)
    seeds = np.random.default_rng(settings.seed)
    tried, clock = try_models(problem, graph, batch, seeds, settings, clock)
    if not tried:
        (solution,) = FlipAnnealing().solve(problem, [graph], settings)
        return replace(solution, reason="the memory is too small for samples of a model")
    model, first = min(tried, key=lambda some: float(problem.energy(batch, some[1].sample)))
    states = model.draw(problem, batch, clock, seeds, first)
    if clock.limit_s is None or not is_settled():
        states = model.anneal_from(problem, batch, states, generator, clock)
    others = [other.found_by for other, _ in tried if other is not model]
    reason = (
        f"its samples are ahead of those of {' and '.join(others)} on this graph"
        if others
        else "its samples suit the graph"
    )
    told = {"found_by": model.found_by, "reason": f"annealed from cold to hot; {reason}", "seed": settings.seed}
    (solution,) = decoded(problem, [graph], batch, states, clock, **told)
    return solution


def try_models(
    problem: Problem, graph: Graph, batch: Batch, seeds: np.random.Generator, settings: Settings, clock: Deadline
) -> tuple[list[tuple[AnnealedSamples, Pass]], Deadline]:
    """One pass of each model that fits and for which there is time, and the clock, without what compiling took."""
    limit_s = settings.time_limit_s
    tried: list[tuple[AnnealedSamples, Pass]] = []
    for name in full_models(problem, graph):
        if not tried or limit_s is None or clock.elapsed_s < SHARE_FOR_MODELS * limit_s:
            report(f"trying {name}")
            model = AnnealedSamples(solver_with(problem, name, settings.device), "")
            if not fits(model.solver.requirement(graph, samples=1), settings.device):
                continue
            if limit_s is not None and (name, settings.device) not in _used:
                model.one_pass(problem, batch, np.random.default_rng(settings.seed))
                _used.add((name, settings.device))
                clock = Deadline.after(limit_s)
            tried.append((model, model.one_pass(problem, batch, seeds)))
    return tried, clock
