"""One large graph on a GPU: chains that start from samples of a model beside chains that start from coin flips.

Which of them finds more depends on the graph and on the time, and no rule that we measured holds for all graphs. Large
graphs need few chains, and a GPU anneals a few more in almost the same time, so both kinds run side by side. One pass
of each model on the graph itself tells which model draws the samples.

Legend: N rows, S states.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from diffuco.foundation.progress import report
from diffuco.graphs.batch import Batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import unit_batch
from diffuco.inference.memory import fits
from diffuco.inference.refinement import schedule_for, schedule_for_samples
from diffuco.methods.anneal import FlipAnnealing, anneal_once, anneal_until, flip_coins, num_chains
from diffuco.methods.annealer import decoded
from diffuco.methods.base import Deadline, Settings
from diffuco.methods.model import AnnealedSamples, solver_with
from diffuco.pretrained import full_models
from diffuco.problems import Problem
from diffuco.solution.result import Solution

SHARE_FOR_MODELS = 0.2
"""Of the time limit, in which one model after the other is tried."""


def contest(
    problem: Problem, graph: Graph, settings: Settings, is_settled: Callable[[], bool] = lambda: False
) -> Solution:
    """The best of both kinds of chains, without annealing if `is_settled` says after sampling that there is no need."""
    batch = unit_batch(problem, [graph], settings.device)
    generator = torch.Generator(settings.device).manual_seed(settings.seed)
    seeds = np.random.default_rng(settings.seed)
    model, clock = best_model(problem, graph, batch, seeds, settings)
    if model is None:
        (solution,) = FlipAnnealing().solve(problem, [graph], settings)
        return replace(solution, reason="the memory is too small for samples of a model")
    chains = max(2, num_chains(problem, batch, clock))
    samples = model.draw(problem, batch, chains // 2, clock, seeds)
    schedule = schedule_for(problem, batch.largest)
    cooler = schedule_for_samples(problem, batch.largest).temperature / schedule.temperature
    heat = torch.tensor([cooler] * (chains // 2) + [1.0] * (chains - chains // 2), device=settings.device)

    def start() -> Tensor:
        return torch.cat([samples, flip_coins(batch, chains - chains // 2, generator)], dim=1)

    if clock.limit_s is None:
        annealed = anneal_once(problem, batch, start(), schedule, generator, heat)
    elif is_settled():
        annealed = samples
    else:
        annealed = anneal_until(clock, problem, batch, start, schedule.temperature, generator, heat)
    best = int(problem.energy(batch, annealed)[0].argmin())
    finders = (model.found_by, FlipAnnealing.name)
    first, second = finders if best < chains // 2 else finders[::-1]
    told = {"found_by": first, "reason": f"ahead of {second} on this graph", "seed": settings.seed}
    (solution,) = decoded(problem, [graph], batch, annealed, clock, **told)
    return solution


def best_model(
    problem: Problem, graph: Graph, batch: Batch, seeds: np.random.Generator, settings: Settings
) -> tuple[AnnealedSamples | None, Deadline]:
    """The model with the best sample of one pass, None if none fits, and the clock that runs since the first pass."""
    limit_s = settings.time_limit_s
    clock = Deadline.after(limit_s)
    tried: list[tuple[float, AnnealedSamples]] = []
    for name in full_models(problem, graph):
        if not tried or limit_s is None or clock.elapsed_s < SHARE_FOR_MODELS * limit_s:
            report(f"trying {name}")
            model = AnnealedSamples(solver_with(problem, name, settings.device), "")
            if not fits(model.solver.requirement(graph, samples=1), settings.device):
                continue
            tried.append((float(problem.energy(batch, model.one_pass(problem, batch, seeds)).min()), model))
            if len(tried) == 1:
                clock = Deadline.after(limit_s)  # compiling, which the first pass may have begun with, is no search
    return min(tried, key=lambda some: some[0], default=(0.0, None))[1], clock
