"""Ways to solve, behind one interface: one short file each, and the list of all of them."""

import difflib

from diffuco.foundation.errors import InputError
from diffuco.inference.answers import SampleOptions
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.auto import Automatic
from diffuco.methods.base import Deadline, GraphByGraph, Method, Settings, repair
from diffuco.methods.bifurcation import Bifurcation
from diffuco.methods.clique import CliqueSearch
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.dwave import SimulatedAnnealing, TabuSearch
from diffuco.methods.egn import Egn, EgnAnneal
from diffuco.methods.greedy import DegreeBasedGreedy, Greedy
from diffuco.methods.gurobi import Gurobi
from diffuco.methods.highs import Highs
from diffuco.methods.kamis import Kamis
from diffuco.methods.mfa import MeanFieldAnnealing
from diffuco.methods.model import ModelMethod, PlainModelMethod
from diffuco.methods.networkx_approximations import Networkx
from diffuco.methods.numvc import NuMvc
from diffuco.methods.rlsa import ParallelAnnealing
from diffuco.methods.sdp import GoemansWilliamson
from diffuco.problems import Problem

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

_methods: dict[str, Method] = {}


def register_method(method: Method) -> None:
    """Let `get_method` and the command line find a method by its name; a name that is taken is an InputError."""
    if method.name in _methods:
        raise InputError(f"there is a method '{method.name}' already; choose another name")
    _methods[method.name] = method


for _kind in (
    *(Automatic, ModelMethod, PlainModelMethod, Greedy, DegreeBasedGreedy, FlipAnnealing, MeanFieldAnnealing),
    *(ParallelAnnealing, Bifurcation, NuMvc, Egn, EgnAnneal, SimulatedAnnealing, TabuSearch),
    *(GoemansWilliamson, Networkx, CliqueSearch, CpSat, Highs, Gurobi, Kamis),
):
    register_method(_kind())


def all_methods() -> list[Method]:
    """Every method, installed or not, in the order they were registered."""
    return list(_methods.values())


def get_method(method: str | Method) -> Method:
    """The method of this name; a `Method` is returned as it is.

    >>> get_method("rlsa").summary
    'parallel annealing on CPU or GPU, 200 chains of 300 to 1,000 steps unless given a time limit'
    """
    if isinstance(method, Method):
        return method
    if method not in _methods:
        close = difflib.get_close_matches(method, _methods, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(_methods)}"
        raise InputError(f"unknown method '{method}'; {hint}")
    return _methods[method]


def check_method(method: Method, problem: Problem, time_limit_s: float | None = None) -> None:
    """Refuse what cannot work, before any work."""
    if not method.solves(problem):
        able = ", ".join(other.name for other in all_methods() if other.solves(problem))
        raise InputError(f"method '{method.name}' does not solve {problem}; choose one of {able}")
    missing = method.missing()
    if missing:
        raise InputError(f"method '{method.name}' needs {missing}")
    if time_limit_s is not None and not 0 < time_limit_s < float("inf"):
        raise InputError(f"time limit of {time_limit_s:g} seconds; give more than 0")
    if time_limit_s is not None and isinstance(method, ModelMethod) and method.options != SampleOptions():
        what = "samples, step factor, decoding and refinement"
        raise InputError(f"a time limit decides on {what} of a model; leave out the limit or these options")
