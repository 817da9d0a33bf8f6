"""The graph of a problem, made from whatever a user gives."""

from diffuco.graphs.convert import as_graph, qubo_as_graph
from diffuco.graphs.graph import Graph
from diffuco.problems.base import Problem
from diffuco.problems.qubo import Qubo


def graph_for(problem: Problem, source: object) -> Graph:
    """The graph in `source`; for `qubo`, a matrix, a dictionary or triples are its coefficients."""
    return qubo_as_graph(source) if isinstance(problem, Qubo) else as_graph(source)
