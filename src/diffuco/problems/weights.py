"""Which weights of a graph a problem knows: others are reported, and those that cannot work are refused."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph, GraphWarning
from diffuco.problems.base import NodeSetProblem, Problem

MAX_NODE_WEIGHT = 1e30
"""Larger ones leave the range of float32 when they are summed."""


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
    """Refuse node weights below 0, and such as float32 cannot sum, where nodes are counted by them."""
    if graph.node_weights is None or not isinstance(problem, NodeSetProblem):
        return
    bad = np.flatnonzero((graph.node_weights < 0) | (graph.node_weights > MAX_NODE_WEIGHT))
    if len(bad):
        label, weight = graph.labels[bad[0]], graph.node_weights[bad[0]]
        taken = f"{problem.name} takes node weights from 0 to {MAX_NODE_WEIGHT:g}"
        raise InputError(f"{name}: node {label} weighs {weight:g}; {taken}")


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
