"""Answers on random graphs of up to 16 nodes against the enumeration of all choices.

    python tests/fuzz_answers.py --seconds 300 --seed 1

Weights lie between 1e-12 and 1e18, alone and mixed. An answer must be feasible and worth what it says, may not be
better than the optimum, may not claim a proof where something is better, and its bound must hold; an exact method must
not raise an error. The last line of the output is a count as JSON. `tests/test_fuzz.py` asks a few.
"""

import argparse
import json
import random
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

import diffuco
from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.methods import get_method
from diffuco.problems import Problem, all_problems

METHODS = (*["auto"] * 20, *["cp-sat", "highs", "clique-search", "greedy", "anneal"] * 6, "diffuco")
MAX_NODES = 16
ROUNDING = 1e-12
"""Values that differ by less than this, as a share of all weights together, are the same: sums are rounded."""
DIGITS = "the weights have too many digits for exact solutions"
"""How a solver may refuse."""


@dataclass(frozen=True)
class Truth:
    """All that there is to know about a small graph."""

    objectives: NDArray[np.float64]
    """Of every choice of nodes, the first node being the lowest bit."""
    feasible: NDArray[np.bool_]
    best: float
    unit: float
    """Sum of all weights."""


def random_case(rng: random.Random) -> tuple[Problem, Graph, str]:
    """A problem, a graph for it and a method that solves it."""
    problem = rng.choice(all_problems())
    num_nodes = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11, 12, 12, 13, 14, MAX_NODES))
    density = rng.choice((0.0, 0.2, 0.5, 0.8, 1.0))
    edges = [pair for pair in combinations(range(num_nodes), 2) if rng.random() < density]
    draw = rng.choice((_small, _decimal, _scaled, _mixed))
    scale = 10.0 ** rng.randint(-12, 18)
    signed = problem.name in ("max-cut", "qubo")
    edge_weights = (
        [draw(rng, scale, signed) for _ in edges] if rng.random() < 0.7 and problem.uses_edge_weights else None
    )
    has_node_weights = problem.uses_node_weights and rng.random() < 0.6
    node_weights = [draw(rng, scale, problem.name == "qubo") for _ in range(num_nodes)] if has_node_weights else None
    graph = Graph.from_edges(
        np.array(edges, dtype=np.int64).reshape(-1, 2), num_nodes, edge_weights=edge_weights, node_weights=node_weights
    )
    able = [name for name in METHODS if get_method(name).solves(problem)]
    if node_weights is not None:
        able = [name for name in able if get_method(name).takes_node_weights(problem)]
    return problem, graph, rng.choice(able)


def _small(rng: random.Random, scale: float, signed: bool) -> float:
    return float(rng.randint(-9 if signed else 0, 9))


def _decimal(rng: random.Random, scale: float, signed: bool) -> float:
    return rng.randint(-999 if signed else 0, 999) / 100


def _scaled(rng: random.Random, scale: float, signed: bool) -> float:
    return scale * rng.uniform(-1 if signed else 0, 1)


def _mixed(rng: random.Random, scale: float, signed: bool) -> float:
    return (rng.choice((-1, 1)) if signed else 1) * 10.0 ** rng.randint(-12, 18)


def truth(problem: Problem, graph: Graph) -> Truth:
    """Every choice of nodes, judged by code that shares nothing with the package."""
    n = graph.num_nodes
    states = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)
    node = np.ones(n) if graph.node_weights is None else graph.node_weights
    edge = np.ones(graph.num_edges) if graph.edge_weights is None else graph.edge_weights
    u, v = graph.edges.T
    first, second = states[:, u], states[:, v]
    feasible = np.ones(len(states), dtype=np.bool_)
    match problem.name:
        case "mis":
            objectives, feasible = states @ node, ~(first & second).any(1)
        case "mvc":
            objectives, feasible = states @ node, (first | second).all(1)
        case "max-clique":
            objectives = states @ node
            feasible = (first & second).sum(1) == states.sum(1) * (states.sum(1) - 1) // 2
        case "max-cut":
            objectives = (first != second) @ edge
        case "mds":
            near = np.eye(n, dtype=np.int64)
            near[u, v] = near[v, u] = 1
            objectives, feasible = states @ node, (states @ near > 0).all(1)
        case "qubo":
            diagonal = np.zeros(n) if graph.node_weights is None else graph.node_weights
            objectives = (first & second) @ edge + states @ diagonal
        case name:
            raise AssertionError(f"no truth for {name}")
    pick = max if problem.sense == "max" else min
    return Truth(objectives, feasible, pick(objectives[feasible]), float(np.abs(edge).sum() + np.abs(node).sum()))


def complaint(problem: Problem, graph: Graph, method: str, seed: int) -> str:
    """What is wrong with an answer; `right`, `proven` or `refused` if nothing is."""
    limit_s = 0.005 if method == "anneal" else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = diffuco.solve(graph, problem, method=method, seed=seed, time_limit_s=limit_s, device="cpu")
    except InputError as error:
        return "refused" if str(error).startswith(DIGITS) and method != "auto" else f"InputError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    known = truth(problem, graph)
    index = int(solution.chosen @ (1 << np.arange(graph.num_nodes)))
    slack = ROUNDING * known.unit
    ahead = problem.sign * (known.best - solution.objective)  # above 0: the answer is better than the optimum
    if not (solution.feasible and known.feasible[index]):
        return "not feasible"
    if abs(known.objectives[index] - solution.objective) > slack:
        return f"objective {solution.objective} is {known.objectives[index]}"
    if ahead > slack:
        return f"objective {solution.objective} is better than the optimum {known.best}"
    if solution.optimal and ahead < -slack:
        return f"claims that {solution.objective} is optimal; {known.best} is"
    if solution.bound is not None and problem.sign * (known.best - solution.bound) < -slack:
        return f"claims the bound {solution.bound}; the optimum is {known.best}"
    return "proven" if solution.optimal else "right"


def run(*, seed: int, count: int | None = None, seconds: float | None = None) -> tuple[Counter[str], list[str]]:
    """Ask so many times, or for so long; the outcomes, and the complaints."""
    rng, outcomes, complaints = random.Random(seed), Counter[str](), []
    ends = None if seconds is None else time.monotonic() + seconds
    while (count is None or outcomes.total() < count) and (ends is None or time.monotonic() < ends):
        problem, graph, method = random_case(rng)
        found = complaint(problem, graph, method, seed)
        is_wrong = found not in ("right", "proven", "refused")
        outcomes["wrong" if is_wrong else found] += 1
        if is_wrong:
            weights = {name: None if w is None else w.tolist() for name, w in _weights(graph).items()}
            case = f"Graph.from_edges({graph.edges.tolist()}, {graph.num_nodes}, **{weights})"
            complaints.append(f"{problem} by {method}, seed {seed}: {found}: {case}")
    return outcomes, complaints


def _weights(graph: Graph) -> dict[str, NDArray[np.float64] | None]:
    return {"edge_weights": graph.edge_weights, "node_weights": graph.node_weights}


def main() -> int:
    """Run for a while and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    outcomes, complaints = run(seed=arguments.seed, seconds=arguments.seconds)
    print(*complaints, sep="\n", file=sys.stderr)
    print(json.dumps({"answers": outcomes.total(), **outcomes}))
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
