"""Ways to solve, behind one interface: one short file each, and the list of all of them.

A method is imported when it is first asked for: most of them need torch, and a proof does not.
"""

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from diffuco.foundation.errors import InputError
from diffuco.foundation.lazy import lazy_names
from diffuco.foundation.values import is_number
from diffuco.methods.base import Deadline, GraphByGraph, Method, Settings, repair
from diffuco.problems import Problem

if TYPE_CHECKING:
    from diffuco.methods.model import ModelMethod, PlainModelMethod

__all__ = [
    "Deadline",
    "GraphByGraph",
    "Method",
    "ModelMethod",
    "PlainModelMethod",
    "Settings",
    "all_methods",
    "check_method",
    "get_method",
    "register_method",
    "repair",
]

__getattr__ = lazy_names(
    __name__, {"ModelMethod": "diffuco.methods.model", "PlainModelMethod": "diffuco.methods.model"}
)

OURS = {
    "auto": "auto.Automatic",
    "diffuco": "model.ModelMethod",
    "diffuco-ce": "model.PlainModelMethod",
    "greedy": "greedy.Greedy",
    "db-greedy": "greedy.DegreeBasedGreedy",
    "anneal": "anneal.FlipAnnealing",
    "mfa": "mfa.MeanFieldAnnealing",
    "rlsa": "rlsa.ParallelAnnealing",
    "bifurcation": "bifurcation.Bifurcation",
    "numvc": "numvc.NuMvc",
    "egn": "egn.Egn",
    "egn-anneal": "egn.EgnAnneal",
    "sa": "dwave.SimulatedAnnealing",
    "tabu": "dwave.TabuSearch",
    "sdp": "sdp.GoemansWilliamson",
    "networkx": "networkx_approximations.Networkx",
    "clique-search": "clique.CliqueSearch",
    "cp-sat": "cp_sat.CpSat",
    "highs": "highs.Highs",
    "gurobi": "gurobi.Gurobi",
    "kamis": "kamis.Kamis",
    "online-mis": "kamis.OnlineMis",
}
"""The module and the class of each of our methods, by its name."""

_methods: dict[str, Method] = {}
"""Methods that were registered or asked for, by name."""


def register_method(method: Method) -> None:
    """Let `get_method` and the command line find a method by its name; a name that is taken is an InputError."""
    if not isinstance(method, Method):
        raise InputError(f"{method!r} is no method; give an object, such as {getattr(method, '__name__', 'Mine')}()")
    for part in ("name", "summary"):
        if not getattr(method, part, ""):
            raise InputError(f"method class {type(method).__name__} has no {part}; give it one line of text")
    if method.name in OURS or method.name in _methods:
        raise InputError(f"there is a method '{method.name}' already; choose another name")
    _methods[method.name] = method


def all_methods() -> list[Method]:
    """Every method, installed or not: ours, then others in the order they were registered."""
    return [get_method(name) for name in _names()]


def get_method(method: str | Method) -> Method:
    """The method of this name; a `Method` is returned as it is.

    >>> get_method("rlsa").summary
    'parallel annealing on CPU or GPU, 200 chains of 300 to 1,000 steps unless given a time limit'
    """
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise InputError(f"there is no method {method!r}; give a name or an object, such as Mine()")
    if method not in _names():
        close = difflib.get_close_matches(method, _names(), n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(_names())}"
        raise InputError(f"unknown method '{method}'; {hint}")
    if method not in _methods:
        module, _, kind = OURS[method].partition(".")
        _methods[method] = getattr(import_module(f"diffuco.methods.{module}"), kind)()
    return _methods[method]


def _names() -> list[str]:
    return list(dict.fromkeys([*OURS, *_methods]))


def check_method(method: Method, problem: Problem, time_limit_s: float | None = None) -> None:
    """Refuse what cannot work, before any work."""
    if not method.solves(problem):
        able = ", ".join(other.name for other in all_methods() if other.solves(problem))
        raise InputError(f"method '{method.name}' does not solve {problem}; choose one of {able}")
    missing = method.missing()
    if missing:
        raise InputError(f"method '{method.name}' needs {missing}")
    if time_limit_s is not None and not is_number(time_limit_s):
        raise InputError(f"time limit is {time_limit_s!r}; give seconds as a number")
    if time_limit_s is not None and not 0 < time_limit_s < float("inf"):
        raise InputError(f"time limit of {time_limit_s:g} seconds; give more than 0")
    if time_limit_s is not None:
        method.check_time_limit()
