"""The loss against enumeration: every path of a small reverse process, its probability, and the exact KL divergence."""

import itertools
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

import oracle
from diffuco.diffusion import mean_field
from diffuco.diffusion.loss import backward_joint_bound, later_costs_advantage, step_cost, surrogate
from diffuco.diffusion.noise import AnnealedNoise, CategoricalNoise, ExponentialNoise, make_noise
from diffuco.diffusion.randomness import RowRandom, SharedRandom
from diffuco.diffusion.reverse import ReverseStep, Steps, predict, reverse_process
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem

EDGE = Graph.from_edges([(0, 1)])
PATH = Graph.from_edges([(0, 1), (1, 2)])
WEIGHTED = Graph.from_edges([(0, 1), (1, 2)], node_weights=[0.25, 2, 1], edge_weights=[0.3, -0.7])
RING = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)])
SETTINGS = [(PATH, 2), (PATH, 3), (RING, 2), (WEIGHTED, 2)]
for_all_noises = pytest.mark.parametrize("noise_kind", [CategoricalNoise, ExponentialNoise, AnnealedNoise])
for_temperatures = pytest.mark.parametrize("temperature", [0.0, 0.4, 2.0])


def row_random(seed: int) -> RowRandom:
    return RowRandom(oracle.seeded(seed))


class Tabular(nn.Module):
    """A denoiser with one free logit per step, state of the graph and node: it can be any reverse process."""

    num_random_features = 0

    def __init__(self, num_nodes: int, num_steps: int) -> None:
        super().__init__()
        self.num_nodes = num_nodes
        table = torch.randn(num_steps, 2**num_nodes, num_nodes, generator=oracle.seeded(7), dtype=torch.float64)
        self.table = nn.Parameter(table)

    def forward(self, batch, x, step, features):
        powers = 2 ** torch.arange(self.num_nodes - 1, -1, -1)
        state = (x.view(-1, self.num_nodes, x.shape[1]).long() * powers[:, None]).sum(1)  # [B, S]
        return self.table[step - 1, state].transpose(1, 2).reshape(x.shape)


@cache
def all_paths(num_nodes: int, num_steps: int) -> torch.Tensor:
    """Every (X_T, ..., X_0): [paths, T + 1, nodes]."""
    states = torch.from_numpy(oracle.all_states(num_nodes))
    index = torch.tensor(list(itertools.product(range(len(states)), repeat=num_steps + 1)))
    return states[index]


def as_samples(paths: torch.Tensor, num_steps: int) -> list[ReverseStep]:
    """Paths [graphs, samples, T + 1, nodes] as the steps of a batch of that many copies of the graph."""
    x = [paths[:, :, k].transpose(1, 2).reshape(-1, paths.shape[1]) for k in range(num_steps + 1)]
    none = torch.zeros(*x[0].shape, 0, dtype=torch.float64)
    return [ReverseStep(num_steps - k, x[k], none, torch.empty(0), x[k + 1]) for k in range(num_steps)]


def with_logits(denoiser, batch, path):
    """The steps of a path side by side, with the denoiser's logits."""
    logits = (predict(denoiser, batch, taken.x, taken.step, taken.features) for taken in path)
    return Steps.join([taken._replace(logits=values) for taken, values in zip(path, logits, strict=True)])


def path_terms(denoiser, problem, noise, batch, steps, temperature):
    """Per path: log q of each step and cost of each step, [T, B, S] each."""
    log_q, costs = [], []
    for taken in steps:
        joined = with_logits(denoiser, batch, [taken])
        log_q.append(batch.graph_sum(mean_field.log_prob(joined.logits, taken.next_x)))
        costs.append(step_cost(problem, noise, batch, joined, temperature).total)
    return torch.stack(log_q), torch.stack(costs)


