"""An independent check of solutions, directly from the graph: `diffuco.check`.

Each problem states its own check in numpy. It shares nothing with the solver: no batch, no energy, no torch.
"""

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.problems import Problem, Verdict, get_problem, graph_for
from diffuco.problems.base import States
from diffuco.solution.files import read_solution
from diffuco.solution.result import Solution


def check(graph: object, problem: str | Problem, solution: object) -> Verdict:
    """Check a solution of a problem on a graph: its objective and how many constraints it violates.

    A solution is a `Solution`, the labels of the chosen nodes, a boolean mask over the nodes, or the path of a file
    that `diffuco solve --output` wrote. The graph is anything that `solve` accepts.

    >>> check([(0, 1), (1, 2)], "mis", [0, 2])
    Verdict(objective=2.0, violations=0)
    >>> check([(0, 1), (1, 2)], "mvc", [0]).feasible
    False
    """
    known = get_problem(problem)
    source = graph_for(known, graph)
    return known.check(source, states_of(solution, source))


def states_of(solution: Any, graph: Any) -> States:
    """The nodes that a solution of any kind chooses, as a mask."""
    if isinstance(solution, Solution):
        solution = solution.chosen
    if isinstance(solution, str | Path):
        return read_solution(solution, graph).chosen
    if isinstance(solution, list | tuple) and solution and all(isinstance(entry, bool) for entry in solution):
        solution = np.array(solution)  # otherwise True and False would be the nodes 1 and 0
    if isinstance(solution, np.ndarray) and solution.dtype == np.bool_:
        if solution.shape != (graph.num_nodes,):
            raise InputError(
                f"the mask has shape {solution.shape}; expected one entry for each of {graph.num_nodes} nodes"
            )
        return solution
    index_of = {label: index for index, label in enumerate(graph.labels)}
    chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
    for label in solution if isinstance(solution, Iterable) else [solution]:
        if not isinstance(label, Hashable) or label not in index_of:
            raise InputError(f"the graph has no node {label!r}; give labels of nodes or a boolean mask")
        chosen[index_of[label]] = True
    return chosen
