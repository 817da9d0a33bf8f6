"""The approximation algorithms of networkx as a method (the extra `networkx`)."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph
from diffuco.problems import (
    MaximumClique,
    MaximumCut,
    MaximumIndependentSet,
    MinimumDominatingSet,
    MinimumVertexCover,
    Problem,
)


def _approximation() -> Any:
    from networkx.algorithms import approximation

    return approximation


FUNCTIONS: dict[type[Problem], Callable[[Any, int], set[int]]] = {
    MaximumIndependentSet: lambda source, seed: _approximation().maximum_independent_set(source),
    MinimumVertexCover: lambda source, seed: _approximation().min_weighted_vertex_cover(source, weight="weight"),
    MaximumClique: lambda source, seed: _approximation().max_clique(source),
    MinimumDominatingSet: lambda source, seed: _approximation().min_weighted_dominating_set(source, weight="weight"),
    MaximumCut: lambda source, seed: _approximation().one_exchange(source, weight="weight", seed=seed)[1][0],
}
"""The function of networkx for a problem; what it returns are nodes."""


class Networkx(GraphByGraph):
    """What a networkx user gets from `networkx.algorithms.approximation`."""

    name = "networkx"
    summary = "the approximation algorithms of networkx"

    def solves(self, problem: Problem) -> bool:
        """The problems that networkx has a function for."""
        return isinstance(problem, tuple(FUNCTIONS))

    def takes_node_weights(self, problem: Problem) -> bool:
        """Only covers and dominating sets are weighed."""
        return isinstance(problem, MinimumVertexCover | MinimumDominatingSet)

    def missing(self) -> str | None:
        """networkx itself."""
        return None if find_spec("networkx") else f"networkx; {install_hint('networkx')}"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Call the function that networkx has for the problem."""
        import networkx

        source = networkx.empty_graph(graph.num_nodes)
        source.add_weighted_edges_from(np.column_stack([graph.edges, graph.edge_weights_or(1.0)]).tolist())
        source = networkx.relabel_nodes(source, int)
        if graph.node_weights is not None:
            networkx.set_node_attributes(source, dict(enumerate(graph.node_weights.tolist())), "weight")
        chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
        try:
            nodes = FUNCTIONS[type(problem)](source, seed)
        except RecursionError:
            raise InputError(f"networkx's {problem.name} recurses too deep on {graph}; try greedy") from None
        chosen[np.array(sorted(nodes), dtype=np.int64)] = True
        return chosen