def exact_free_energy(denoiser, problem, noise, graph, temperature):
    """temperature * KL(q(X_0:T) || p(X_0:T)) without log Z: E_q[temperature log q - temperature log p~], by hand."""
    num_steps = noise.num_steps
    paths = all_paths(graph.num_nodes, num_steps)
    energies = torch.from_numpy(oracle.energies(problem, graph))
    powers = 2 ** torch.arange(graph.num_nodes - 1, -1, -1)
    index = (paths.long() * powers).sum(2)  # [paths, T + 1], position k holds X_{T-k}
    log_q = torch.zeros(len(paths), dtype=torch.float64)
    log_forward = torch.zeros(len(paths), dtype=torch.float64)  # temperature * log p(X_t | X_{t-1}), unnormalised
    for k in range(num_steps):
        t = num_steps - k
        logits = denoiser.table[t - 1, index[:, k]]
        log_q = log_q + mean_field.log_prob(logits, paths[:, k + 1]).sum(1)
        if isinstance(noise, AnnealedNoise):
            log_forward = log_forward - (1 - t / num_steps) * energies[index[:, k]]
        else:
            beta = float(noise.flip_probability(torch.tensor(t, dtype=torch.float64)))
            flips = (paths[:, k] != paths[:, k + 1]).double().sum(1)
            stays = graph.num_nodes - flips
            log_forward = log_forward + temperature * (flips * np.log(beta) + stays * np.log(1 - beta))
    likelihood = log_q.exp() / 2**graph.num_nodes  # X_T is uniform
    return (likelihood * (temperature * log_q - log_forward + energies[index[:, -1]])).sum()


def make(graph, num_steps, noise_kind, problem_name="mis"):
    return Tabular(graph.num_nodes, num_steps), get_problem(problem_name), noise_kind(num_steps)


@for_all_noises
@for_temperatures
@pytest.mark.parametrize(("graph", "num_steps"), SETTINGS)
@pytest.mark.parametrize("problem_name", ["mis", "mvc", "max-clique", "mds", "max-cut", "qubo"])
def test_expected_sum_of_costs_is_the_kl(graph, num_steps, noise_kind, temperature, problem_name):
    denoiser, problem, noise = make(graph, num_steps, noise_kind, problem_name)
    paths = all_paths(graph.num_nodes, num_steps)[:, None]
    batch = copies(graph, len(paths))
    with torch.no_grad():
        log_q, costs = path_terms(denoiser, problem, noise, batch, as_samples(paths, num_steps), temperature)
        likelihood = log_q.sum(0).exp() / 2**graph.num_nodes
        expected = (likelihood * costs.sum(0)).sum()
        assert_close(likelihood.sum().item(), 1.0)
        assert_close(expected, exact_free_energy(denoiser, problem, noise, graph, temperature), rtol=1e-6, atol=1e-8)


@cache
def copies(graph: Graph, count: int) -> SparseBatch:
    """A graph many times; of the 262,144 pairs of paths, this would take most of the time of every test."""
    return SparseBatch.from_graphs([graph] * count)


def gradient_of_estimate(denoiser, problem, noise, graph, paths, temperature):
    """Expected surrogate gradient over independent groups of paths [groups, S, T + 1, nodes]."""
    batch = copies(graph, len(paths))
    steps = as_samples(paths, noise.num_steps)
    with torch.no_grad():
        log_q, costs = path_terms(denoiser, problem, noise, batch, steps, temperature)
        likelihood = (log_q.sum(0) - graph.num_nodes * np.log(2)).sum(1).exp()  # of all paths of a group
        advantages = later_costs_advantage(costs)
    assert_close(likelihood.sum().item(), 1.0)
    joined = with_logits(denoiser, batch, steps)
    per_group = surrogate(batch, joined, step_cost(problem, noise, batch, joined, temperature).total, advantages)
    return torch.autograd.grad((likelihood * per_group).sum(), denoiser.table)[0]


