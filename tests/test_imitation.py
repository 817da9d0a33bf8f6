"""Imitation against enumeration: noise, posterior, divergence and gradient; then a run that learns from annealing."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from diffuco import train
from diffuco.diffusion.noise import CategoricalNoise, ExponentialNoise
from diffuco.diffusion.randomness import RowRandom
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem
from diffuco.training.config import TrainConfig
from diffuco.training.examples import find_examples
from diffuco.training.loop import learning_rate_at, temperature_at
from diffuco.training.objectives import Imitation
from diffuco.training.objectives.imitation import cross_entropy
from diffuco.training.parts import choose_parts

NOISES = [CategoricalNoise, ExponentialNoise]
STATES = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)))  # all states of three nodes
PATH = SparseBatch.from_graphs([Graph.from_edges([(0, 1), (1, 2)])])


class Table(nn.Module):
    """A denoiser with one parameter per state, step and node."""

    num_random_features = 0

    def __init__(self, num_steps):
        super().__init__()
        self.logits = nn.Parameter(torch.randn(num_steps, 8, 3, generator=torch.Generator().manual_seed(0)))

    def forward(self, batch, x, step, features):
        index = (x * torch.tensor([4.0, 2.0, 1.0])[:, None]).sum(0).long()
        return self.logits[step - 1, index].T


def log_flips(noise, before, after, step):
    """log p(X_t = after | X_{t-1} = before)."""
    flip = noise.flip_probability(torch.tensor(float(step)))
    flips = (before != after).sum(-1)
    return flips * flip.log() + (3 - flips) * torch.log1p(-flip)


def expected_cost(table, noise, x_0):
    """The sum of cost_t over both steps from a state, each weighted by the probability of X_t."""
    total = 0.0
    for t in (1, 2):
        step = torch.full((8,), t)
        change = noise.change_probability(step)[0]
        flips = (x_0 != STATES).sum(1)
        weights = change**flips * (1 - change) ** (3 - flips)
        target = noise.posterior(x_0[:, None].expand(3, 8), STATES.T, step)
        total = total + (weights * cross_entropy(PATH, table(PATH, STATES.T, step, None), target)[0]).sum()
    return total


@pytest.mark.parametrize("kind", NOISES)
def test_change_and_posterior_are_those_of_the_chain(kind):
    noise = kind(3)
    x_0 = torch.tensor([0.0, 1.0, 1.0])
    marginal = (x_0 == STATES).all(1).double()
    for t in range(1, 4):
        transition = torch.stack([log_flips(noise, before, STATES, t).exp() for before in STATES]).double()
        for place, x in enumerate(STATES):
            joint = marginal * transition[:, place]
            expected = (joint[:, None] * STATES).sum(0) / joint.sum()
            found = noise.posterior(x_0[:, None], x[:, None], torch.tensor([t]))[:, 0]
            torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
        marginal = marginal @ transition
        changed = (marginal[:, None] * (x_0 != STATES)).sum(0)
        torch.testing.assert_close(
            noise.change_probability(torch.tensor([t])).double().expand(3), changed, rtol=1e-5, atol=1e-6
        )
    torch.testing.assert_close(marginal, torch.full((8,), 1 / 8, dtype=torch.float64))


@pytest.mark.parametrize("kind", NOISES)
def test_expected_cost_is_the_forward_divergence_of_paths_up_to_a_constant(kind):
    noise, x_0 = kind(2), torch.tensor([1.0, 0.0, 1.0])

    def divergence(table):  # over all paths X_1, X_2 that start from the example
        total = 0.0
        for x_1, x_2 in itertools.product(STATES, STATES):
            log_p = log_flips(noise, x_0, x_1, 1) + log_flips(noise, x_1, x_2, 2)
            log_q = sum(
                -nn.functional.binary_cross_entropy_with_logits(
                    table(PATH, after[:, None], torch.tensor([t]), None)[:, 0], before, reduction="sum"
                )
                for t, before, after in ((1, x_0, x_1), (2, x_1, x_2))
            )
            total += float(log_p.exp() * (log_p - log_q))
        return total

    tables = [Table(2), Table(2)]
    with torch.no_grad():
        tables[1].logits.mul_(-0.7)
        costs = [float(expected_cost(table, noise, x_0)) for table in tables]
        differences = [divergence(table) - cost for table, cost in zip(tables, costs, strict=True)]
    assert differences[0] == pytest.approx(differences[1], abs=1e-4)
    assert abs(costs[0] - costs[1]) > 0.01


def test_gradients_average_to_the_gradient_of_the_expected_cost():
    noise, table = ExponentialNoise(2), Table(2)
    examples = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).bool()
    expected = sum(expected_cost(table, noise, x_0) / 2 for x_0 in examples.T.float())
    (gradient,) = torch.autograd.grad(expected, [table.logits])
    objective, random = Imitation(num_columns=20_000, num_examples=2), RowRandom(torch.Generator().manual_seed(1))
    given = {"temperature": 0.0, "random": random, "num_graphs": 1, "examples": examples}
    numbers = objective.backward(table, get_problem("mis"), noise, PATH, **given)
    assert float(numbers["loss"]) == pytest.approx(float(expected.detach()), rel=0.02)
    torch.testing.assert_close(table.logits.grad, gradient, atol=0.02, rtol=0)
    assert gradient.abs().max() > 0.1


def config_of(**changes):
    settings = {"num_steps": 4, "start_temperature": 0.1, "anneal_epochs": 15, "noise": "exponential"}
    small = {"num_layers": 2, "num_hidden": 16, "num_random_features": 2, "graphs_per_batch": 8, "num_train_graphs": 32}
    checks = {"num_validation_graphs": 8, "validate_every": 24, "checkpoint_every": 24, "learning_rate": 0.01}
    return TrainConfig("mis", "rb-tiny", **{"objective": "imitation"} | settings | small | checks | changes)


def test_a_run_learns_from_what_annealing_finds_and_resumes(tmp_path):
    config = config_of()
    train(config, tmp_path / "whole", device="cpu", progress=False)
    lines = [json.loads(line) for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["kind"] == "train"]
    assert 0 < losses[-1] < 0.9 * losses[0]
    short = replace(config, anneal_epochs=2)
    train(short, tmp_path / "short", device="cpu", progress=False)
    train(short, tmp_path / "parts", device="cpu", progress=False, stop_after_minutes=0)
    train(short, tmp_path / "parts", device="cpu", progress=False, resume=True)
    last = [(tmp_path / name / "last.safetensors").read_bytes()[-4000:] for name in ("short", "parts")]
    assert last[0] == last[1]


def test_a_run_imitates_first_and_then_minimises_its_objective(tmp_path):
    config = config_of(objective="joint-bound", imitation_epochs=2, anneal_epochs=3, start_temperature=0.03)
    each = config.steps_per_epoch
    assert (config.imitation_steps, config.total_steps) == (2 * each, 5 * each)
    train(config, tmp_path / "whole", device="cpu", progress=False)
    lines = [json.loads(line) for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()]
    logged = {line["step"]: line for line in lines if line["kind"] == "train"}
    assert all(("wrong" in line) == (step <= 2 * each) for step, line in logged.items())
    assert all(("entropy_term" in line) == (step > 2 * each) for step, line in logged.items())
    train(config, tmp_path / "parts", device="cpu", progress=False, stop_after_minutes=0)
    train(config, tmp_path / "parts", device="cpu", progress=False, resume=True)
    last = [(tmp_path / name / "last.safetensors").read_bytes()[-4000:] for name in ("whole", "parts")]
    assert last[0] == last[1]


def test_both_schedules_begin_anew_after_imitation():
    config = config_of(imitation_epochs=20, anneal_epochs=30, start_temperature=0.4, learning_rate_schedule="cosine")
    alone = replace(config, imitation_epochs=0)
    first = config.imitation_steps
    assert first > 20
    for step in (0, 1, 17, alone.total_steps - 1):
        assert temperature_at(first + step, config) == temperature_at(step, alone)
        assert learning_rate_at(first + step, config) == learning_rate_at(step, alone)
    assert learning_rate_at(0, config) < learning_rate_at(first // 2, config) > learning_rate_at(first - 1, config)


def test_a_negative_number_of_epochs_is_refused():
    with pytest.raises(InputError, match="imitation_epochs is -1; give 0 or more"):
        config_of(imitation_epochs=-1)


def test_examples_are_the_best_chains_of_the_annealer():
    graphs = get_dataset("rb-tiny").graphs("train", 3)
    parts = choose_parts(config_of())
    examples = find_examples(parts, graphs, torch.device("cpu"))
    for graph, states in zip(graphs, examples, strict=True):
        assert states.shape == (graph.num_nodes, 8)
        verdicts = [parts.problem.check(graph, states[:, column]) for column in range(8)]
        assert all(verdict.violations == 0 for verdict in verdicts)
        sizes = [verdict.objective for verdict in verdicts]
        assert sizes == sorted(sizes, reverse=True)
    again = find_examples(parts, graphs, torch.device("cpu"))
    assert all(np.array_equal(one, other) for one, other in zip(examples, again, strict=True))


def test_noise_that_does_not_start_from_a_solution_is_refused(tmp_path):
    with pytest.raises(InputError, match="noise 'annealed' does not start from a solution; take 'exponential'"):
        train(config_of(noise="annealed"), tmp_path / "run", device="cpu", progress=False)
