"""Proven optima by CP-SAT (the extra `exact`), for graphs small enough.

Every problem is a linear model over one binary variable per node. The parameters are those that were fastest on the
paper's datasets; CP-SAT's default of one worker per core is slower on all of them.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem
from diffuco.solution.verification import verify

MAX_PAIRS = 3_000_000
"""More constraints than this do not fit in memory as a CP-SAT model."""
MAX_DENOMINATOR = 10**6
"""Weights are scaled to integers by at most this."""


@dataclass(frozen=True, eq=False)
class ExactResult:
    """The best solution found and what is known about better ones."""

    objective: float
    bound: float
    """No solution is better than this."""
    proven: bool
    """Whether the solution is optimal."""
    chosen: NDArray[np.bool_]
    seconds: float


def solve_exact(problem: str, graph: Graph, *, time_limit_s: float = 60.0, workers: int = 8) -> ExactResult:
    """Search for the optimum until it is proven or the time is up; `workers` counts threads, except for `mds`.

    >>> five_cycle = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
    >>> result = solve_exact("mis", five_cycle)
    >>> result.objective, result.proven
    (2.0, True)
    """
    cp_model = _import_cp_model()
    if problem not in _BUILDERS:
        raise InputError(f"no exact solver for '{problem}'; choose one of {', '.join(_BUILDERS)}")
    started = time.perf_counter()
    model = cp_model.CpModel()
    x = [model.new_bool_var("") for _ in range(graph.num_nodes)]
    scale = _BUILDERS[problem](model, x, graph)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit_s
    solver.parameters.num_workers = workers
    if problem == "mds":
        # Domination rows are what linear relaxations are good at; one worker with all cuts beats eight without.
        solver.parameters.num_workers = 1
        solver.parameters.linearization_level = 2
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    # Out of time with nothing: choosing all nodes, or none, satisfies every constraint.
    chosen = np.array([bool(solver.value(node)) if found else problem in ("mvc", "mds") for node in x], dtype=np.bool_)
    verdict = verify(problem, graph, chosen)
    assert verdict.feasible, f"CP-SAT's solution of {problem} is not feasible"
    proven = bool(status == cp_model.OPTIMAL)
    if proven:
        bound = verdict.objective
    elif found:
        bound = solver.best_objective_bound / scale
    else:  # the bound that CP-SAT then reports is 0, which bounds nothing
        bound = np.inf if get_problem(problem).sense == "max" else -np.inf
    return ExactResult(verdict.objective, bound, proven, chosen, time.perf_counter() - started)


def _import_cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise InputError("exact solutions need OR-tools; pip install 'diffuco[exact]'") from None
    return cp_model


def _independent_set(model: Any, x: list[Any], graph: Graph) -> int:
    for u, v in graph.edges.tolist():
        model.add_bool_or(~x[u], ~x[v])
    total, scale = _total_weight(x, graph)
    model.maximize(total)
    return scale


def _vertex_cover(model: Any, x: list[Any], graph: Graph) -> int:
    for u, v in graph.edges.tolist():
        model.add_bool_or(x[u], x[v])
    total, scale = _total_weight(x, graph)
    model.minimize(total)
    return scale


def _clique(model: Any, x: list[Any], graph: Graph) -> int:
    num_pairs = graph.num_nodes * (graph.num_nodes - 1) // 2 - graph.num_edges
    if num_pairs > MAX_PAIRS:
        raise InputError(f"{num_pairs} pairs without an edge; exact max-clique takes at most {MAX_PAIRS}")
    missing = ~np.eye(graph.num_nodes, dtype=np.bool_)
    missing[graph.edges[:, 0], graph.edges[:, 1]] = False
    for u, v in np.argwhere(np.triu(missing)).tolist():
        model.add_bool_or(~x[u], ~x[v])
    total, scale = _total_weight(x, graph)
    model.maximize(total)
    return scale


def _dominating_set(model: Any, x: list[Any], graph: Graph) -> int:
    indptr, indices, _ = graph.csr
    for node in range(graph.num_nodes):
        model.add_bool_or(x[node], *[x[other] for other in indices[indptr[node] : indptr[node + 1]].tolist()])
    total, scale = _total_weight(x, graph)
    model.minimize(total)
    return scale


def _cut(model: Any, x: list[Any], graph: Graph) -> int:
    """An edge variable may be 1 only if the edge is cut where that pays, and must be where it costs."""
    (weights,), scale = _integers(_edge_weights(graph))
    terms = []
    for (u, v), weight in zip(graph.edges.tolist(), weights, strict=True):
        is_cut = model.new_bool_var("")
        if weight > 0:
            model.add_bool_or(~is_cut, x[u], x[v])
            model.add_bool_or(~is_cut, ~x[u], ~x[v])
        else:
            model.add_bool_or(is_cut, ~x[u], x[v])
            model.add_bool_or(is_cut, x[u], ~x[v])
        terms.append(weight * is_cut)
    if x:
        model.add(x[0] == 0)  # the two sides of a cut have no names
    model.maximize(sum(terms))
    return scale


def _qubo(model: Any, x: list[Any], graph: Graph) -> int:
    """A product variable must be 1 if both its factors are where that costs, and may be only then where it pays."""
    diagonal = np.zeros(graph.num_nodes) if graph.node_weights is None else graph.node_weights
    (linear, quadratic), scale = _integers(diagonal, _edge_weights(graph))
    terms = [weight * node for weight, node in zip(linear, x, strict=True)]
    for (u, v), weight in zip(graph.edges.tolist(), quadratic, strict=True):
        both = model.new_bool_var("")
        if weight > 0:
            model.add_bool_or(both, ~x[u], ~x[v])
        else:
            model.add_implication(both, x[u])
            model.add_implication(both, x[v])
        terms.append(weight * both)
    model.minimize(sum(terms))
    return scale


_BUILDERS = {
    "mis": _independent_set,
    "mvc": _vertex_cover,
    "max-clique": _clique,
    "max-cut": _cut,
    "mds": _dominating_set,
    "qubo": _qubo,
}
"""Each adds constraints and objective to a model and returns what it scaled the objective by."""


def _total_weight(x: list[Any], graph: Graph) -> tuple[Any, int]:
    """What the chosen nodes weigh, and what that is scaled by."""
    if graph.node_weights is None:
        return sum(x), 1
    (weights,), scale = _integers(graph.node_weights)
    return sum(weight * node for weight, node in zip(weights, x, strict=True)), scale


def _edge_weights(graph: Graph) -> NDArray[np.float64]:
    return np.ones(graph.num_edges) if graph.edge_weights is None else graph.edge_weights


def _integers(*weights: NDArray[np.float64]) -> tuple[list[list[int]], int]:
    """Weights times the smallest power of ten that makes them all whole; CP-SAT calculates with integers only."""
    scale = 1
    while scale <= MAX_DENOMINATOR:
        scaled = [values * scale for values in weights]
        if all(np.allclose(values, np.round(values), rtol=1e-12, atol=1e-9) for values in scaled):
            return [np.round(values).astype(np.int64).tolist() for values in scaled], scale
        scale *= 10
    raise InputError(f"weights with more than {len(str(MAX_DENOMINATOR)) - 1} decimals; round them for exact solutions")
