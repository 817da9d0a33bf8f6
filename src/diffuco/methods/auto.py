"""`auto`, the default of `diffuco solve`: the optimum where it is proven at once, else the search that suits a graph.

What is best comes from measurements (docs/choosing.md). A small graph is given to an exact solver for about a second.
Graphs that remain are annealed from random states, which finds as much in the same time as samples of a model that are
refined, or more; except for cuts and dominating sets of large graphs on a GPU with milliseconds to spend, for which
samples of a model that was trained on such graphs are ahead.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from diffuco.methods.clique import largest_clique
from diffuco.methods.exact import ExactResult, solve_exact
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.base import ALL_PROBLEMS, Method
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.model import ModelMethod
from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.pretrained import choose_models
from diffuco.problems import Problem
from diffuco.solution.result import Solution
from diffuco.inference.solver import Solver

EXACT_S = 1.0
"""Seconds that a proof may take; a time limit that is shorter is shared equally with the search."""
EXACT_NODES = {"mis": 400, "mvc": 400, "max-clique": 1500, "max-cut": 40, "mds": 400, "qubo": 40}
"""Largest graphs for which a proof is tried: a little more than what mostly takes less than a second."""
WEIGHTED_CLIQUE_NODES = 200
"""Cliques with node weights are not for our own search; CP-SAT has a constraint for every missing edge."""
EXACT_EDGES = 50_000
MODEL_PROBLEMS = ("max-cut", "mds")
"""Problems for which samples of a model are ahead of annealing, on a GPU and within `MODEL_S`."""
MODEL_NODES = 500
"""Smallest graphs on which they are."""
MODEL_S = 0.01
"""Most seconds a graph with which they are."""
PATIENCE = 2
"""After so many graphs in a row that were not proven, the others are not tried."""


class Automatic(Method):
    """An exact solver where it is quick, else a model or annealing."""

    name = "auto"
    summary = "the default: exact where that takes a second, else annealing, or samples of a model where they pay"
    problems = ALL_PROBLEMS
    time_limit = "stops"

    def solve(
        self,
        problem: Problem,
        graphs: Sequence[Graph],
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        time_limit_s: float | None = None,
        on_solved: Callable[[int], None] | None = None,
    ) -> list[Solution]:
        """Prove what can be proven, then search for the rest; `model` of a solution says what found it."""
        proof_s = EXACT_S if time_limit_s is None else min(EXACT_S, time_limit_s / 2)
        solutions: dict[int, Solution] = {}
        for position, solution in _proven(problem, graphs, seed, proof_s):
            solutions[position] = solution
            if on_solved:
                on_solved(len(solutions))
        rest = [position for position in range(len(graphs)) if position not in solutions]
        plan = searchers(problem, [graphs[position] for position in rest], torch.device(device), time_limit_s)
        for name in dict.fromkeys(name for name, _ in plan):
            done = len(solutions)
            positions = [position for position, (other, _) in zip(rest, plan, strict=True) if other == name]
            chosen = [graphs[position] for position in positions]

            def report(count: int, done: int = done) -> None:
                if on_solved:
                    on_solved(done + count)

            was_tried = any(_is_small(problem, graph) for graph in chosen)
            left_s = time_limit_s if time_limit_s is None or not was_tried else time_limit_s - proof_s
            is_model = name != FlipAnnealing.name
            search = ModelMethod(Solver(problem.name, name, device=str(device))) if is_model else FlipAnnealing()
            settings: dict[str, Any] = {"seed": seed, "device": device, "time_limit_s": left_s}
            found = search.solve(problem, chosen, on_solved=report, **settings)
            solutions |= dict(zip(positions, found, strict=True))
        return [solutions[position] for position in range(len(graphs))]


def searchers(
    problem: Problem, graphs: Sequence[Graph], device: torch.device, time_limit_s: float | None = None
) -> list[tuple[str, str]]:
    """For each graph that is not solved exactly, a model or `anneal`, and why."""
    where = None
    if device.type == "cpu":
        where = "on a CPU"
    elif time_limit_s is None or time_limit_s > MODEL_S:
        where = f"with more than {1000 * MODEL_S:g} ms a graph"
    elif problem.name not in MODEL_PROBLEMS:
        where = f"for {problem.name}"
    if where is not None:
        why = f"{where} annealing finds as much as the samples of a model in the same time, or more"
        return [(FlipAnnealing.name, why)] * len(graphs)
    chosen = []
    for graph, choice in zip(graphs, choose_models(problem.name, graphs) if graphs else [], strict=True):
        if choice.is_alike and graph.num_nodes >= MODEL_NODES:
            chosen.append((choice.name, choice.reason))
        elif choice.is_alike:
            why = f"on graphs of fewer than {MODEL_NODES} nodes annealing is ahead of the samples of a model"
            chosen.append((FlipAnnealing.name, why))
        else:
            why = f"the nearest model, {choice.name}, was trained on other graphs or does not see the weights"
            chosen.append((FlipAnnealing.name, why))
    return chosen


def missing_proof(problem: Problem, graphs: Sequence[Graph]) -> str | None:
    """What an exact solver of these graphs, which were not solved exactly, would need; None if it was there."""
    if any(_is_small(problem, graph) and not _is_for_clique_search(problem.name, graph) for graph in graphs):
        return CpSat().missing()
    return None


def _proven(problem: Problem, graphs: Sequence[Graph], seed: int, limit_s: float) -> Iterator[tuple[int, Solution]]:
    """Positions and optimal solutions of those graphs for which a proof takes no longer than this."""
    failures = 0
    for position, graph in enumerate(graphs):
        if failures == PATIENCE:
            return
        if not _is_small(problem, graph):
            continue
        result = _solve_exactly(problem.name, graph, limit_s)
        failures = 0 if result and result.proven else failures + 1
        if result and result.proven:
            yield position, _as_solution(problem, graph, seed, result)


def _is_small(problem: Problem, graph: Graph) -> bool:
    limit = EXACT_NODES[problem.name]
    if problem.name == "max-clique" and not _is_for_clique_search(problem.name, graph):
        limit = min(limit, WEIGHTED_CLIQUE_NODES)
    return graph.num_nodes <= limit and graph.num_edges <= EXACT_EDGES


def _is_for_clique_search(problem: str, graph: Graph) -> bool:
    return problem == "max-clique" and graph.node_weights is None


def _solve_exactly(problem: str, graph: Graph, limit_s: float) -> ExactResult | None:
    """By our own search for cliques, else by CP-SAT where it is installed and can take the weights."""
    if _is_for_clique_search(problem, graph):
        return largest_clique(graph, time_limit_s=limit_s)
    if CpSat().missing():
        return None
    try:
        return solve_exact(problem, graph, time_limit_s=limit_s)
    except InputError:
        return None


def _as_solution(problem: Problem, graph: Graph, seed: int, result: ExactResult) -> Solution:
    name = "clique search" if _is_for_clique_search(problem.name, graph) else CpSat.name
    energy = -result.objective if problem.sense == "max" else result.objective
    seconds = {"load": 0.0, "sample": result.seconds, "decode": 0.0}
    states: np.ndarray[tuple[int, int], np.dtype[np.bool_]] = result.chosen[:, None]
    return Solution(
        *(problem.name, graph, result.chosen, states, [energy], [result.objective], name, seed, seconds), optimal=True
    )
