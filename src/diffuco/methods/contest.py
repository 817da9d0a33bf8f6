"""One large graph on a GPU: searches are tried on the graph itself, and the one that is ahead goes on.

Which search finds most depends on the graph, on the time and on the hardware, and no rule that we measured holds for
all of them. So each gets a tenth of the time, and the best gets what is left. What the others found is kept if it stays
the best. Of the models, one pass of each tells which one takes part. Annealing from random states gains more from more
time than annealing from samples, which therefore has to be ahead by a little more.

Legend: N rows, S states.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import torch
from torch import Tensor

from diffuco.graphs.graph import Graph
from diffuco.inference.answers import unit_batch
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.annealer import Annealer, decoded
from diffuco.methods.base import Deadline, Settings
from diffuco.methods.bifurcation import Bifurcation
from diffuco.methods.model import AnnealedSamples, solver_with
from diffuco.pretrained import full_models
from diffuco.problems import Problem
from diffuco.solution.result import Solution

TRIAL_SHARE = 0.1
"""Of the time limit, for the trial of each search, and for the passes of all models together."""
HEAD_START = 0.001
"""Share of the energy by which samples have to be ahead in their trial."""


class Found(NamedTuple):
    """What a search found."""

    energy: float
    search: Annealer
    states: Tensor
    """[N, S]"""

    @property
    def promise(self) -> float:
        """What tells who goes on; the lowest does."""
        return self.energy + HEAD_START * abs(self.energy) * isinstance(self.search, AnnealedSamples)


def contest(
    problem: Problem, graph: Graph, settings: Settings, is_settled: Callable[[], bool] = lambda: False
) -> Solution:
    """The best of annealing, bifurcation and annealed samples; `is_settled` can make the search end after its trials.

    Without a time limit, each of them takes the sweeps that it takes alone.
    """
    limit_s = settings.time_limit_s
    batch = unit_batch(problem, [graph], settings.device)
    generator = torch.Generator(settings.device).manual_seed(settings.seed)
    found: list[Found] = []

    def run(search: Annealer, limit_s: float | None) -> None:
        keep(search, search.anneal(problem, batch, generator, Deadline.after(limit_s)))

    def keep(search: Annealer, states: Tensor) -> None:
        found.append(Found(float(problem.energy(batch, states).min()), search, states))

    both: tuple[Annealer, ...] = (FlipAnnealing(), Bifurcation())
    searches = [search for search in both if search.solves(problem)]
    trial_s = None if limit_s is None else TRIAL_SHARE * limit_s
    clock = Deadline.after(limit_s)
    for name in full_models(problem, graph):
        if trial_s is None or clock.elapsed_s < trial_s:
            model = AnnealedSamples(solver_with(problem, name, settings.device), "")
            keep(model, model.one_pass(problem, batch, generator))
            if len(found) == 1:
                clock = Deadline.after(limit_s)  # compiling, which the first pass may have begun with, is no search
    if found:
        searches.append(best_of(found).search)
    for search in searches:
        if not is_settled() and (limit_s is None or clock.remaining_s > limit_s / 2):
            run(search, trial_s)
    if limit_s is not None and not is_settled():
        run(min(found, key=attrgetter("promise")).search, clock.remaining_s)
    best = best_of(found)
    others = " and ".join(search.found_by for search in searches if search is not best.search)
    told = {"found_by": best.search.found_by, "reason": f"ahead of {others} on this graph", "seed": settings.seed}
    (solution,) = decoded(problem, [graph], batch, best.states, clock, **told)
    return solution


def best_of(found: list[Found]) -> Found:
    """What has the lowest energy; of equals, the first."""
    return min(found, key=attrgetter("energy"))
