"""Which weights of a graph a problem knows: others are reported, and those that cannot work are refused."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.graph import Graph
from diffuco.problems.base import Problem


def check_weights(problem: Problem, graphs: Sequence[Graph]) -> None:
    """Refuse weights that a problem cannot take, and warn of those that it ignores.

    >>> from diffuco.problems import get_problem
    >>> check_weights(get_problem("mvc"), [Graph.from_edges([(0, 1)], node_weights=[2, -1])])
    Traceback (most recent call last):
    diffuco.foundation.errors.InputError: graph: node 1 weighs -1; mvc takes node weights from 0 to 1e+30
    """
    for graph in graphs:
        check_node_weights(problem, graph, graph.name or "graph")
    for graph in graphs:
        if ignored := ignored_weights(problem, graph):
            text = f"{graph.name or 'graph'}: {problem.name} ignores the {ignored} in it"
            warnings.warn(GraphWarning(text), stacklevel=3)
            return


def check_node_weights(problem: Problem, graph: Graph, name: str) -> None:
    """Refuse node weights that the problem cannot take."""
    bad = None if graph.node_weights is None else problem.check_node_weights(graph.node_weights)
    if graph.node_weights is not None and bad is not None:
        node, taken = bad
        weight = graph.node_weights[node]
        raise InputError(f"{name}: node {graph.labels[node]} weighs {weight:g}; {problem} takes {taken}")


def ignored_weights(problem: Problem, graph: Graph) -> str:
    """The weights of a graph that a problem does not know, in words; empty if there are none.

    >>> from diffuco.problems import get_problem
    >>> ignored_weights(get_problem("mis"), Graph.from_edges([(0, 1)], edge_weights=[2], node_weights=[1, 2]))
    'edge weights'
    """
    edges = graph.edge_weights is not None and not problem.uses_edge_weights
    nodes = graph.node_weights is not None and not problem.uses_node_weights
    return " and ".join([*["edge weights"] * edges, *["node weights"] * nodes])


def without_ignored_weights(problem: Problem, graph: Graph) -> Graph:
    """The graph with the weights that a problem knows, and no others."""
    if not ignored_weights(problem, graph):
        return graph
    return replace(
        graph,
        edge_weights=graph.edge_weights if problem.uses_edge_weights else None,
        node_weights=graph.node_weights if problem.uses_node_weights else None,
    )
