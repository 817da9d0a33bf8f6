"""Other ways to solve the same problems, behind one interface: name a method, get `Solution`s.

>>> from diffuco.graphs.graph import Graph
>>> five_cycle = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
>>> (solution,) = solve_with("greedy", "mis", [five_cycle])
>>> solution.objective, solution.feasible
(2.0, True)
"""

import difflib
from collections.abc import Callable, Sequence

from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.auto import Automatic
from diffuco.methods.base import Deadline, GraphByGraph, Method, repair
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.dwave import SimulatedAnnealing, TabuSearch
from diffuco.methods.egn import Egn, EgnAnneal
from diffuco.methods.greedy import DegreeBasedGreedy, Greedy
from diffuco.methods.gurobi import Gurobi
from diffuco.methods.highs import Highs
from diffuco.methods.kamis import Kamis
from diffuco.methods.mfa import MeanFieldAnnealing
from diffuco.methods.networkx_approximations import Networkx
from diffuco.methods.rlsa import ParallelAnnealing
from diffuco.methods.sdp import GoemansWilliamson
from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.problems import check_weights, get_problem
from diffuco.solution.result import Solution

__all__ = [
    "Deadline",
    "GraphByGraph",
    "Method",
    "all_methods",
    "get_method",
    "register_method",
    "repair",
    "solve_with",
]

_methods: dict[str, Method] = {}


def register_method(method: Method) -> None:
    """Let `get_method` and the command line find a method by its name; a name that is taken is an InputError."""
    if method.name in _methods:
        raise InputError(f"there is a method '{method.name}' already; choose another name")
    _methods[method.name] = method


for _kind in (
    *(Automatic, Greedy, DegreeBasedGreedy, FlipAnnealing, MeanFieldAnnealing, ParallelAnnealing),
    *(Egn, EgnAnneal, SimulatedAnnealing, TabuSearch),
    *(GoemansWilliamson, Networkx, CpSat, Highs, Gurobi, Kamis),
):
    register_method(_kind())


def all_methods() -> list[Method]:
    """Every method, installed or not, in the order they were registered."""
    return list(_methods.values())


def get_method(name: str) -> Method:
    """The method of this name.

    >>> get_method("rlsa").problems
    ('mis', 'mvc', 'max-clique', 'max-cut', 'mds', 'qubo')
    """
    if name not in _methods:
        close = difflib.get_close_matches(name, _methods, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(_methods)}"
        raise InputError(f"unknown method '{name}'; {hint}")
    return _methods[name]


def solve_with(
    method: str | Method,
    problem: str,
    graphs: Sequence[Graph],
    *,
    seed: int = 0,
    device: str = "auto",
    time_limit_s: float | None = None,
    on_solved: Callable[[int], None] | None = None,
) -> list[Solution]:
    """Solve graphs with a method; one that is not installed or not for this problem is an InputError."""
    known = get_method(method) if isinstance(method, str) else method
    check_method(known, problem, time_limit_s)
    chosen = get_problem(problem)
    check_weights(chosen, graphs)
    return known.solve(
        chosen,
        graphs,
        seed=seed,
        device=pick_device(device),
        time_limit_s=time_limit_s,
        on_solved=on_solved,
    )


def check_method(method: Method, problem: str, time_limit_s: float | None) -> None:
    """Refuse what cannot work, before any work."""
    if problem not in method.problems:
        able = ", ".join(other.name for other in all_methods() if problem in other.problems)
        raise InputError(f"method '{method.name}' does not solve {problem}; choose one of {able}")
    missing = method.missing()
    if missing:
        raise InputError(f"method '{method.name}' needs {missing}")
    if time_limit_s is not None and not 0 < time_limit_s < float("inf"):
        raise InputError(f"time limit of {time_limit_s:g} seconds; give more than 0")
