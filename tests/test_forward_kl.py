"""The forward divergence against enumeration; then runs that make draws worth more."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import diffuco
from diffuco import train
from diffuco.diffusion.noise import CategoricalNoise, ExponentialNoise
from diffuco.diffusion.randomness import RowRandom
from diffuco.foundation.errors import InputError
from diffuco.graphs.collection import Collection
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem
from diffuco.training.objectives import ForwardKl
from diffuco.training.parts import choose_parts
from test_imitation import PATH, STATES, Table, config_of, expected_cost

TEMPERATURE = 0.7


@pytest.mark.parametrize("kind", [CategoricalNoise, ExponentialNoise])
def test_gradients_average_to_that_of_the_boltzmann_distribution(kind):
    noise, table, problem = kind(2), Table(2), get_problem("mis")
    table.logits.data.mul_(0.5)  # so that weights differ, but none outweighs the others
    boltzmann = (-problem.energy(PATH, STATES.T)[0] / TEMPERATURE).softmax(0)  # [8]
    expected = sum(p * expected_cost(table, noise, x_0) for p, x_0 in zip(boltzmann, STATES, strict=True))
    (gradient,) = torch.autograd.grad(expected, [table.logits])
    random = RowRandom(torch.Generator().manual_seed(1))
    given = {"temperature": TEMPERATURE, "random": random, "num_graphs": 1}
    numbers = ForwardKl(100_000, TEMPERATURE, TEMPERATURE).backward(table, problem, noise, PATH, **given)
    assert float(numbers["loss"]) == pytest.approx(float(expected.detach()), rel=0.02)
    energy = float((boltzmann * problem.energy(PATH, STATES.T)[0]).sum())
    assert float(numbers["energy"]) == pytest.approx(energy, abs=0.02)
    assert 0.01 < float(numbers["effective_share"]) < 0.9
    torch.testing.assert_close(table.logits.grad, gradient, atol=0.02, rtol=0)
    assert gradient.abs().max() > 0.08


def config(**changes):
    heat = {"start_temperature": 0.5, "end_temperature": 0.5, "samples_per_graph": 8}
    sizes = {"num_train_graphs": 16, "num_validation_graphs": 2, "anneal_epochs": 60}
    return config_of(**{"objective": "joint-bound"} | heat | sizes | changes)


def ring(rng):
    """A cycle of eight nodes in random order."""
    order = rng.permutation(8)
    return Graph.from_edges(list(zip(order, np.roll(order, 1), strict=True)))


def test_a_second_stage_raises_the_effective_sample_size(tmp_path):
    first, second, rng = tmp_path / "first", tmp_path / "second", np.random.default_rng(0)
    rings = Collection.of("rings", [ring(rng) for _ in range(60)])
    train(config(), first, graphs=rings, device="cpu", progress=False)
    then = replace(config(), objective="forward-kl", start_from=str(first / "last.safetensors"), learning_rate=0.003)
    train(then, second, graphs=rings, device="cpu", progress=False)
    graph = ring(rng)
    sizes = [
        diffuco.sample(graph, "mis", temperature=0.5, model=folder / "last.safetensors").effective_sample_size
        for folder in (first, second)
    ]
    assert sizes[1] > max(100, 1.15 * sizes[0])
    logged = [json.loads(line) for line in (second / "log.jsonl").read_text().splitlines()]
    assert all(0 < line["effective_share"] <= 1 for line in logged if line["kind"] == "train")


def test_what_has_no_weights_is_refused(tmp_path):
    for name in ("start_temperature", "end_temperature"):
        with pytest.raises(InputError, match="needs a start_temperature and an end_temperature above 0; set both"):
            choose_parts(config(objective="forward-kl", **{name: 0.0}))
    with pytest.raises(InputError, match="noise 'annealed' does not start from a solution; take 'exponential'"):
        train(config(objective="forward-kl", noise="annealed"), tmp_path / "run", device="cpu", progress=False)
