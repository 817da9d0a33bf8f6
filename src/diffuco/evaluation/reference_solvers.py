"""The reference of one graph: which solvers look for its objective and its bound, and how they share the time.

Exact solvers come first. What they leave open is given to heuristics, and a heuristic's solution that meets the bound
is proven by it. Maximum cuts of more than a few nodes have no exact solver worth the time: several annealing runs
have to agree instead, and a semidefinite relaxation bounds what they may have missed.
"""

import math
from importlib import metadata

import numpy as np

from diffuco import __version__
from diffuco.methods.clique import largest_clique
from diffuco.methods.exact import ExactResult, solve_exact
from diffuco.methods import get_method, solve_with
from diffuco.methods.base import Deadline
from diffuco.methods.highs import solve_highs
from diffuco.methods.sdp import upper_bound
from diffuco.evaluation.reference_store import Reference
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem

WORKERS = 8
"""Threads of CP-SAT for one graph, also on fewer cores: each searches in its own way, and one of them is fast."""
EXACT_CUT_NODES = 50
"""CP-SAT cannot prove a maximum cut of larger graphs, and what it finds there is no reference."""
CP_SAT_DOMINATION_NODES = 500
"""Between BA-small, all of which CP-SAT proves, and BA-large, of which HiGHS proved graphs that CP-SAT left open."""
HEURISTICS = {"mis": ("kamis", "anneal"), "mds": ("anneal",), "max-clique": ("anneal",), "qubo": ("anneal",)}
"""Methods for what the exact solver leaves open; one that is not installed is left out."""
NUM_CUT_RUNS = 5
PACKAGES = {"cp-sat": "ortools", "highs": "scipy", "kamis": "chszlablib"}
"""Whose version is kept with a reference; other solvers are our own."""
ROUNDING = 1e-6
"""A bound this close above or below a whole number is taken as that number."""


def solve_reference(problem: str, graph: Graph, time_limit_s: float) -> Reference:
    """The best that can be said about a graph in the time given; the one place that chooses solvers.

    >>> solve_reference("max-clique", Graph.from_edges([(0, 1), (0, 2), (1, 2)]), 1.0)[:4]
    (3.0, 3.0, True, 'clique-search')
    """
    if problem == "max-clique" and graph.node_weights is None:
        return _from_exact("clique-search", largest_clique(graph, time_limit_s=time_limit_s), time_limit_s)
    if problem == "max-cut" and graph.num_nodes > EXACT_CUT_NODES:
        return _annealed_cut(graph, time_limit_s)
    if problem in HEURISTICS:
        return _exact_then_heuristics(problem, graph, time_limit_s)
    return _exact(problem, graph, time_limit_s)


def best_of(problem: str, earlier: Reference, later: Reference) -> Reference:
    """The better objective and the tighter bound of two references for one graph; a proof comes first."""
    sign = _sign(problem)
    better = min(later, earlier, key=lambda known: (sign * known.objective, not known.proven))
    bound = sign * max(sign * earlier.bound, sign * later.bound)
    proven = earlier.proven or later.proven or bound == better.objective
    limit = max(earlier.time_limit_s, later.time_limit_s)
    return better._replace(bound=better.objective if proven else bound, proven=proven, time_limit_s=limit)


def _exact_then_heuristics(problem: str, graph: Graph, time_limit_s: float) -> Reference:
    """An exact solver for half of the time; the other half is for the heuristics, if it proves nothing."""
    deadline = Deadline.after(time_limit_s)
    known = _exact(problem, graph, time_limit_s / 2)
    names = [name for name in HEURISTICS[problem] if get_method(name).missing() is None]
    names = [name for name in names if graph.node_weights is None or problem not in get_method(name).unweighted]
    for name in names:
        if not known.proven:
            known = best_of(problem, known, _searched(name, problem, graph, time_limit_s / 2 / len(names)))
    return known._replace(time_limit_s=time_limit_s, seconds=deadline.elapsed_s)


def _exact(problem: str, graph: Graph, time_limit_s: float) -> Reference:
    if problem == "mds" and graph.num_nodes > CP_SAT_DOMINATION_NODES:
        return _whole(problem, graph, _from_exact("highs", solve_highs(problem, graph, time_limit_s), time_limit_s))
    result = solve_exact(problem, graph, time_limit_s=time_limit_s, workers=WORKERS)
    return _from_exact("cp-sat", result, time_limit_s)


def _annealed_cut(graph: Graph, time_limit_s: float) -> Reference:
    """Annealing runs that share the time, and the bound of the relaxation, which takes a second or two on top."""
    deadline = Deadline.after(time_limit_s)
    runs = [
        _searched("anneal", "max-cut", graph, time_limit_s / NUM_CUT_RUNS, seed).objective
        for seed in range(NUM_CUT_RUNS)
    ]
    found = Reference(
        objective=max(runs),
        bound=upper_bound(graph),
        proven=False,
        solver="anneal",
        version=_version("anneal"),
        time_limit_s=time_limit_s,
        seconds=deadline.elapsed_s,
        runs=NUM_CUT_RUNS,
        agreeing=int(np.isclose(runs, max(runs)).sum()),
    )
    return _whole("max-cut", graph, found)


def _searched(method: str, problem: str, graph: Graph, time_limit_s: float, seed: int = 0) -> Reference:
    """What a heuristic finds, which bounds nothing."""
    (found,) = solve_with(method, problem, [graph], seed=seed, device="cpu", time_limit_s=time_limit_s)
    unbounded = -_sign(problem) * math.inf
    return Reference(found.objective, unbounded, False, method, _version(method), time_limit_s, time_limit_s)


def _from_exact(solver: str, result: ExactResult, time_limit_s: float) -> Reference:
    objective, bound, proven = result.objective, result.bound, result.proven
    return Reference(objective, bound, proven, solver, _version(solver), time_limit_s, result.seconds)


def _whole(problem: str, graph: Graph, known: Reference) -> Reference:
    """The bound rounded to what an objective can be, where all of them are whole numbers."""
    weights = graph.edge_weights if problem == "max-cut" else graph.node_weights
    if known.proven or not math.isfinite(known.bound) or (weights is not None and (weights % 1).any()):
        return known
    bound = float(math.floor(known.bound + ROUNDING) if _sign(problem) < 0 else math.ceil(known.bound - ROUNDING))
    return known._replace(bound=bound, proven=bound == known.objective)


def _sign(problem: str) -> int:
    return -1 if get_problem(problem).sense == "max" else 1


def _version(solver: str) -> str:
    try:
        return metadata.version(PACKAGES[solver]) if solver in PACKAGES else __version__
    except metadata.PackageNotFoundError:  # KaMIS as a program
        return "unknown"
