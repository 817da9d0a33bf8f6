"""diffuco as a sampler of dimod: its conformance tests, energies, seeds and what is told of a run."""

import builtins
import importlib
import sys
import unittest
from functools import cache

import numpy as np
import pytest

import diffuco
from diffuco.foundation.errors import InputError

dimod = pytest.importorskip("dimod")

from dimod.testing import (  # noqa: E402
    assert_bqm_almost_equal,
    assert_sampler_api,
    assert_sampleset_energies,
    load_sampler_bqm_tests,
)

from diffuco.integrations.dimod_sampler import DiffUCOSampler, as_qubo  # noqa: E402


@pytest.fixture(scope="module")
def sampler() -> DiffUCOSampler:
    return DiffUCOSampler(device="cpu")


@load_sampler_bqm_tests(cache(DiffUCOSampler))  # one for all, as it loads a model
class TestConformance(unittest.TestCase):
    """What dimod asks of every sampler, on its own models, with every kind of biases and vartype."""


def random_model(num_variables: int, vartype: str, seed: int):
    rng = np.random.default_rng(seed)
    model = dimod.BinaryQuadraticModel(vartype)
    for i in range(num_variables):
        model.add_linear(f"v{i}", rng.normal())
        for j in range(i):
            if rng.random() < 0.4:
                model.add_quadratic(f"v{i}", f"v{j}", rng.normal())
    model.offset = 3.5
    return model


def test_it_is_a_sampler_and_public(sampler):
    assert diffuco.DiffUCOSampler is DiffUCOSampler
    assert_sampler_api(sampler)
    assert sampler.properties == {"model": "qubo-random", "device": "cpu"}
    assert set(sampler.parameters) == {"num_reads", "seed", "step_factor"}


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
@pytest.mark.parametrize("num_variables", [0, 1, 2, 25])
def test_energies_are_those_of_the_model(sampler, vartype, num_variables):
    model = random_model(num_variables, vartype, seed=0)
    found = sampler.sample(model, num_reads=5, seed=0)
    assert_sampleset_energies(found, model)
    assert found.vartype is model.vartype
    assert len(found) == 5
    assert set(found.variables) == set(model.variables)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_the_best_of_a_few_reads_is_the_optimum_of_small_models(sampler, vartype):
    for seed in range(4):
        model = random_model(10, vartype, seed)
        best = dimod.ExactSolver().sample(model).first.energy
        assert sampler.sample(model, num_reads=8, seed=0).first.energy == pytest.approx(best)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_answers_do_not_depend_on_the_unit_of_energy(sampler, scale):
    model = random_model(10, "SPIN", seed=1)
    best = dimod.ExactSolver().sample(model).first.sample
    scaled = model.copy()
    scaled.scale(scale)
    assert sampler.sample(scaled, seed=0).first.sample == best


def test_qubos_and_ising_models(sampler):
    quadratic = {(0, 0): -1, (0, 1): 2, (1, 1): -3}
    found = sampler.sample_qubo(quadratic, num_reads=3, seed=1)
    assert found.first.energy == -3
    assert_sampleset_energies(found, dimod.BinaryQuadraticModel.from_qubo(quadratic))
    found = sampler.sample_ising({"a": 0.5}, {("a", "b"): -1}, num_reads=3, seed=1)
    assert found.first.energy == -1.5
    assert_sampleset_energies(found, dimod.BinaryQuadraticModel.from_ising({"a": 0.5}, {("a", "b"): -1}))


def test_a_seed_repeats_a_run_and_none_does_not(sampler):
    model = random_model(40, "SPIN", seed=2)
    first, again, other = (sampler.sample(model, num_reads=4, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(first.record.sample, again.record.sample)
    assert first.info["seed"] == 7 != other.info["seed"]
    seeds = {sampler.sample(model, num_reads=1).info["seed"] for _ in range(3)}
    assert len(seeds) == 3


def test_info_tells_what_found_it_and_timing(sampler):
    info = sampler.sample(random_model(5, "BINARY", seed=0), num_reads=2, seed=3).info
    assert info["found_by"] == "qubo-random"
    assert info["seed"] == 3
    assert set(info["timing"]) == {"preprocessing_ns", "sampling_ns", "postprocessing_ns"}
    assert all(value > 0 for value in info["timing"].values())


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_without_a_number_of_reads_the_one_best_state_is_the_answer(sampler, vartype):
    model = dimod.BinaryQuadraticModel(vartype)
    model.add_linear_from({"a": -1.0, "b": 0.5, "c": 1.0})
    model.add_quadratic_from({("a", "b"): 1.0, ("b", "c"): -2.0})
    found = sampler.sample(model, seed=0)
    assert_sampleset_energies(found, model)
    assert (len(found), found.info["found_by"]) == (1, "enumeration")
    assert found.first.energy == pytest.approx(dimod.ExactSolver().sample(model).first.energy)
    assert found.vartype is model.vartype
    sampled = sampler.sample(model, step_factor=1, seed=0)
    assert (len(sampled), sampled.info["found_by"]) == (8, "qubo-random")


def test_a_model_of_ones_own_draws_the_reads(models):
    sampler = DiffUCOSampler(models["qubo"], device="cpu")
    assert sampler.properties["model"] == str(models["qubo"])
    found = sampler.sample_ising({"a": 0.5}, {("a", "b"): -1}, num_reads=3, seed=1)
    assert (len(found), found.info["found_by"]) == (3, str(models["qubo"]))
    with pytest.raises(InputError, match="trained for mis, not qubo"):
        DiffUCOSampler(models["mis"], device="cpu")


def test_options_that_are_not_known_are_warned_of_and_senseless_ones_refused(sampler):
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning, match="chain_strength"):
        sampler.sample_ising({"a": 1}, {}, chain_strength=2)
    with pytest.raises(ValueError, match="give a whole number, 1 or more"):
        sampler.sample_ising({"a": 1}, {}, num_reads=0)
    with pytest.raises(InputError, match="weights must be finite"):
        sampler.sample_ising({"a": float("nan")}, {})


def test_the_graph_is_the_model_without_its_constant():
    model = random_model(8, "SPIN", seed=3)
    graph = as_qubo(model)
    again = dimod.BinaryQuadraticModel("BINARY")
    again.add_linear_from(dict(zip(graph.labels, graph.node_weights.tolist(), strict=True)))
    for (i, j), weight in zip(graph.edges.tolist(), graph.edge_weights.tolist(), strict=True):
        again.add_quadratic(graph.labels[i], graph.labels[j], weight)
    again.offset = model.change_vartype("BINARY", inplace=False).offset
    assert_bqm_almost_equal(again, model.change_vartype("BINARY", inplace=False))


def test_without_dimod_the_message_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def without_dimod(name, *arguments, **keywords):
        if name == "dimod":
            raise ImportError(name)
        return real_import(name, *arguments, **keywords)

    monkeypatch.delitem(sys.modules, "diffuco.integrations.dimod_sampler")
    monkeypatch.setattr(builtins, "__import__", without_dimod)
    with pytest.raises(InputError, match="run pip install"):
        importlib.import_module("diffuco.integrations.dimod_sampler")
