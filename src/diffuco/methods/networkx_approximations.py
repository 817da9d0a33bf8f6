"""The approximation algorithms of networkx as a method (the extra `networkx`)."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffuco.methods.base import Deadline, GraphByGraph
from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem


class Networkx(GraphByGraph):
    """What a networkx user gets from `networkx.algorithms.approximation`."""

    name = "networkx"
    summary = "the approximation algorithms of networkx"
    problems = ("mis", "mvc", "max-clique", "max-cut", "mds")
    unweighted = ("mis", "max-clique")

    def missing(self) -> str | None:
        """networkx itself."""
        return None if find_spec("networkx") else "networkx; pip install 'diffuco[networkx]'"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Call the function that networkx has for the problem."""
        import networkx

        source = networkx.empty_graph(graph.num_nodes)
        weights = np.ones(graph.num_edges) if graph.edge_weights is None else graph.edge_weights
        source.add_weighted_edges_from(np.column_stack([graph.edges, weights]).tolist())
        source = networkx.relabel_nodes(source, int)
        if graph.node_weights is not None:
            networkx.set_node_attributes(source, dict(enumerate(graph.node_weights.tolist())), "weight")
        chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
        try:
            nodes = _approximate(problem.name, source, seed)
        except RecursionError:
            raise InputError(f"networkx's {problem.name} recurses too deep on {graph}; try greedy") from None
        chosen[np.array(sorted(nodes), dtype=np.int64)] = True
        return chosen


def _approximate(problem: str, source: Any, seed: int) -> set[int]:
    from networkx.algorithms import approximation

    found: set[int]
    if problem == "mis":
        found = approximation.maximum_independent_set(source)
    elif problem == "mvc":
        found = approximation.min_weighted_vertex_cover(source, weight="weight")
    elif problem == "max-clique":
        found = approximation.max_clique(source)
    elif problem == "mds":
        found = approximation.min_weighted_dominating_set(source, weight="weight")
    else:
        _, (found, _) = approximation.one_exchange(source, weight="weight", seed=seed)
    return found
