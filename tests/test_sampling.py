"""Draws from the Boltzmann distribution against enumeration: weights, Z, energies, the chain."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import diffuco
import oracle
from diffuco.diffusion import mean_field
from diffuco.diffusion.noise import NOISES, CategoricalNoise
from diffuco.diffusion.path_weights import end_and_log_ratio, weighted_paths
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.graphs.graph import Graph
from diffuco.inference.heat_bath import sweep
from diffuco.inference.solver import noise_of
from diffuco.model import Gnn, GnnConfig
from diffuco.model.checkpoint import Checkpoint
from diffuco.problems import all_problems, get_problem
from diffuco.solution.samples import BoltzmannSamples
from test_loss import PATH, RING, WEIGHTED, Tabular, all_paths, as_samples, predict

TEMPERATURE = 0.7
for_all_noises = pytest.mark.parametrize("noise_name", NOISES)
for_all_problems = pytest.mark.parametrize("problem", all_problems(), ids=str)


def flipping(noise_name: str, num_steps: int) -> CategoricalNoise | None:
    noise = NOISES[noise_name](num_steps)
    return noise if isinstance(noise, CategoricalNoise) else None


class Untrained(Tabular):
    """A denoiser that undoes the noise as if all states were equally likely, and errs a little."""

    def __init__(self, num_nodes: int, noise: CategoricalNoise | None, num_steps: int):
        super().__init__(num_nodes, num_steps)
        self.noise = noise

    def forward(self, batch, x, step, features):
        errors = 0.2 * super().forward(batch, x, step, features)
        return errors if self.noise is None else errors - (2 * x - 1) * self.noise.flip_probability(step).logit()


def exact(problem, graph: Graph, temperature: float) -> tuple[float, float]:
    """log Z and the mean energy, by enumeration."""
    energies = oracle.energies(problem, graph)
    factors = np.exp(-energies / temperature)
    return float(np.log(factors.sum())), float(factors @ energies / factors.sum())


@for_all_noises
@pytest.mark.parametrize(("graph", "num_steps"), [(PATH, 1), (PATH, 3), (RING, 2)])
def test_expected_weight_of_paths_to_a_state_is_its_boltzmann_factor(graph, num_steps, noise_name):
    """Sum over all paths that end in a state: probability under the model times weight is exp(-H / temperature)."""
    denoiser, problem = Tabular(graph.num_nodes, num_steps), get_problem("mis")
    paths = all_paths(graph.num_nodes, num_steps)
    batch = SparseBatch.from_graphs([graph])
    steps = [
        taken._replace(logits=predict(denoiser, batch, taken.x, taken.step, taken.features).detach())
        for taken in as_samples(paths[None], num_steps)
    ]
    ends, log_ratio = end_and_log_ratio(batch, flipping(noise_name, num_steps), steps)
    log_q = sum(batch.graph_sum(mean_field.log_prob(taken.logits, taken.next_x)) for taken in steps)
    log_weights = log_ratio - problem.energy(batch, ends) / TEMPERATURE
    mass = (log_q - graph.num_nodes * np.log(2) + log_weights).exp()[0]
    by_state = mass.view(-1, 2**graph.num_nodes).sum(0)  # X_0 changes fastest
    assert_close(by_state.numpy(), np.exp(-oracle.energies(problem, graph) / TEMPERATURE))


@for_all_noises
@for_all_problems
@pytest.mark.parametrize("batch_kind", [SparseBatch, DenseBatch])
def test_estimates_are_within_their_errors(problem, noise_name, batch_kind):
    graphs, noise = [WEIGHTED, PATH], flipping(noise_name, 4)
    batch = batch_kind.from_graphs(graphs)
    drawn = {"num_steps": 4, "num_samples": 4000, "generator": oracle.seeded(1)}
    states, log_ratio = weighted_paths(Untrained(3, noise, 4), batch, noise, **drawn)
    energies = problem.energy(batch, states).numpy()
    for position, graph in enumerate(graphs):
        found = samples_of(problem, graph, energies[position], log_ratio[position].numpy())
        log_z, mean_energy = exact(problem, graph, TEMPERATURE)
        assert 500 < found.effective_sample_size < 4000
        assert abs(found.log_z.value - log_z) < 4 * found.log_z.error < 0.5
        assert abs(found.mean_energy.value - mean_energy) < 4 * found.mean_energy.error < 0.5
        assert found.free_energy == pytest.approx([-TEMPERATURE * found.log_z.value, TEMPERATURE * found.log_z.error])
        assert found.energies[found.chain].mean() == pytest.approx(mean_energy, abs=8 * found.mean_energy.error)


def samples_of(problem, graph, energies, log_ratio) -> BoltzmannSamples:
    return BoltzmannSamples(
        problem=problem,
        graph=graph,
        temperature=TEMPERATURE,
        states=np.zeros((graph.num_nodes, len(energies)), dtype=bool),
        energies=energies,
        log_weights=log_ratio - energies / TEMPERATURE,
        gibbs_changes=np.zeros(len(energies)),
        found_by="a table",
        seed=0,
        seconds=0.0,
    )


def test_errors_are_those_of_repeated_draws():
    problem, batch, noise, found = get_problem("mis"), SparseBatch.from_graphs([RING]), CategoricalNoise(2), []
    for seed in range(200):
        drawn = {"num_steps": 2, "num_samples": 300, "generator": oracle.seeded(seed)}
        states, log_ratio = weighted_paths(Untrained(4, noise, 2), batch, noise, **drawn)
        found.append(samples_of(problem, RING, problem.energy(batch, states)[0].numpy(), log_ratio[0].numpy()))
    for name in ("log_z", "mean_energy"):
        values, errors = np.array([getattr(samples, name) for samples in found]).T
        assert errors.mean() == pytest.approx(values.std(), rel=0.2)


def test_equal_weights_are_as_many_draws_as_they_seem_and_one_that_outweighs_all_is_one():
    energies = np.array([1.0, 2.0, 3.0, 4.0])
    equal = samples_of(get_problem("mis"), PATH, energies, energies / TEMPERATURE)
    assert equal.effective_sample_size == pytest.approx(4)
    assert equal.acceptance_rate == 1
    assert equal.log_z == (pytest.approx(0), pytest.approx(0))
    assert equal.mean_energy.value == pytest.approx(2.5)
    one = replace(equal, log_weights=np.array([-5000.0, 5000.0, -5000.0, -5000.0]))
    assert one.effective_sample_size == pytest.approx(1)
    assert one.chain.tolist() == [0, 1, 1, 1]
    assert one.acceptance_rate == pytest.approx(1 / 3)
    assert one.log_z.value == pytest.approx(5000 - np.log(4))
    assert one.mean_energy == (pytest.approx(2), pytest.approx(0))


def test_rare_states_are_drawn_as_often_as_their_weight_says():
    """A logit of 40 rounds to certainty in float32; in float64 the weights know better, and none is infinite."""

    def certain(batch, x, step, features):
        return torch.full_like(x, 40.0)

    certain.num_random_features = 0
    batch = SparseBatch.from_graphs([PATH])
    for noise in (CategoricalNoise(2), None):
        drawn = {"num_steps": 2, "num_samples": 50, "generator": oracle.seeded(0)}
        states, log_ratio = weighted_paths(certain, batch, noise, **drawn)
        assert states.dtype == log_ratio.dtype == torch.float64
        assert log_ratio.isfinite().all()


@for_all_problems
def test_sweeps_reach_the_boltzmann_distribution_and_leave_it_as_it_is(problem):
    graph, generator = WEIGHTED if problem.name == "qubo" else RING, oracle.seeded(0)
    batch, x = SparseBatch.from_graphs([graph]), torch.ones(graph.num_nodes, 4000, dtype=torch.float64)
    _, expected = exact(problem, graph, TEMPERATURE)
    drift = []
    for _ in range(12):
        before, x = problem.energy(batch, x), sweep(problem, batch, x, temperature=TEMPERATURE, generator=generator)
        drift.append((problem.energy(batch, x) - before).mean().item())
    energies = problem.energy(batch, x)
    assert abs(energies.mean() - expected) < 4 * energies.std() / 4000**0.5
    assert abs(drift[0]) > 0.1 > 2 * abs(drift[-1])


@for_all_problems
def test_every_problem_is_sampled_with_its_shipped_model(problem):
    weighted = oracle.weighted_graph()
    if not problem.uses_node_weights:
        weighted = replace(weighted, node_weights=None)
    graph = oracle.node_weighted_graphs()[0] if oracle.is_node_set(problem) else weighted
    found = diffuco.sample(graph, problem, temperature=2.0, samples=20, device="cpu")
    assert found.states.shape == (graph.num_nodes, 20)
    for state, energy in zip(found.states.T, found.energies, strict=True):
        assert energy == pytest.approx(oracle.energy(problem, graph, state.astype(float)), rel=1e-5, abs=1e-5)
    assert 1 <= found.effective_sample_size <= 20
    assert np.isfinite(found.log_weights).all()


@for_all_noises
def test_models_are_weighted_by_the_noise_of_their_training(noise_name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Gnn(GnnConfig(num_steps=2, num_layers=2, num_hidden=16))
    model = Checkpoint(network.eval(), "mis", "untrained", {"training": {"noise": noise_name}})
    found = diffuco.sample(PATH, "mis", temperature=1.0, model=model, samples=3000, device="cpu")
    log_z, mean_energy = exact(get_problem("mis"), PATH, 1.0)
    assert noise_of(model) == flipping(noise_name, 2)
    assert found.effective_sample_size > 50
    assert abs(found.log_z.value - log_z) < 4 * found.log_z.error
    assert abs(found.mean_energy.value - mean_energy) < 4 * found.mean_energy.error


def test_weights_in_other_units_are_the_same_distribution_at_that_temperature(models):
    light = oracle.weighted_graph()
    heavy = replace(light, edge_weights=1e6 * light.edge_weights, node_weights=1e6 * light.node_weights)
    one, other = (
        diffuco.sample(graph, "qubo", temperature=temperature, model=models["qubo"], samples=200, device="cpu")
        for graph, temperature in ((light, 1.5), (heavy, 1.5e6))
    )
    assert one.log_z == pytest.approx(other.log_z, rel=1e-3)
    log_z, mean_energy = exact(get_problem("qubo"), light, 1.5)
    assert abs(one.log_z.value - log_z) < 4 * one.log_z.error
    assert abs(one.mean_energy.value - mean_energy) < 4 * one.mean_energy.error


def test_draws_that_are_split_stand_for_the_same_distribution(models, monkeypatch):
    monkeypatch.setattr("diffuco.solving.sampling.rows_per_batch", lambda device: 100)
    found = diffuco.sample(RING, "mis", temperature=1.0, model=models["mis"], samples=999, device="cpu")
    again = diffuco.sample(RING, "mis", temperature=1.0, model=models["mis"], samples=999, device="cpu")
    assert np.array_equal(again.log_weights, found.log_weights)
    assert found.states.shape == (4, 999)
    assert len({state.tobytes() for state in found.states.T}) == 16
    log_z, _ = exact(get_problem("mis"), RING, 1.0)
    assert abs(found.log_z.value - log_z) < 4 * found.log_z.error
    counts = found.resample(20_000, seed=1).sum(0)
    assert counts.mean() == pytest.approx(found.mean(found.states.sum(0)).value, abs=0.05)


def test_a_graph_without_nodes_has_one_state(models):
    empty = Graph.from_edges([], num_nodes=0)
    found = diffuco.sample(empty, "mis", temperature=1.0, model=models["mis"], samples=3, device="cpu")
    assert found.log_z == (0.0, 0.0)
    assert found.to_dict()["least_log_z"] == 0


def test_transfer_matrix_of_the_lattice_agrees_with_enumeration():
    from experiments.ising import exact as by_transfer_matrix
    from experiments.ising import lattice

    graph = lattice(3, np.random.default_rng(0))
    for temperature in (1.5, 3.0):
        assert by_transfer_matrix(3, temperature) == pytest.approx(exact(get_problem("qubo"), graph, temperature))


def test_drift_shows_that_a_model_misses_states(models):
    """A trained model that draws little but optima has even weights, though most states are missing."""
    missing = diffuco.sample(PATH, "mis", temperature=1.0, samples=500, device="cpu")
    assert missing.effective_sample_size > 15
    assert missing.energy_drift.value > 4 * missing.energy_drift.error
    fair = diffuco.sample(PATH, "mis", temperature=1.0, model=models["mis"], samples=500, device="cpu")
    assert abs(fair.energy_drift.value) < 4 * fair.energy_drift.error


def test_states_that_were_drawn_bound_log_z(models):
    log_z, _ = exact(get_problem("mis"), PATH, 0.1)
    found = diffuco.sample(PATH, "mis", temperature=0.1, model=models["mis"], samples=300, device="cpu")
    assert found.least_log_z == pytest.approx(log_z)  # all eight states were drawn
    some = diffuco.sample(PATH, "mis", temperature=0.1, samples=2, device="cpu")
    assert some.least_log_z < log_z


def test_command_prints_estimates_and_writes_draws(run, house, models, tmp_path):
    common = ("sample", "mis", house, "--temperature", 1, "--model", models["mis"], "--samples", 300)
    outcome = run(*common, "--json", "--output", tmp_path / "new" / "draws.npz")
    assert (outcome.code, outcome.err) == (0, "")
    record = json.loads(outcome.out)
    found = diffuco.sample(house, "mis", temperature=1.0, model=models["mis"], samples=300)
    log_z, _ = exact(get_problem("mis"), diffuco.read_graph(house), 1.0)
    assert abs(record["log_z"]["value"] - log_z) < 4 * record["log_z"]["error"]
    assert record["log_z"] == found.log_z._asdict()
    assert record["energy_drift"] == found.energy_drift._asdict()
    assert (record["file"], record["nodes"], record["samples"]) == (str(house), 5, 300)
    with np.load(tmp_path / "new" / "draws.npz") as draws:
        assert np.array_equal(draws["states"], found.states)
        assert np.array_equal(draws["log_weights"], found.log_weights)
        assert draws["labels"].tolist() == ["1", "2", "3", "4", "5"]
    lines = run(*common).out.splitlines()
    assert lines[0].startswith("Maximum Independent Set at temperature 1, by ")
    assert f"effective sample size  {found.effective_sample_size:.1f}" in lines


@pytest.mark.parametrize(
    ("temperature", "samples", "warning"),
    [
        (1, 500, "moves the mean energy by"),
        (0.01, 20, "the 20 draws are worth"),
        (0.1, 8_000, "the states drawn prove that log Z is at least 20.00"),
    ],
)
def test_command_warns_of_draws_that_cannot_be_trusted(run, tmp_path, temperature, samples, warning):
    (tmp_path / "path.edges").write_text("0 1\n1 2\n")
    outcome = run("sample", "mis", tmp_path / "path.edges", "--temperature", temperature, "--samples", samples)
    (line,) = outcome.warnings
    assert outcome.code == 0
    assert warning in line
    assert "trust neither the estimates nor their errors; raise --temperature, or give a --model" in line


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--temperature", "-1"], "the temperature is -1; give a number above 0"),
        (["--temperature", "1", "--samples", "0"], "samples is 0; give 2 or more"),
        (["--temperature", "1", "--output", "draws.txt"], "draws.txt: draws are written as NumPy arrays"),
        (["--temperature", "1", "--model", "nothing"], "unknown model 'nothing'"),
        ([], "Missing option '--temperature'"),
    ],
)
def test_command_refuses_in_one_line(run, house, options, complaint):
    outcome = run("sample", "mis", house, *options)
    (line,) = outcome.err.splitlines()
    assert outcome.code == 2
    assert complaint in line


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"temperature": 0.0}, "the temperature is 0; give a number above 0"),
        ({"temperature": float("nan")}, "the temperature is nan; give a number above 0"),
        ({"temperature": 1e-320, "samples": 2}, "too small for energies like -2; raise it"),
        ({"temperature": 1.0, "samples": 1}, "samples is 1; give 2 or more"),
        ({"temperature": 1.0, "model": "max-cut-ba-small"}, "was trained for max-cut, not mis"),
    ],
)
def test_what_cannot_be_sampled_is_refused(given, complaint):
    with pytest.raises(InputError, match=complaint):
        diffuco.sample(PATH, "mis", **given)
