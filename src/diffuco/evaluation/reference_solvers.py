"""The reference of one graph: which solvers look for its objective and its bound, and how they share the time.

Exact solvers come first. Heuristics take what they leave open; a heuristic solution that meets the bound is proven by
it. No exact solver is worth the time for maximum cuts of more than a few nodes. Instead, several annealing runs must
agree, and a semidefinite relaxation bounds what they may have missed.
"""

import math
from importlib import metadata

import numpy as np

from diffuco.evaluation.reference_store import Reference
from diffuco.foundation.errors import InputError
from diffuco.foundation.version import __version__
from diffuco.graphs.graph import Graph
from diffuco.methods import Settings, get_method
from diffuco.methods.base import Deadline
from diffuco.methods.clique import CliqueSearch
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.exact import ExactMethod
from diffuco.methods.highs import Highs
from diffuco.methods.sdp import upper_bound
from diffuco.problems import MaximumClique, MaximumCut, MinimumDominatingSet, Problem, get_problem

EXACT_CUT_NODES = 50
"""CP-SAT cannot prove maximum cuts of larger graphs, and what it finds there is too weak as a reference."""
CP_SAT_DOMINATION_NODES = 500
"""Graphs of BA-small are below; CP-SAT proves all of them. On BA-large, HiGHS proved some that CP-SAT left open."""
HEURISTICS = ("kamis", "anneal", "numvc")
"""Methods for what the exact solver leaves open. Those not installed or not made for the problem are left out."""
NUM_CUT_RUNS = 5
PACKAGES = {"cp-sat": "ortools", "highs": "scipy", "kamis": "chszlablib"}
"""Packages whose version is kept with a reference; other solvers are our own."""
ROUNDING = 1e-6
"""A bound this close above or below a whole number is taken as that number."""


def solve_reference(problem: str | Problem, graph: Graph, time_limit_s: float) -> Reference:
    """The best reference that can be found in the given time; the only place that chooses solvers.

    >>> solve_reference("max-clique", Graph.from_edges([(0, 1), (0, 2), (1, 2)]), 1.0)[:4]
    (3.0, 3.0, True, 'clique-search')
    """
    known = get_problem(problem)
    if isinstance(known, MaximumClique) and graph.node_weights is None:
        return _exact(CliqueSearch(), known, graph, time_limit_s)
    if isinstance(known, MaximumCut):
        is_small = graph.num_nodes <= EXACT_CUT_NODES
        found = _exact_if_able(CpSat(), known, graph, time_limit_s) if is_small else None
        return found or _annealed_cut(known, graph, time_limit_s)
    return _exact_then_heuristics(known, graph, time_limit_s)


def best_of(problem: str | Problem, earlier: Reference, later: Reference) -> Reference:
    """The better objective and the tighter bound of two references for one graph; of two equal ones, the proven one."""
    sign = get_problem(problem).sign
    better = min(later, earlier, key=lambda known: (sign * known.objective, not known.proven))
    bound = sign * max(sign * earlier.bound, sign * later.bound)
    proven = earlier.proven or later.proven or bound == better.objective
    limit = max(earlier.time_limit_s, later.time_limit_s)
    return better._replace(bound=better.objective if proven else bound, proven=proven, time_limit_s=limit)


def _exact_then_heuristics(problem: Problem, graph: Graph, time_limit_s: float) -> Reference:
    """Run an exact solver for half of the time and, if it proves nothing, heuristics for the other half."""
    deadline = Deadline.after(time_limit_s)
    # HiGHS proves large dominating sets that CP-SAT leaves open.
    is_large = isinstance(problem, MinimumDominatingSet) and graph.num_nodes > CP_SAT_DOMINATION_NODES
    exact = Highs() if is_large else CpSat()
    known = None
    if exact.solves(problem):
        known = _exact_if_able(exact, problem, graph, time_limit_s / 2)
    methods = [method for method in map(get_method, HEURISTICS) if method.solves(problem) and not method.missing()]
    methods = [method for method in methods if graph.node_weights is None or method.takes_node_weights(problem)]
    for method in methods:
        if known is None or not known.proven:
            found = _searched(method.name, problem, graph, time_limit_s / 2 / len(methods))
            known = found if known is None else best_of(problem, known, found)
    assert known is not None, "annealing solves every problem"
    return known._replace(time_limit_s=time_limit_s, seconds=deadline.elapsed_s)


def _exact_if_able(solver: ExactMethod, problem: Problem, graph: Graph, time_limit_s: float) -> Reference | None:
    """What an exact solver finds; None if it is installed but the weights have too many digits for it."""
    try:
        return _exact(solver, problem, graph, time_limit_s)
    except InputError:
        if solver.missing():
            raise
        return None


def _exact(solver: ExactMethod, problem: Problem, graph: Graph, time_limit_s: float) -> Reference:
    found = solver.prove_pieces(problem, graph, time_limit_s=time_limit_s)
    known = Reference(
        objective=found.objective,
        bound=found.bound,
        proven=found.proven,
        solver=solver.name,
        version=_version(solver.name),
        time_limit_s=time_limit_s,
        seconds=found.seconds,
    )
    return _whole(problem, graph, known)


def _annealed_cut(problem: Problem, graph: Graph, time_limit_s: float) -> Reference:
    """Annealing runs that share the time, and the bound of the relaxation, which takes another second or two."""
    deadline = Deadline.after(time_limit_s)
    runs = [
        _searched("anneal", problem, graph, time_limit_s / NUM_CUT_RUNS, seed).objective for seed in range(NUM_CUT_RUNS)
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
    return _whole(problem, graph, found)


def _searched(method: str, problem: Problem, graph: Graph, time_limit_s: float, seed: int = 0) -> Reference:
    """What a heuristic finds, with its bound if it has one."""
    (found,) = get_method(method).solve(problem, [graph], Settings(seed, time_limit_s=time_limit_s))
    return Reference(
        objective=found.objective,
        bound=-problem.sign * math.inf if found.bound is None else found.bound,
        proven=found.optimal,
        solver=method,
        version=_version(method),
        time_limit_s=time_limit_s,
        seconds=time_limit_s,
    )


def _whole(problem: Problem, graph: Graph, known: Reference) -> Reference:
    """The reference with its bound rounded to a whole number, if all objectives are whole numbers."""
    edges = graph.edge_weights if problem.uses_edge_weights else None
    nodes = graph.node_weights if problem.uses_node_weights else None
    is_whole = all(weights is None or not (weights % 1).any() for weights in (edges, nodes))
    if known.proven or not math.isfinite(known.bound) or not is_whole:
        return known
    whole = math.floor(known.bound + ROUNDING) if problem.sense == "max" else math.ceil(known.bound - ROUNDING)
    return known._replace(bound=float(whole), proven=whole == known.objective)


def _version(solver: str) -> str:
    try:
        return metadata.version(PACKAGES[solver]) if solver in PACKAGES else __version__
    except metadata.PackageNotFoundError:  # KaMIS is installed as a program
        return "unknown"
