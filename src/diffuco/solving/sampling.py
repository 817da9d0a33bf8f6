"""`diffuco.sample`: weighted draws of a model from the Boltzmann distribution of a graph's energy."""

import math

import numpy as np
import torch

from diffuco.diffusion.path_weights import weighted_paths
from diffuco.foundation.devices import now, pick_device
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch.by_size import rows_per_batch
from diffuco.inference.answers import next_seed, unit_batch
from diffuco.inference.memory import check_fits
from diffuco.inference.solver import Model, noise_of
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

    >>> found = sample([(0, 1), (1, 2)], "mis", temperature=0.5, samples=2000, device="cpu")
    >>> exact = math.log(1 + 3 * math.exp(2) + math.exp(4) + 2 * math.exp(1.98) + math.exp(1.96))
    >>> abs(found.log_z.value - exact) < 4 * found.log_z.error
    True
    """
    if not (temperature > 0 and math.isfinite(temperature)):
        raise InputError(f"the temperature is {temperature:g}; give a number above 0")
    if samples < 2:
        raise InputError(f"samples is {samples}; give 2 or more, because one tells nothing of its error")
    known, place = get_problem(problem), pick_device(device)
    source = graph_for(known, graph)
    check_weights(known, [source])
    ((solver, reason, _),) = ModelMethod(model).plan(known, [source], place)
    at_once = min(samples, max(1, rows_per_batch(place) // max(1, source.num_nodes)))
    check_fits(source, solver.requirement(source, at_once), place)
    started, seeds = now(place), np.random.default_rng(seed)
    batch, states, log_ratios, energies = unit_batch(known, [source], place), [], [], []
    for first in range(0, samples, at_once):
        with solver.sampler.lock:
            x, log_ratio = weighted_paths(
                solver.sampler.denoiser,
                batch,
                noise_of(solver.checkpoint),
                num_steps=solver.sampler.num_steps,
                num_samples=min(at_once, samples - first),
                generator=torch.Generator(place).manual_seed(next_seed(seeds)),
            )
        states.append(batch.split(x.bool().cpu())[0].numpy())
        log_ratios.append(log_ratio[0].cpu().numpy())
        energies.append(weight_unit(known, source) * known.energy(batch, x)[0].cpu().numpy())
    energy = np.concatenate(energies)
    return BoltzmannSamples(
        problem=known,
        graph=source,
        temperature=temperature,
        states=np.concatenate(states, axis=1),
        energies=energy,
        log_weights=np.concatenate(log_ratios) - energy / temperature,
        found_by=solver.checkpoint.name,
        seed=seed,
        seconds=now(place) - started,
        reason=reason,
    )
