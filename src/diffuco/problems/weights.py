"""Which weights of a graph a problem knows: others are reported, and those that cannot work are refused."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.graph import Graph
from diffuco.problems.base import Problem
from diffuco.problems.qubo import Qubo


def check_weights(problem: Problem, graphs: Sequence[Graph]) -> None:
    """Refuse weights that a problem cannot take, and warn of those that it ignores or assumes.

    >>> from diffuco.problems import get_problem
    >>> check_weights(get_problem("mvc"), [Graph.from_edges([(0, 1)], node_weights=[2, -1])])
    Traceback (most recent call last):
    diffuco.foundation.errors.InputError: graph: node 1 weighs -1; mvc takes node weights from 0 to 1e+30
    """
    for graph in graphs:
        check_node_weights(problem, graph, graph.name or "graph")
    for graph in graphs:
        if note := weights_note(problem, graph):
            warnings.warn(GraphWarning(note), stacklevel=3)
            return


def check_node_weights(problem: Problem, graph: Graph, name: str) -> None:
    """Refuse node weights that the problem cannot take."""
    bad = None if graph.node_weights is None else problem.check_node_weights(graph.node_weights)
    if graph.node_weights is not None and bad is not None:
        node, taken = bad
        weight = graph.node_weights[node]
        raise InputError(f"{name}: node {graph.labels[node]} weighs {weight:g}; {problem} takes {taken}")


def weights_note(problem: Problem, graph: Graph) -> str:
    """What a user should know of the weights of a graph: which are ignored, or assumed; empty if nothing.

    >>> from diffuco.problems import get_problem
    >>> weights_note(get_problem("qubo"), Graph.from_edges([(0, 1)]))
    'graph: it has no weights; qubo takes 1 for every edge and 0 for every node, so choosing nothing is optimal'
    """
    name = graph.name or "graph"
    if ignored := ignored_weights(problem, graph):
        return f"{name}: {problem.name} ignores the {ignored} in it"
    has_weights = graph.edge_weights is not None or graph.node_weights is not None
    if isinstance(problem, Qubo) and graph.num_edges and not has_weights:
        assumed = "qubo takes 1 for every edge and 0 for every node, so choosing nothing is optimal"
        return f"{name}: it has no weights; {assumed}"
    return ""


def ignored_weights(problem: Problem, graph: Graph) -> str:
    """The weights of a graph that a problem does not know, in words; empty if there are none.

    >>> from diffuco.problems import get_problem
    >>> ignored_weights(get_problem("mis"), Graph.from_edges([(0, 1)], edge_weights=[2], node_weights=[1, 2]))
    'edge weights'
    """
    edges = graph.edge_weights is not None and not problem.uses_edge_weights
    nodes = graph.node_weights is not None and not problem.uses_node_weights
    return " and ".join([*["edge weights"] * edges, *["node weights"] * nodes])


def weight_unit(problem: Problem, graph: Graph) -> float:
    """The power of four next below the largest weight that a problem uses, so that dividing by it and roots are exact.

    >>> from diffuco.problems import get_problem
    >>> weight_unit(get_problem("max-cut"), Graph.from_edges([(0, 1), (1, 2)], edge_weights=[100, -3]))
    64.0
    """
    if graph.edge_weights is None and graph.node_weights is None:
        return 1.0
    used = [graph.node_weights] if problem.uses_node_weights else []
    used += [graph.edge_weights_or(1.0)] if problem.uses_edge_weights else []
    largest = max((float(np.abs(weights).max(initial=0.0)) for weights in used if weights is not None), default=0.0)
    if not problem.scales_with_weights or not largest:
        return 1.0
    return 4.0 ** ((math.frexp(largest)[1] - 1) // 2)


def in_weight_units(problem: Problem, graph: Graph) -> Graph:
    """The graph with the weights that a problem knows, divided by their unit: same solutions, in range of float32."""
    known, unit = without_ignored_weights(problem, graph), weight_unit(problem, graph)
    if unit == 1.0:
        return known
    return replace(
        known,
        edge_weights=known.edge_weights_or(1.0) / unit if problem.uses_edge_weights else None,
        node_weights=None if known.node_weights is None else known.node_weights / unit,
    )


def without_ignored_weights(problem: Problem, graph: Graph) -> Graph:
    """The graph with the weights that a problem knows, and no others."""
    if not ignored_weights(problem, graph):
        return graph
    return replace(
        graph,
        edge_weights=graph.edge_weights if problem.uses_edge_weights else None,
        node_weights=graph.node_weights if problem.uses_node_weights else None,
    )
