"""Cuts that leave out no edge, which need no search: the graph has two sides and every edge crosses.

With weights, no edge of negative weight is in such a cut and all others are.
"""

from diffuco.graphs.graph import Graph
from diffuco.graphs.two_sides import two_sides
from diffuco.methods.base import Deadline
from diffuco.methods.exact import ExactResult, as_solution
from diffuco.problems import MaximumCut, Problem
from diffuco.solution.result import Solution


def whole_cut(problem: Problem, graph: Graph, seed: int) -> Solution | None:
    """The maximum cut of a graph that has such sides; None for other graphs and problems.

    >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> solution = whole_cut(MaximumCut(), square, seed=0)
    >>> solution.objective, solution.optimal, solution.found_by
    (4.0, True, 'two-sides')
    """
    clock = Deadline.after(None)
    sides = two_sides(graph) if type(problem) is MaximumCut else None
    if sides is None:
        return None
    objective = problem.check(graph, sides).objective
    result = ExactResult(objective, objective, True, sides, clock.elapsed_s)
    reason = "proven optimal: the cut leaves out nothing that it could gain"
    return as_solution(problem, graph, result, found_by="two-sides", seed=seed, reason=reason)
