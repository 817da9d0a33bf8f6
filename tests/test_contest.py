"""The contest of searches on one large graph: who goes on, what is kept, and what runs beside it."""

import time
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from diffuco import ops
from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.families import regular_graph
from diffuco.graphs.generate import ba_graph
from diffuco.inference.answers import unit_batch
from diffuco.inference.refinement import Schedule
from diffuco.methods import auto as automatic
from diffuco.methods.anneal import num_chains
from diffuco.methods.annealer import decoded
from diffuco.methods.base import Deadline, Settings
from diffuco.methods.contest import contest, contest_on_cpu
from diffuco.methods.highs import Highs
from diffuco.methods.model import AnnealedSamples, Pass, solver_with
from diffuco.problems import get_problem

MDS = get_problem("mds")


@cache  # not while tests are collected, which every process does
def hubs():
    return ba_graph(60, 3, np.random.default_rng(0))


@cache
def smallest():
    return Highs().solve_one(MDS, hubs(), 0, Deadline.after(None))


@pytest.fixture
def given(monkeypatch):
    """Samples of one model are the best solution, those of the others are empty; annealing changes nothing."""
    drawn: list[str] = []

    def draw(self, problem, batch, count, step_factor, seeds):
        drawn.append(f"{self.found_by} {count} x{step_factor}")
        is_best = self.found_by == "mds-sparse-48"
        states = torch.from_numpy(smallest().chosen * is_best).float()[:, None].repeat(1, count)
        return states, {"sample": 0.0, "decode": 0.0}

    monkeypatch.setattr(AnnealedSamples, "_draw", draw)
    monkeypatch.setattr("diffuco.methods.anneal.anneal", lambda problem, batch, states, *_, **__: states)
    return drawn


@pytest.fixture
def _few_chains(monkeypatch):
    """Few samples are drawn, for few chains."""
    monkeypatch.setattr("diffuco.methods.model.num_chains", lambda *_: 5)


def test_the_model_with_the_best_pass_draws_the_samples(given):
    for limit_s in (None, 0.5):
        given.clear()
        solution = contest(MDS, hubs(), None, Settings(time_limit_s=limit_s))
        assert (solution.objective, solution.found_by) == (smallest().objective, "mds-sparse-48")
        assert solution.reason == "ahead of anneal on this graph"
        passes = {text for text in given if text.endswith(" 1 x1")}
        assert passes == {"mds-ba-large 1 x1", "mds-ba-small-48 1 x1", "mds-sparse-48 1 x1"}
        samples = [text for text in given if text.endswith("x3")]
        assert set(samples) == {"mds-sparse-48 32 x3"}
        assert len(samples) == (1 if limit_s is None else 4)


def test_the_clock_starts_after_compiling(given, monkeypatch):
    monkeypatch.setattr("diffuco.methods.contest._used", set())
    compiled = []

    def slow(self, problem, batch, deadline):
        compiled.append(self.found_by)
        time.sleep(0.9)  # longer than models may take

    monkeypatch.setattr(AnnealedSamples, "compile", slow)
    for _ in range(2):
        given.clear()
        contest(MDS, hubs(), None, Settings(time_limit_s=6.0), lambda: True)
        assert len([text for text in given if text.endswith(" 1 x1")]) == 3  # each model had its turn
        assert len(compiled) == len(set(compiled)) == 3