@for_all_noises
@for_temperatures
@pytest.mark.parametrize(("graph", "num_steps"), SETTINGS)
@pytest.mark.parametrize("problem_name", ["mis", "mds"])
def test_expected_gradient_over_all_paths_is_exact(graph, num_steps, noise_kind, temperature, problem_name):
    denoiser, problem, noise = make(graph, num_steps, noise_kind, problem_name)
    paths = all_paths(graph.num_nodes, num_steps)[:, None]
    estimate = gradient_of_estimate(denoiser, problem, noise, graph, paths, temperature)
    (exact,) = torch.autograd.grad(exact_free_energy(denoiser, problem, noise, graph, temperature), denoiser.table)
    assert exact.abs().max() > 1e-3
    assert_close(estimate, exact, rtol=1e-6, atol=1e-9)


@for_all_noises
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_expected_gradient_over_all_pairs_of_paths_is_exact(noise_kind, temperature):
    denoiser, problem, noise = make(EDGE, 2, noise_kind)
    paths = all_paths(2, 2)
    first, second = torch.meshgrid(torch.arange(len(paths)), torch.arange(len(paths)), indexing="ij")
    pairs = torch.stack([paths[first.ravel()], paths[second.ravel()]], dim=1)
    estimate = gradient_of_estimate(denoiser, problem, noise, EDGE, pairs, temperature)
    (exact,) = torch.autograd.grad(exact_free_energy(denoiser, problem, noise, EDGE, temperature), denoiser.table)
    assert_close(estimate, exact, rtol=1e-6, atol=1e-9)


def test_plain_mean_baseline_would_be_biased(monkeypatch):
    """The check above can fail: with the mean over all samples the REINFORCE part shrinks by (S - 1) / S."""
    denoiser, problem, noise = make(EDGE, 2, AnnealedNoise)
    paths = all_paths(2, 2)
    first, second = torch.meshgrid(torch.arange(len(paths)), torch.arange(len(paths)), indexing="ij")
    pairs = torch.stack([paths[first.ravel()], paths[second.ravel()]], dim=1)
    monkeypatch.setattr("diffuco.diffusion.loss.leave_one_out", lambda costs: costs - costs.mean(-1, keepdim=True))
    estimate = gradient_of_estimate(denoiser, problem, noise, EDGE, pairs, 0.7)
    (exact,) = torch.autograd.grad(exact_free_energy(denoiser, problem, noise, EDGE, 0.7), denoiser.table)
    assert (estimate - exact).norm() / exact.norm() > 0.01


@for_all_noises
def test_chunked_gradients_agree(noise_kind):
    num_steps = 5
    denoiser, problem, noise = make(RING, num_steps, noise_kind)
    batch = SparseBatch.from_graphs([RING] * 3)
    gradients = []
    for steps_per_chunk in (None, 1, 2, 5):
        denoiser.zero_grad()
        terms = backward_joint_bound(
            denoiser, problem, noise, batch, temperature=0.3, num_samples=4, random=row_random(0),
            steps_per_chunk=steps_per_chunk,
        )  # fmt: skip
        assert terms.total.isfinite()
        gradients.append(denoiser.table.grad.clone())
    for other in gradients[1:]:
        assert_close(gradients[0], other)


@for_all_noises
@for_temperatures
def test_one_step_is_egn(noise_kind, temperature):
    """T = 1 (Sec. 4.2): E_Z[ E[H(X)] - temperature * S(q(X | Z)) ] with uniform latent Z, up to a constant."""
    denoiser, problem, noise = make(PATH, 1, noise_kind)
    states = torch.from_numpy(oracle.all_states(3))
    egn = torch.zeros(())
    for z, logits in zip(states, denoiser.table[0], strict=True):
        batch = SparseBatch.from_graphs([PATH])
        probs = logits.sigmoid()[:, None]
        free_energy = problem.energy(batch, probs).sum() - temperature * mean_field.entropy(logits).sum()
        egn = egn + free_energy / len(states)
        assert len(z) == 3
    (expected,) = torch.autograd.grad(egn, denoiser.table)
    paths = all_paths(3, 1)[:, None]
    assert_close(gradient_of_estimate(denoiser, problem, noise, PATH, paths, temperature), expected)


