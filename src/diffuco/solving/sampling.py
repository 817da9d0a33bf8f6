"""`diffuco.sample`: weighted draws of a model from the Boltzmann distribution of a graph's energy."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from diffuco.diffusion.path_weights import weighted_paths
from diffuco.foundation.devices import now, pick_device
from diffuco.foundation.errors import InputError
from diffuco.foundation.values import check_seed
from diffuco.graphs.by_size import rows_per_batch
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import next_seed, unit_batch
from diffuco.inference.heat_bath import sweep
from diffuco.inference.memory import check_fits
from diffuco.inference.solver import Model, Solver, noise_of
from diffuco.methods import ModelMethod
from diffuco.problems import Problem, check_weights, get_problem, graph_for, weight_unit
from diffuco.solution.samples import BoltzmannSamples


def sample(
    graph: object,
    problem: str | Problem,
    *,
    temperature: float,
    model: Model | None = None,
    samples: int = 1000,
    seed: int = 0,
    device: str = "auto",
) -> BoltzmannSamples:
    """Draw from the Boltzmann distribution exp(-H / temperature) / Z of a problem's energy H on a graph.

    The model draws, and the probability of each path corrects what it does wrong: every state comes with a weight. A
    graph is anything that `solve` takes. The temperature is in the unit of the energy, so in that of the weights.
    Without `model`, it is the shipped one whose training graphs are closest.

    >>> found = sample([(0, 1), (1, 2)], "mis", temperature=0.1, samples=500, device="cpu")
    >>> round(found.mean_energy.value, 2), found.effective_sample_size > 30
    (-2.0, True)
    """
    if not (temperature > 0 and math.isfinite(temperature)):
        raise InputError(f"the temperature is {temperature:g}; give a number above 0")
    if samples < 2:
        raise InputError(f"samples is {samples}; give 2 or more, because one tells nothing of its error")
    known, place, seed = get_problem(problem), pick_device(device), check_seed(seed)
    source = graph_for(known, graph)
    check_weights(known, [source])
    ((solver, reason, _),) = ModelMethod(model).plan(known, [source], place)
    started = now(place)
    states, log_ratios, energies, changes = _draw(solver, source, temperature, samples, seed)
    with np.errstate(over="ignore"):
        log_weights = log_ratios - energies / temperature
    if not np.isfinite(log_weights).all():
        raise InputError(f"the temperature is {temperature:g}, too small for energies like {energies[0]:g}; raise it")
    return BoltzmannSamples(
        problem=known,
        graph=source,
        temperature=temperature,
        states=states,
        energies=energies,
        log_weights=log_weights,
        gibbs_changes=changes,
        found_by=solver.checkpoint.name,
        seed=seed,
        seconds=now(place) - started,
        reason=reason,
    )


def _draw(solver: Solver, graph: Graph, temperature: float, samples: int, seed: int) -> list[NDArray[Any]]:
    """States, log w + H / temperature, H, and how a sweep of Gibbs sampling changes it; the last axis is the draw."""
    problem, device, sampler = solver.problem, solver.device, solver.sampler
    at_once = min(samples, max(1, rows_per_batch(device) // max(1, graph.num_nodes)))
    check_fits(graph, solver.requirement(graph, at_once), device)
    batch, unit, seeds = unit_batch(problem, [graph], device), weight_unit(problem, graph), np.random.default_rng(seed)
    parts = []
    for first in range(0, samples, at_once):
        generator = torch.Generator(device).manual_seed(next_seed(seeds))
        with sampler.lock:
            x, log_ratio = weighted_paths(
                sampler.denoiser,
                batch,
                noise_of(solver.checkpoint),
                num_steps=sampler.num_steps,
                num_samples=min(at_once, samples - first),
                generator=generator,
            )
        moved = sweep(problem, batch, x, temperature=temperature / unit, generator=generator)
        before, after = (unit * problem.energy(batch, states)[0] for states in (x, moved))
        parts.append([batch.split(x.bool())[0], log_ratio[0], before, after - before])
    return [torch.cat(part, dim=-1).cpu().numpy() for part in zip(*parts, strict=True)]
