"""The problems DiffUCO solves: one short file each, and the list of all of them."""

import difflib
from dataclasses import replace

from diffuco.foundation.errors import InputError
from diffuco.foundation.names import check_name
from diffuco.problems.base import Annealing, CoverForm, Problem, QuadraticForm, States, Verdict
from diffuco.problems.instances import graph_for
from diffuco.problems.linear_model import LinearModel
from diffuco.problems.max_clique import MaximumClique
from diffuco.problems.max_cut import MaximumCut
from diffuco.problems.mds import MinimumDominatingSet
from diffuco.problems.mis import MaximumIndependentSet
from diffuco.problems.mvc import MinimumVertexCover
from diffuco.problems.node_sets import NodeSetProblem
from diffuco.problems.qubo import Qubo
from diffuco.problems.weights import (
    check_node_weights,
    check_weights,
    ignored_weights,
    in_weight_units,
    weight_unit,
    weights_note,
    without_ignored_weights,
)

__all__ = [
    "Annealing",
    "CoverForm",
    "LinearModel",
    "MaximumClique",
    "MaximumCut",
    "MaximumIndependentSet",
    "MinimumDominatingSet",
    "MinimumVertexCover",
    "NodeSetProblem",
    "Problem",
    "QuadraticForm",
    "Qubo",
    "States",
    "Verdict",
    "all_problems",
    "check_node_weights",
    "check_weights",
    "get_problem",
    "graph_for",
    "ignored_weights",
    "in_weight_units",
    "is_shipped",
    "register_problem",
    "weight_unit",
    "weights_note",
    "without_ignored_weights",
]

_PROBLEMS: tuple[type[Problem], ...] = (
    MaximumIndependentSet,
    MinimumVertexCover,
    MaximumClique,
    MaximumCut,
    MinimumDominatingSet,
    Qubo,
)
_registered: dict[str, Problem] = {}
"""Problems of the user, by name."""


def register_problem(problem: Problem) -> None:
    """Let `get_problem` and the command line find a problem by its name; raises InputError if the name is taken."""
    if not isinstance(problem, Problem):
        raise InputError(f"{problem!r} is no problem; give an object, such as {getattr(problem, '__name__', 'Mine')}()")
    ours: dict[str, type] = dict.fromkeys((known.name for known in _PROBLEMS), Problem)
    check_name(type(problem), ours | {name: type(known) for name, known in _registered.items()}, "problem")
    _registered[problem.name] = problem


def all_problems() -> list[Problem]:
    """One of each of ours, with default penalties.

    >>> [problem.name for problem in all_problems()]
    ['mis', 'mvc', 'max-clique', 'max-cut', 'mds', 'qubo']
    """
    return [problem() for problem in _PROBLEMS]


def is_shipped(problem: Problem) -> bool:
    """Whether a problem is one of ours."""
    return type(problem) in _PROBLEMS


def get_problem(name: str | type[Problem] | Problem, penalty: float | None = None) -> Problem:
    """The problem of this name, with its own penalty or the one given (above 1, so that minima are feasible).

    A `Problem` is returned as it is, and a class made: whatever takes a name of ours takes a problem of yours.

    >>> get_problem("mis", penalty=1.1)
    MaximumIndependentSet(penalty=1.1)
    """
    if isinstance(name, type):
        name = _made(name)
    if isinstance(name, Problem):
        return name
    by_name = {problem.name: problem for problem in [*all_problems(), *_registered.values()]}
    if name not in by_name:
        close = difflib.get_close_matches(name, by_name, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(by_name)}"
        raise InputError(f"unknown problem '{name}'; {hint}")
    known = by_name[name]
    if penalty is None:
        return known
    if not hasattr(known, "penalty"):
        raise InputError(f"{name} has no constraints and so no penalty; leave it out")
    if not penalty > 1:
        raise InputError(f"penalty {penalty} lets infeasible minima in; give a value above 1")
    return replace(known, penalty=penalty)  # type: ignore[call-arg]


def _made(kind: type[Problem]) -> Problem:
    if not issubclass(kind, Problem):
        raise InputError(f"class {kind.__name__} is no problem; derive it from diffuco.Problem")
    try:
        return kind()
    except TypeError as error:
        raise InputError(f"{error}; give an object instead of the class {kind.__name__}") from error