def test_monte_carlo_estimate_agrees_with_the_exact_gradient():
    """The rollout, the costs and the backward pass together, as training runs them."""
    denoiser, problem, noise = make(PATH, 3, AnnealedNoise)
    copies = 4000
    batch = SparseBatch.from_graphs([PATH] * copies)
    backward_joint_bound(denoiser, problem, noise, batch, temperature=0.5, num_samples=5, random=row_random(1))
    (exact,) = torch.autograd.grad(exact_free_energy(denoiser, problem, noise, PATH, 0.5), denoiser.table)
    error = (denoiser.table.grad - exact).norm() / exact.norm()
    assert error < 0.1


@pytest.mark.parametrize("num_steps", [1, 2, 7])
def test_flip_probabilities_end_at_one_half(num_steps):
    steps = torch.arange(1, num_steps + 1)
    for noise in (CategoricalNoise(num_steps), ExponentialNoise(num_steps)):
        flips = noise.flip_probability(steps)
        assert flips[-1] == 0.5
        assert (flips.diff() > 0).all()
    assert CategoricalNoise(num_steps).flip_probability(steps).tolist() == pytest.approx(
        [1 / (num_steps - step + 2) for step in steps.tolist()]
    )


def test_reverse_process_counts_down_and_links_states():
    denoiser = Tabular(3, 4)
    taken = list(reverse_process(denoiser, SparseBatch.from_graphs([PATH] * 2), [4, 3, 2, 1], 5, row_random(0)))
    assert [step.step for step in taken] == [4, 3, 2, 1]
    for one, following in itertools.pairwise(taken):
        assert torch.equal(one.next_x, following.x)
    assert set(taken[-1].next_x.unique().tolist()) <= {0.0, 1.0}


def test_mean_field_quantities_match_torch_distributions():
    logits = torch.tensor([-40.0, -1.0, 0.0, 2.0, 40.0], dtype=torch.float64)
    reference = torch.distributions.Bernoulli(logits=logits)
    assert_close(mean_field.entropy(logits), reference.entropy())
    for x in (torch.zeros(5, dtype=torch.float64), torch.ones(5, dtype=torch.float64)):
        assert_close(mean_field.log_prob(logits, x), reference.log_prob(x))
    draws = mean_field.sample(logits.expand(20000, 5), torch.rand(20000, 5, generator=oracle.seeded(0)))
    assert_close(draws.mean(0), logits.sigmoid(), atol=0.02, rtol=0.0)


def test_unknown_noise_is_refused():
    with pytest.raises(InputError, match="annealed"):
        make_noise("gaussian", 3)


@pytest.mark.parametrize("batch_kind", [SparseBatch, DenseBatch])
def test_shares_of_a_batch_get_the_numbers_of_the_whole(batch_kind):
    graphs = [PATH, RING, PATH, RING, RING]
    whole = batch_kind.from_graphs(graphs)
    together = whole.split(SharedRandom(oracle.seeded(0), 5, 0, 16).normal(whole, 3, 2))
    for first, last in [(0, 2), (2, 5)]:
        part = batch_kind.from_graphs(graphs[first:last])
        own = part.split(SharedRandom(oracle.seeded(0), 5, first, 16).normal(part, 3, 2))
        assert all(torch.equal(one, other) for one, other in zip(own, together[first:last], strict=True))


def test_gradients_of_shares_add_up_to_the_gradient_of_the_batch():
    denoiser, problem, noise = make(RING, 3, AnnealedNoise)
    gradients = []
    for shares in ([(0, 5)], [(0, 2), (2, 5)], [(i, i + 1) for i in range(5)]):
        denoiser.zero_grad()
        for first, last in shares:
            backward_joint_bound(
                denoiser, problem, noise, SparseBatch.from_graphs([RING] * (last - first)), temperature=0.3,
                num_samples=4, random=SharedRandom(oracle.seeded(0), 5, first, 16), num_graphs=5,
            )  # fmt: skip
        gradients.append(denoiser.table.grad.clone())
    assert_close(gradients[0], gradients[1])
    assert_close(gradients[0], gradients[2])
