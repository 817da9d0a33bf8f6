"""Annealing of large graphs part by part: where it is done, and that it gains."""

from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from diffuco.foundation.progress import following, report
from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.families import geometric_graph
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.refinement import Schedule, cooling
from diffuco.inference.rounds import best_parts, has_parts
from diffuco.methods import anneal as annealing
from diffuco.methods import annealer, base
from diffuco.methods.base import Deadline
from diffuco.problems import get_problem

PROBLEMS = ["mis", "max-cut", "mds"]
SWEEP_S = 1e-3


def stopped_clock(monkeypatch):
    """A clock for searches that goes on only where `now` is raised."""
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    for module in (base, annealer):
        monkeypatch.setattr(module, "time", clock)
    return clock


def annealed(problem, graph, limit_s, monkeypatch):
    """The energy that annealing ends with, and those of the rounds of parts on the way.

    Time passes only while sweeps run, so that the same rounds fit on a busy machine.
    """
    clock = stopped_clock(monkeypatch)
    batch, generator = SparseBatch.from_graphs([graph]), torch.Generator().manual_seed(0)
    energies, plain = [], annealing.anneal

    def spy(problem, batch, start, schedule, **rest):
        states = plain(problem, batch, start, schedule, **rest)
        clock.now += SWEEP_S * schedule.num_sweeps
        if schedule.num_sweeps == annealing.PART_SWEEPS and schedule.temperature < problem.annealing.temperature:
            energies.append(float(problem.energy(batch, states).min()))
        return states

    monkeypatch.setattr(annealing, "anneal", spy)
    start = partial(annealing.flip_coins, batch, 2, generator)
    chains = annealing.Chains(problem, batch, start, problem.annealing.temperature, generator, are_random=True)
    states = annealing.anneal_parts(chains, Deadline.after(limit_s))
    return float(problem.energy(batch, states)[0, 0]), float(problem.energy(batch, states).min()), energies


@pytest.mark.parametrize("name", PROBLEMS)
def test_parts_of_a_graph_with_short_cycles_are_searched(name, monkeypatch):
    graph = geometric_graph(4000, 8.0, np.random.default_rng(0))
    first, best, rounds = annealed(get_problem(name), graph, 1.5, monkeypatch)
    assert len(rounds) > 2
    assert first == best <= min(rounds)


def cold_states(problem, graph, count):
    """States that were annealed for a short time, one after the other, and their batch."""
    batch = SparseBatch.from_graphs([graph])
    schedule = Schedule(annealing.PART_SWEEPS, problem.annealing.temperature)
    coins = annealing.flip_coins(batch, count, torch.Generator().manual_seed(0))
    return annealing.anneal(problem, batch, coins, schedule), batch


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("is_told", [True, False])
def test_samples_with_parts_to_give_are_merged_first(name, is_told, monkeypatch):
    """All chains start from the first sample and stay there, so they have nothing to give each other."""
    problem, clock = get_problem(name), stopped_clock(monkeypatch)
    samples, batch = cold_states(problem, geometric_graph(4000, 8.0, np.random.default_rng(0)), 3)
    merged = float(problem.energy(batch, best_parts(problem, batch, samples))[0, 0])

    def stay(problem, batch, states, schedule, **_):
        clock.now += SWEEP_S * schedule.num_sweeps
        return samples[:, :1].expand_as(states)

    monkeypatch.setattr(annealing, "anneal", stay)
    start = partial(samples[:, :1].expand, -1, 3)
    chains = annealing.Chains(problem, batch, start, problem.annealing.temperature, torch.Generator())
    states = annealing.anneal_parts(chains, Deadline.after(1.0), samples if is_told else None)
    energies = problem.energy(batch, states)[0]
    assert states.shape == samples.shape
    assert float(energies[0]) == float(energies.min())
    assert (float(energies[0]) == merged) == is_told


def test_what_merging_gains_is_asked_of_states_that_differ():
    problem = get_problem("mis")
    samples, batch = cold_states(problem, geometric_graph(4000, 8.0, np.random.default_rng(0)), 2)
    first = samples[:, problem.energy(batch, samples)[0].argsort()]
    assert annealing.merging_pays(problem, batch, torch.cat([first[:, :1]] * 3 + [first[:, 1:]], dim=1))
    assert not annealing.merging_pays(problem, batch, first[:, :1].expand(-1, 3))


@pytest.mark.parametrize("name", PROBLEMS)
def test_others_are_annealed_as_a_whole(name, monkeypatch):
    graph = er_graph(4000, 8 / 4000, np.random.default_rng(0))
    _, _, rounds = annealed(get_problem(name), graph, 1.0, monkeypatch)
    assert not rounds