@pytest.mark.parametrize("ahead", [True, False])
def test_chains_from_coin_flips_go_on_if_they_are_soon_ahead(given, monkeypatch, ahead):
    starts = []

    def anneal(problem, batch, states, schedule, *, seed, heat):
        starts.append((states, heat))
        is_best = torch.arange(32) == (20 if ahead else 10)
        return torch.where(is_best, torch.from_numpy(smallest().chosen)[:, None], True).float()

    monkeypatch.setattr("diffuco.methods.anneal.anneal", anneal)
    monkeypatch.setattr("diffuco.methods.contest.annealed_on", lambda problem, batch: "cuda")
    solution = contest(MDS, hubs(), None, Settings(time_limit_s=0.3))
    finders = ("anneal", "mds-sparse-48")
    first, second = finders if ahead else finders[::-1]
    assert (solution.found_by, solution.reason) == (first, f"ahead of {second} on this graph")
    states, heat = starts[0]
    assert torch.equal(states[:, :16], states[:, :1].expand(-1, 16))
    assert 0.3 < states[:, 16:].mean() < 0.7
    assert float(heat[:16].max()) < 1.0
    assert heat[16:].tolist() == [1.0] * 16
    assert (0.3 < starts[-1][0].mean() < 0.7) == ahead


def test_chains_of_a_large_graph_start_cold_to_hot(given, monkeypatch):
    calls = []

    def anneal(problem, batch, states, schedule, *, seed, heat):
        calls.append((states, schedule, heat))
        return states

    monkeypatch.setattr("diffuco.methods.anneal.anneal", anneal)
    contest(MDS, hubs(), None, Settings())
    monkeypatch.setattr("diffuco.methods.model.LARGE_NODES", 60)
    contest(MDS, hubs(), None, Settings())
    (_, small, none), (states, schedule, heat) = calls
    assert torch.equal(states, torch.from_numpy(smallest().chosen).float()[:, None].expand(-1, 32))
    assert none is None
    assert torch.equal(heat, heat.sort().values)
    assert (float(heat[0]), float(heat[-1])) == pytest.approx((0.7 * (0.08 / 0.7) ** (31 / 32), 0.7))
    assert small == schedule == Schedule(1000, MDS.annealing.temperature)


def test_without_memory_for_samples_it_anneals(monkeypatch):
    monkeypatch.setattr("diffuco.methods.contest.fits", lambda need, device: False)
    solution = contest(MDS, hubs(), None, Settings())
    assert (solution.found_by, solution.feasible) == ("anneal", True)
    assert solution.reason == "the memory is too small for samples of a model"


def test_a_settled_contest_does_not_anneal(given, monkeypatch):
    monkeypatch.setattr("diffuco.methods.anneal.anneal", None)
    assert contest(MDS, hubs(), None, Settings(time_limit_s=1.0), lambda: True).objective == smallest().objective


CUT = get_problem("max-cut")
NARROW = "max-cut-hubs-24"


@pytest.fixture
def steps_take(monkeypatch):
    """Tell how long a step of the narrow model takes; see how often samples take their steps."""
    factors: list[int] = []

    def sample(self, problem, batch, step_factor, seeds):
        factors.append(step_factor)
        return torch.ones(batch.num_rows, 1)

    def told(seconds):
        monkeypatch.setattr("diffuco.methods.contest.timed_step", lambda model, batch, clock: (clock, seconds))
        factors.clear()
        return factors

    monkeypatch.setattr(AnnealedSamples, "sample", sample)
    return told


@pytest.mark.parametrize("column", [0, 1])
def test_half_of_the_chains_on_a_cpu_start_from_a_sample(steps_take, monkeypatch, column):
    steps_take(1e-6)
    cut = torch.from_numpy(smallest().chosen).float()[:, None]
    calls = []

    def anneal(problem, batch, states, schedule, *, seed, heat):
        calls.append((states, heat))
        return torch.where(torch.arange(states.shape[1]) == column, cut, 1.0)

    monkeypatch.setattr("diffuco.methods.model.num_chains", lambda *_: 2)
    monkeypatch.setattr("diffuco.methods.anneal.anneal", anneal)
    told = []
    settings = Settings(time_limit_s=1.0, on_solved=told.append)
    solution = contest_on_cpu(CUT, hubs(), None, NARROW, settings)
    states, heat = calls[0]
    assert states[:, 0].eq(1).all()
    assert 0.2 < states[:, 1].mean() < 0.8
    assert heat.tolist() == pytest.approx([0.7 * (0.08 / 0.7) ** 0.5, 1.0])
    finders = (NARROW, "anneal")
    assert (solution.found_by, solution.reason) == (finders[column], f"ahead of {finders[1 - column]} on this graph")
    assert solution.objective >= CUT.objective(unit_batch(CUT, [hubs()]), cut).item()  # after decoding
    assert told == [1]


