"""What an exact solver and a search have found for one graph, as one answer."""

import math
from dataclasses import replace

import numpy as np

from diffuco.foundation.wording import counted
from diffuco.graphs.components import split
from diffuco.graphs.graph import Graph
from diffuco.solution.result import Solution


def ahead(first: Solution, second: Solution) -> Solution:
    """The better of two; of equals, the first."""
    sign = first.problem.sign
    if sign * second.objective < sign * first.objective:
        return replace(second, reason=f"{second.found_by} was ahead of {first.found_by}")
    return first


def better(found: Solution, tried: Solution | None) -> Solution:
    """The better of what a search found and what an exact solver found without a proof, with the solver's bound.

    The seconds are those of the search, which ran beside the solver or began `after` it.
    """
    if tried is None:
        return found
    found = completed(found, tried)
    best = ahead(found, tried)
    if best is not found:
        return replace(best, reason=f"{best.reason}, without a proof", seconds=found.seconds)
    return tighter(found, tried)


def after(seconds: float, found: Solution) -> Solution:
    """What a search found that began after so many seconds, with them."""
    return replace(found, seconds=found.seconds | {"sample": found.seconds["sample"] + seconds})


def both(first: Solution, second: Solution) -> Solution:
    """The better of two, with the tighter of their bounds."""
    return tighter(tighter(ahead(first, second), first), second)


def tighter(found: Solution, other: Solution) -> Solution:
    """A solution with the bound of another one, if that is tighter."""
    return found if other.bound is None else bounded(found, other.bound, other.found_by)


def bounded(found: Solution, bound: float, by: str) -> Solution:
    """A solution with the tighter of its own bound and another one, and optimal if it reaches that."""
    sign = found.problem.sign
    if found.bound is not None and sign * found.bound >= sign * bound:
        return found
    if not found.feasible or not math.isclose(found.objective, bound, rel_tol=1e-12):
        return replace(found, bound=bound)
    reason = "; ".join(filter(None, (found.reason, f"no solution can be better, as {by} proves")))
    return replace(found, bound=found.objective, optimal=True, reason=reason)


def unsettled(graph: Graph, tried: Solution | None) -> Graph:
    """What is left to search of a graph: the pieces that an exact solver could not prove."""
    settled = tried.settled if tried else None
    return graph if settled is None else split(graph, settled.astype(np.int64))[0].graph


def settled_objective(tried: Solution | None) -> float:
    """What the pieces that are proven contribute to the objective."""
    if tried is None or tried.settled is None:
        return 0.0
    proven = split(tried.graph, tried.settled.astype(np.int64))[1]
    return tried.problem.check(proven.graph, tried.chosen[proven.nodes]).objective


def completed(found: Solution, tried: Solution) -> Solution:
    """What a search found, for a graph or for what was left of it, with what is proven for the pieces of it."""
    graph, settled = tried.graph, tried.settled
    if settled is None:
        return found
    is_whole = found.graph is graph
    states = np.repeat(tried.chosen[:, None], found.states.shape[1], axis=1)
    states[~settled] = found.states[~settled] if is_whole else found.states
    chosen = tried.chosen.copy()
    chosen[~settled] = found.chosen[~settled] if is_whole else found.chosen
    objectives = [found.problem.check(graph, state).objective for state in states.T]
    gains = np.array(objectives) - np.array(found.objectives)
    proven = f"{tried.found_by} proved what is best for {counted(int(settled.sum()), 'node')} in pieces of the graph"
    return replace(
        found,
        graph=graph,
        chosen=chosen,
        states=states,
        energies=(np.array(found.energies) + found.problem.sign * gains).tolist(),
        objectives=objectives,
        reason=f"{found.reason}; {proven}",
        settled=settled,
    )
