"""The contest of searches on one large graph: who goes on, what is kept, and what runs beside it."""

import numpy as np
import pytest
import torch

from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.generate import ba_graph
from diffuco.methods import auto as automatic
from diffuco.methods.anneal import FlipAnnealing, num_chains
from diffuco.methods.base import Deadline, Settings
from diffuco.methods.bifurcation import Bifurcation
from diffuco.methods.contest import TRIAL_SHARE, contest
from diffuco.methods.highs import Highs
from diffuco.methods.model import AnnealedSamples
from diffuco.problems import get_problem

MIS = get_problem("mis")
GRAPH = ba_graph(60, 3, np.random.default_rng(0))
BEST = Highs().solve_one(MIS, GRAPH, 0, Deadline.after(None))


@pytest.fixture
def finding(monkeypatch):
    """Lets searches find so many independent nodes, call by call; returns the list of their names and limits."""

    def prepare(**sizes: list[int]) -> list[tuple[str, float | None]]:
        calls: list[tuple[str, float | None]] = []

        def anneal(self, problem, batch, generator, deadline):
            name = type(self).__name__
            calls.append((name, deadline.limit_s))
            states = torch.zeros(batch.num_rows, 1)
            states[np.flatnonzero(BEST.chosen)[: sizes[name].pop(0)]] = 1
            return states

        for search in (FlipAnnealing, Bifurcation, AnnealedSamples):
            monkeypatch.setattr(search, "anneal", anneal)
        monkeypatch.setattr(AnnealedSamples, "one_pass", lambda self, _, batch, __: torch.zeros(batch.num_rows, 1))
        monkeypatch.setattr("diffuco.methods.contest.decoded", lambda *given, **told: [(given[3], told)])
        return calls

    return prepare


def test_what_is_ahead_in_its_trial_gets_the_rest_of_the_time(finding):
    calls = finding(FlipAnnealing=[5], Bifurcation=[3], AnnealedSamples=[8, 9])
    states, told = contest(MIS, GRAPH, Settings(time_limit_s=100.0))
    assert states.sum() == 9
    assert told["found_by"].startswith("mis-")
    assert told["reason"] == "ahead of anneal and bifurcation on this graph"
    assert [name for name, _ in calls] == ["FlipAnnealing", "Bifurcation", "AnnealedSamples", "AnnealedSamples"]
    assert [limit for _, limit in calls[:3]] == [100 * TRIAL_SHARE] * 3
    assert 50 < calls[3][1] <= 100


def test_the_best_is_kept_whoever_found_it(finding):
    calls = finding(FlipAnnealing=[9, 4], Bifurcation=[3], AnnealedSamples=[8])
    states, told = contest(MIS, GRAPH, Settings(time_limit_s=100.0))
    assert (states.sum(), told["found_by"], calls[-1][0]) == (9, "anneal", "FlipAnnealing")


def test_without_a_limit_each_searches_once(finding):
    calls = finding(FlipAnnealing=[5], Bifurcation=[6], AnnealedSamples=[3])
    states, told = contest(MIS, GRAPH, Settings())
    assert (states.sum(), told["found_by"]) == (6, "bifurcation")
    assert [limit for _, limit in calls] == [None] * 3


def test_a_settled_contest_ends(finding):
    calls = finding(FlipAnnealing=[5], Bifurcation=[6], AnnealedSamples=[3])
    contest(MIS, GRAPH, Settings(time_limit_s=100.0), lambda: len(calls) == 2)
    assert len(calls) == 2


@pytest.mark.parametrize("problem", ["mis", "max-cut", "mds"])
def test_the_same_seed_finds_the_same_where_no_clock_decides(problem):
    graph = ba_graph(30, 2, np.random.default_rng(1))
    first, second = (contest(get_problem(problem), graph, Settings(seed=3)) for _ in range(2))
    assert first.feasible
    assert (first.objective, first.found_by) == (second.objective, second.found_by)
    assert np.array_equal(first.chosen, second.chosen)


def test_a_proof_beside_the_contest_counts(monkeypatch):
    def prove(problem, graph, seed, limit_s):
        return BEST

    monkeypatch.setattr(automatic, "try_proof", prove)
    for limit_s in (None, 1.0):
        solution = automatic.contested(MIS, GRAPH, Settings(time_limit_s=limit_s))
        assert (solution.optimal, solution.found_by) == (True, "highs")
    unproven = automatic.contested(MIS, GRAPH, Settings(time_limit_s=0.1))  # no time for a proof
    assert (unproven.optimal, unproven.feasible) == (False, True)


def test_large_graphs_on_a_gpu_are_contested():
    large = ba_graph(automatic.LARGE_NODES, 2, np.random.default_rng(0))
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    assert automatic.is_contested(MIS, large, gpu)
    assert not automatic.is_contested(MIS, large, cpu)
    assert not automatic.is_contested(MIS, GRAPH, gpu)
    assert not automatic.is_contested(get_problem("max-clique"), large, gpu)


def test_a_gpu_gives_large_sparse_graphs_few_chains():
    batch = SparseBatch.from_graphs([ba_graph(2000, 2, np.random.default_rng(0))])
    object.__setattr__(batch, "largest", 100_000)
    assert num_chains(MIS, batch, Deadline.after(1.0)) == torch.get_num_threads()
