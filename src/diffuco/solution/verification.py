"""An independent check of solutions, straight from the graph's edge list.

It shares nothing with the solver: no batch, no energy, no torch, only the definition of each problem in numpy.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph


class Verdict(NamedTuple):
    """What a set of nodes is worth."""

    objective: float
    """Weight of the set, where every node weighs 1 unless told otherwise, or of the cut, or QUBO value."""
    violations: int
    """Violated constraints; the solution is feasible if there are none."""

    @property
    def feasible(self) -> bool:
        """Whether no constraint is violated."""
        return self.violations == 0


def verify(problem: str, graph: Graph, chosen: NDArray[np.bool_]) -> Verdict:
    """Judge the nodes where `chosen` is true as a solution of the named problem.

    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> verify("mis", path, np.array([True, False, True]))
    Verdict(objective=2.0, violations=0)
    >>> verify("mvc", path, np.array([True, False, False])).feasible
    False
    """
    u, v = graph.edges.T
    size = int(np.count_nonzero(chosen))
    weight = float(size if graph.node_weights is None else graph.node_weights[chosen].sum())
    if problem == "mis":
        return Verdict(weight, int(np.count_nonzero(chosen[u] & chosen[v])))
    if problem == "mvc":
        return Verdict(weight, int(np.count_nonzero(~chosen[u] & ~chosen[v])))
    if problem == "max-clique":
        return Verdict(weight, size * (size - 1) // 2 - int(np.count_nonzero(chosen[u] & chosen[v])))
    if problem == "mds":
        dominated = chosen.copy()
        dominated[u[chosen[v]]] = True
        dominated[v[chosen[u]]] = True
        return Verdict(weight, int(np.count_nonzero(~dominated)))
    weights = np.ones(graph.num_edges) if graph.edge_weights is None else graph.edge_weights
    if problem == "max-cut":
        return Verdict(float(weights[chosen[u] != chosen[v]].sum()), 0)
    if problem == "qubo":
        diagonal = 0.0 if graph.node_weights is None else graph.node_weights[chosen].sum()
        return Verdict(float(diagonal + weights[chosen[u] & chosen[v]].sum()), 0)
    raise ValueError(f"no check for problem '{problem}'")