def test_a_sample_on_a_cpu_takes_its_steps_as_often_as_there_is_time(steps_take):
    for step_s, expected in ((1e-9, [12]), (0.75 * 0.5 / 24 / 3.5, [3]), (1.0, [])):
        factors = steps_take(step_s)
        solution = contest_on_cpu(CUT, hubs(), None, NARROW, Settings(time_limit_s=0.5))
        assert factors == expected
        if not expected:
            assert (solution.found_by, solution.feasible) == ("anneal", True)
            assert solution.reason == f"a sample of {NARROW} would take too much time or memory"


def test_a_sample_on_a_cpu_is_of_the_model(monkeypatch):
    monkeypatch.setattr("diffuco.methods.contest.anneal_parts", lambda chains, clock: chains.start())  # one round
    monkeypatch.setattr("diffuco.methods.contest.MOST_REPEATED", 1)
    monkeypatch.setattr("diffuco.methods.contest.timed_step", lambda model, batch, clock: (clock, 1e-6))
    first, second = (contest_on_cpu(CUT, hubs(), None, NARROW, Settings(seed=1, time_limit_s=2.0)) for _ in range(2))
    assert first.found_by == NARROW  # coin flips are not annealed here
    assert first.objective == second.objective


def test_auto_takes_samples_on_a_cpu_for_large_graphs_with_hubs():
    large = ba_graph(automatic.LARGE_NODES, 4, np.random.default_rng(0))
    heavy = replace(large, edge_weights=np.full(large.num_edges, 2.0))
    even = regular_graph(automatic.LARGE_NODES, 8, np.random.default_rng(0))

    def narrow(graph, problem="max-cut", limit_s=1.0, device="cpu"):
        (search,) = automatic.plan(get_problem(problem), [graph], torch.device(device), limit_s)
        return search.narrow

    assert narrow(large) == NARROW
    dense = ba_graph(automatic.LARGE_NODES, 6, np.random.default_rng(0))
    others = [
        narrow(hubs()),
        narrow(even),
        narrow(heavy),
        narrow(dense),
        narrow(large, "mds"),
        narrow(large, limit_s=None),
    ]
    assert [*others, narrow(large, device="cuda"), narrow(large, limit_s=0.01)] == [None] * 8


def test_auto_cuts_a_large_graph_with_hubs_on_a_cpu(monkeypatch):
    asked = []

    def contested(problem, graph, core, name, settings):
        asked.append(name)
        return contest_on_cpu(problem, graph, core, name, settings)

    monkeypatch.setattr("diffuco.methods.contest.contest_on_cpu", contested)
    graph = ba_graph(automatic.LARGE_NODES, 4, np.random.default_rng(0))
    (solution,) = automatic.Automatic().solve(CUT, [graph], Settings(time_limit_s=1.0))
    assert (asked, solution.feasible) == ([NARROW], True)


@pytest.mark.usefixtures("_few_chains")
def test_little_time_repeats_the_best_samples():
    model = AnnealedSamples(solver_with(MDS, "mds-sparse", "cpu"), "")
    batch = unit_batch(MDS, [hubs(), hubs()])
    few = model.draw(MDS, batch, Deadline.after(1e-6), np.random.default_rng(0))
    assert torch.equal(few, few[:, :1].expand(-1, 5))
    many = model.draw(MDS, batch, Deadline.after(600.0), np.random.default_rng(0))
    energies = MDS.energy(batch, many)
    assert many.shape == (batch.num_rows, 5)
    assert torch.equal(energies, energies.sort(1).values)