@pytest.mark.parametrize("name", PROBLEMS)
def test_short_chains_have_parts_to_give_where_cycles_are_short(name):
    problem, temperature = get_problem(name), get_problem(name).annealing.temperature
    gains = []
    for graph in (
        geometric_graph(4000, 8.0, np.random.default_rng(0)),
        er_graph(4000, 0.002, np.random.default_rng(0)),
    ):
        batch = SparseBatch.from_graphs([graph])
        states = annealing.flip_coins(batch, 2, torch.Generator().manual_seed(0))
        schedule = Schedule(annealer.GROWTH * annealing.FIRST_SWEEPS, temperature)
        states = annealing.anneal(problem, batch, states, schedule, seed=0)
        before, after = (problem.energy(batch, x).min() for x in (states, best_parts(problem, batch, states)))
        gains.append(float((before - after) / after.abs()))
    assert gains[0] > annealing.LEAST_GAIN
    assert gains[1] < annealing.LEAST_GAIN


def test_small_graphs_have_no_parts():
    few, many = (SparseBatch.from_graphs([Graph.from_edges([(0, 1)], count)]) for count in (1999, 2000))
    assert (has_parts(few), has_parts(many)) == (False, True)


@pytest.mark.parametrize(("num_nodes", "sweeps"), [(100, 20), (2**20, 20), (2**22, 5), (2**27, 1)])
def test_the_first_trial_of_a_huge_graph_is_short(monkeypatch, num_nodes, sweeps):
    lengths = []
    monkeypatch.setattr(annealing, "best_of_rounds", lambda *given: lengths.append(given[4]))
    batch = SimpleNamespace(largest=num_nodes)
    chains = annealing.Chains(get_problem("mis"), batch, lambda: None, 1.0, torch.Generator())
    annealing.anneal_until(chains, Deadline.after(1.0))
    assert lengths == [sweeps]


@pytest.mark.parametrize(("slower", "sweeps", "seconds"), [(1.0, 1000, 1.0), (2.5, 320, 1.0)])
def test_a_long_round_looks_at_the_clock_and_cools_to_the_end(monkeypatch, slower, sweeps, seconds):
    """Sweeps take twice the mean time at first and none at last; expected are 1,000 sweeps in a second."""
    clock, schedules = stopped_clock(monkeypatch), []

    def anneal(problem, batch, states, schedule, **rest):
        report("annealing a piece")
        schedules.append(schedule)
        clock.now += slower * SWEEP_S * schedule.num_sweeps * sum(schedule.span)
        return states

    monkeypatch.setattr(annealing, "anneal", anneal)
    batch = SparseBatch.from_graphs([Graph.from_edges([(0, 1)])])
    chains = annealing.Chains(get_problem("mis"), batch, lambda: torch.zeros(2, 3), 0.2, torch.Generator())
    told = []
    with following(told.append):
        annealing.anneal_in_pieces(chains, 1000, 1.0, 16)
    assert {seen.doing for seen in told} == {"annealing, sweeps"}
    assert told[-1].done == told[-1].total
    spans = [schedule.span for schedule in schedules]
    assert spans[0][0] == 1.0
    assert spans[-1][1] == pytest.approx(0.0)
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    assert sum(schedule.num_sweeps for schedule in schedules) == pytest.approx(sweeps, rel=0.1)
    assert clock.now == pytest.approx(seconds, rel=0.1)


def test_pieces_of_a_cooling_are_the_whole():
    whole = cooling(100, 0.3)
    pieces = [cooling(25, 0.3, (left, left - 0.25)) for left in (1.0, 0.75, 0.5, 0.25)]
    torch.testing.assert_close(torch.cat(pieces), whole)


@pytest.mark.parametrize("energy_s", [0.0, 0.1])
def test_rounds_end_early_where_decoding_will_take_long(monkeypatch, energy_s):
    clock = stopped_clock(monkeypatch)
    batch = SparseBatch.from_graphs([Graph.from_edges([(0, 1)])])
    states, lengths = torch.zeros(2, 3), []

    def energy(batch, found):
        clock.now += energy_s
        return found.sum(0, keepdim=True)

    def run(length, expected_s):
        lengths.append(length)
        clock.now += SWEEP_S * length
        return states

    problem = SimpleNamespace(name="slow", energy=energy)
    best = annealer.best_of_rounds(Deadline.after(10.0), problem, batch, run, 20, 10**6)
    assert torch.equal(best, states)
    last_s = annealer.ENDING * energy_s
    assert 8.5 - last_s < clock.now < 10.0 + len(lengths) * energy_s - last_s
