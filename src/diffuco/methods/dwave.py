"""Simulated annealing and tabu search of dwave-samplers, on the problem as a QUBO (the extra `dwave`).

Both need a quadratic energy, so Minimum Dominating Set is not for them.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint
from diffuco.graphs.batch import SparseBatch
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph, beside, repair
from diffuco.problems import Problem, QuadraticForm
from diffuco.problems.linear_model import pairs_without_edge

NUM_READS, NUM_SWEEPS = 30, 1000
PROBE_SWEEPS = 10
TABU_RESTARTS = 20
MAX_TABU_NODES = 5_000
"""Its matrix is dense: 20,000 nodes took 15 GiB, and a minute and a half before the search began."""


class DwaveMethod(GraphByGraph):
    """What the samplers have in common."""

    time_limit = "used"

    def solves(self, problem: Problem) -> bool:
        """Problems with a quadratic energy."""
        return problem.is_quadratic

    def missing(self) -> str | None:
        """dimod and dwave-samplers."""
        is_there = find_spec("dimod") and find_spec("dwave")
        return None if is_there else f"dimod and dwave-samplers; {install_hint('dwave')}"


class SimulatedAnnealing(DwaveMethod):
    """30 reads of 1,000 sweeps; given a time limit, rounds of 30 reads that each cool half as fast as the last."""

    name = "sa"
    summary = "simulated annealing of dwave-samplers, 30 reads of 1,000 sweeps unless given a time limit"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Anneal from random states."""
        bqm, sampler = binary_quadratic_model(problem, graph), _samplers().SimulatedAnnealingSampler()
        seeds = _seeds(seed)
        if not (bqm.num_interactions or any(bqm.linear.values())):
            # Every state is as good; the sampler would warn that nothing can be annealed.
            return repair(problem, graph, np.zeros((graph.num_nodes, 1), dtype=np.bool_))
        if deadline.limit_s is None:
            found = _sample(sampler, bqm, num_reads=NUM_READS, num_sweeps=NUM_SWEEPS, seed=next(seeds))
            return repair(problem, graph, _states(found))
        # Reads cannot be interrupted, so a short one tells how many sweeps a read can have.
        probe = Deadline.after(None)
        parts = [_states(sampler.sample(bqm, num_reads=1, num_sweeps=PROBE_SWEEPS, seed=next(seeds)))]
        sweeps_per_s = PROBE_SWEEPS / probe.elapsed_s
        num_sweeps = int(min(NUM_SWEEPS, sweeps_per_s * deadline.remaining_s))
        while num_sweeps and not deadline.is_over:
            found = _sample(
                sampler,
                bqm,
                num_reads=NUM_READS,
                num_sweeps=num_sweeps,
                seed=next(seeds),
                interrupt_function=lambda: deadline.is_over,
            )
            parts.append(_states(found))
            # Where there is time for more rounds, slower cooling finds more than more reads do.
            num_sweeps = int(min(2 * num_sweeps, sweeps_per_s * deadline.remaining_s))
        return repair(problem, graph, np.hstack(parts))


class TabuSearch(DwaveMethod):
    """One search with 20 restarts or, given a time limit, one that takes all of it."""

    name = "tabu"
    summary = "tabu search of dwave-samplers, 20 restarts unless given a time limit"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Search from a random state."""
        if graph.num_nodes > MAX_TABU_NODES:
            raise InputError(f"tabu takes at most {MAX_TABU_NODES} nodes, {graph} has more; try sa")
        bqm, sampler = binary_quadratic_model(problem, graph), _samplers().TabuSampler()
        seed = next(_seeds(seed))
        if deadline.limit_s is None:
            found = _sample(sampler, bqm, seed=seed, timeout=None, num_restarts=TABU_RESTARTS)
        else:
            found = _sample(sampler, bqm, seed=seed, timeout=max(1, int(1000 * deadline.remaining_s)))
        return repair(problem, graph, _states(found))


def binary_quadratic_model(problem: Problem, graph: Graph) -> Any:
    """The energy of a problem on a graph, up to a constant, as a `dimod.BinaryQuadraticModel`."""
    import dimod

    form = problem.form(SparseBatch.from_graphs([graph]))
    assert isinstance(form, QuadraticForm)
    weights = np.ones(graph.num_edges)
    if isinstance(form.edges, SparseBatch) and form.edges.weights is not None:
        is_once = np.repeat(np.arange(graph.num_nodes), graph.degrees) < graph.csr.indices
        weights = form.edges.weights.double().numpy()[is_once]
    pairs, couplings = graph.edges, form.edge * weights + form.pair
    if form.pair:
        others = pairs_without_edge(graph)
        pairs = np.concatenate([pairs, others])
        couplings = np.concatenate([couplings, np.full(len(others), form.pair)])
        # In a clique the two terms cancel along edges.
        pairs, couplings = pairs[couplings != 0], couplings[couplings != 0]
    linear = form.linear[: graph.num_nodes].double().numpy()
    return dimod.BinaryQuadraticModel.from_numpy_vectors(linear, (*pairs.T, couplings), 0.0, dimod.BINARY)


def _sample(sampler: Any, bqm: Any, **options: Any) -> Any:
    """What a sampler finds, in a thread of its own, so that Ctrl+C ends the wait for it."""
    return beside(lambda: sampler.sample(bqm, **options)).result()


def _samplers() -> Any:
    from dwave import samplers

    return samplers


def _states(found: Any) -> NDArray[np.bool_]:
    """Samples of a sample set, nodes in their own order. [num_nodes, S]."""
    order = np.argsort(np.asarray(found.variables))
    return np.ascontiguousarray(found.record.sample[:, order].T.astype(np.bool_))


def _seeds(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    while True:
        yield int(rng.integers(2**31))