def test_a_draw_has_no_more_samples_than_there_is_time_for(given):
    model = AnnealedSamples(solver_with(MDS, "mds-sparse-48", "cpu"), "")
    batch = unit_batch(MDS, [hubs()])
    for repeated_s, expected in ((1000.0, None), (290.0, 1), (100.0, 4), (1.0, 32)):
        given.clear()
        first = Pass(torch.zeros(batch.num_rows, 1), repeated_s)
        model.draw(MDS, batch, Deadline.after(600.0), np.random.default_rng(0), first)
        assert given[:1] == ([] if expected is None else [f"mds-sparse-48 {expected} x3"])


@pytest.mark.usefixtures("_few_chains")
@pytest.mark.parametrize("problem", ["mis", "max-cut", "mds"])
def test_the_same_seed_finds_the_same_where_no_clock_decides(problem):
    graph = ba_graph(30, 2, np.random.default_rng(1))
    first, second = (contest(get_problem(problem), graph, None, Settings(seed=3)) for _ in range(2))
    assert first.feasible
    assert (first.objective, first.found_by) == (second.objective, second.found_by)
    assert np.array_equal(first.chosen, second.chosen)


@pytest.mark.usefixtures("_few_chains")
def test_a_proof_beside_the_contest_counts(monkeypatch):
    def prove(problem, graph, seed, limit_s):
        return smallest()

    monkeypatch.setattr(automatic, "try_proof", prove)
    for limit_s in (None, 1.1):
        solution = automatic.contested(MDS, hubs(), Settings(time_limit_s=limit_s))
        assert (solution.optimal, solution.found_by) == (True, "highs")
    unproven = automatic.contested(MDS, hubs(), Settings(time_limit_s=0.1))  # no time for a proof
    assert (unproven.optimal, unproven.feasible) == (False, True)


def test_large_graphs_on_a_gpu_are_contested():
    large = ba_graph(automatic.LARGE_NODES, 2, np.random.default_rng(0))
    gpu, cpu = (SimpleNamespace(device=torch.device(name)) for name in ("cuda", "cpu"))
    assert automatic.is_contested(MDS, large, gpu)
    assert not automatic.is_contested(MDS, large, cpu)
    assert not automatic.is_contested(MDS, hubs(), gpu)
    assert not automatic.is_contested(get_problem("max-clique"), large, gpu)


def test_large_sparse_graphs_get_few_chains(monkeypatch):
    batch = SparseBatch.from_graphs([hubs()])
    monkeypatch.setattr(batch, "largest", 100_000)
    counts = {problem: num_chains(get_problem(problem), batch, Deadline.after(1.0)) for problem in ("mis", "mds")}
    assert set(counts.values()) == {torch.get_num_threads()}
    assert num_chains(MDS, batch, Deadline.after(None)) == 4
    monkeypatch.setattr(type(batch), "device", torch.device("cuda"))
    assert num_chains(get_problem("mis"), batch, Deadline.after(1.0)) == 10
    assert num_chains(MDS, batch, Deadline.after(1.0)) == torch.get_num_threads()  # so few rows are left to the CPU
    monkeypatch.setattr(ops, "COVER_ROWS", hubs().num_nodes)
    assert num_chains(MDS, batch, Deadline.after(1.0)) == 10
    monkeypatch.setattr(batch, "largest", 10_000_000)
    assert num_chains(get_problem("mis"), batch, Deadline.after(1.0)) == 1


def test_of_a_large_graph_only_the_best_states_are_decoded(monkeypatch):
    monkeypatch.setattr("diffuco.methods.annealer.DECODED_ROWS", 2 * hubs().num_nodes)
    batch = unit_batch(MDS, [hubs()])
    best = torch.from_numpy(smallest().chosen).float()
    states = torch.stack([torch.ones_like(best), best, torch.zeros_like(best)], dim=1)
    (solution,) = decoded(MDS, [hubs()], batch, states, Deadline.after(None), found_by="test", seed=0)
    assert solution.states.shape == (hubs().num_nodes, 2)
    assert solution.objective == smallest().objective
