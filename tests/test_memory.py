import pytest
import torch

from diffuco.foundation.errors import InputError
from diffuco.graphs.formats import write_graph
from diffuco.graphs.graph import Graph
from diffuco.inference import memory
from diffuco.inference.memory import check_fits, free_bytes, requirement
from diffuco.inference.solver import Solver
from test_solver import untrained

CPU = torch.device("cpu")


def test_samples_of_a_large_graph_are_split():
    large = Graph.from_edges([], num_nodes=1_000_000)
    need = requirement(large, num_samples=8, num_hidden=64)
    assert need.samples_at_once == 2
    assert 4 * 2**30 < need.num_bytes < 6 * 2**30
    assert requirement(large, num_samples=80, num_hidden=64).num_bytes < 2 * need.num_bytes
    assert requirement(large, num_samples=8, num_hidden=64, engine="fused").num_bytes < need.num_bytes / 2


def test_a_part_needs_less_than_the_whole():
    large = Graph.from_edges([], num_nodes=1_000_000)
    whole, *parts = (requirement(large, 8, engine="rowwise", num_parts=count) for count in (1, 2, 8))
    assert {part.samples_at_once for part in parts} == {whole.samples_at_once}  # or the samples would be others
    assert whole.num_bytes > parts[0].num_bytes > parts[1].num_bytes


def test_splitting_gives_as_many_feasible_samples(monkeypatch):
    monkeypatch.setattr(memory, "ROWS_AT_ONCE", 16)
    ring = Graph.from_edges([(i, (i + 1) % 7) for i in range(7)])
    solver = Solver("mis", untrained("mis"), device="cpu")
    assert solver.requirement(ring, 5).samples_at_once == 2
    for decode in ("none", "ce"):
        (solution,) = solver.solve([ring], samples=5, decode=decode)
        assert len(solution.energies) == 5
    assert solution.feasible


def test_what_cannot_fit_is_refused_with_a_remedy(monkeypatch):
    graph = Graph.from_edges([], num_nodes=1_000_000, name="big")
    need = requirement(graph, num_samples=8, num_hidden=64)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**20)
    monkeypatch.setattr(memory, "LARGE_BYTES", 2**20)  # the untrained network is small
    with pytest.raises(InputError, match=r"big: 1000000 nodes .* GiB.*lower --samples"):
        check_fits(graph, need, CPU)
    with pytest.raises(InputError, match="big"):
        Solver("mis", untrained("mis"), device="cpu").solve([graph])
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**36)
    check_fits(graph, need, CPU)


def test_a_stream_keeps_its_samples_together_and_is_refused_where_they_do_not_fit(monkeypatch):
    monkeypatch.setattr(memory, "ROWS_AT_ONCE", 16)
    ring = Graph.from_edges([(i, (i + 1) % 7) for i in range(7)], name="ring")
    solver = Solver("mis", untrained("mis"), device="cpu")
    whole, parts = solver.requirement(ring, 5, split=False), solver.requirement(ring, 5)
    assert whole.samples_at_once == 5
    assert whole.num_bytes > parts.num_bytes
    assert {step.states.shape for step in solver.stream(ring, samples=5)} == {(7, 5)}
    monkeypatch.setattr(memory, "LARGE_BYTES", 1)
    monkeypatch.setattr(memory, "free_bytes", lambda device: parts.num_bytes / memory.USABLE_SHARE + 1)
    solver.solve([ring], samples=5)
    with pytest.raises(InputError, match=r"ring: 7 nodes and 7 edges need .*; lower --samples"):
        solver.stream(ring, samples=5)  # before the first step
    next(solver.stream(ring, samples=1))


def test_free_memory_is_a_sensible_number():
    assert 2**20 < free_bytes(CPU) < 2**45


def test_solve_announces_a_large_graph(monkeypatch, tmp_path, run, models):
    monkeypatch.setattr(memory, "LARGE_BYTES", 1000)
    write_graph(Graph.from_edges([(0, 1), (1, 2)]), tmp_path / "path.clq")
    outcome = run("solve", "mis", tmp_path / "path.clq", "--model", models["mis"])
    assert outcome.code == 0
    assert "note: " in outcome.err
    assert "GiB, 8 of 8 samples at a time" in outcome.err
