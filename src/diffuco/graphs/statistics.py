"""Statistics that summarise a set of graphs, for model cards and for choosing a recipe or a model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diffuco.foundation.wording import counted
from diffuco.graphs.graph import Graph


@dataclass(frozen=True)
class GraphStatistics:
    """Size, density and degree of graphs: smallest, mean and largest."""

    count: int
    nodes: tuple[int, float, int]
    density: tuple[float, float, float]
    """Share of the possible edges that are present."""
    mean_degree: float
    """Mean number of neighbours over all nodes of all graphs."""
    degrees: tuple[float, float, float]
    """Mean number of neighbours of a graph's nodes."""

    def __str__(self) -> str:
        """The statistics in words.

        >>> triangle, path = Graph.from_edges([(0, 1), (1, 2), (0, 2)]), Graph.from_edges([(0, 1), (1, 2), (2, 3)])
        >>> print(describe([triangle, path]))
        2 graphs of 3 to 4 nodes, density 0.5 to 1
        """
        nodes = _range(f"{self.nodes[0]:,}", f"{self.nodes[2]:,}")
        density = _range(f"{self.density[0]:.2g}", f"{self.density[2]:.2g}")
        noun = "node" if self.nodes[2] == 1 else "nodes"
        return f"{counted(self.count, 'graph')} of {nodes} {noun}, density {density}"


def describe(graphs: Sequence[Graph]) -> GraphStatistics:
    """The statistics of at least one graph."""
    nodes = np.array([graph.num_nodes for graph in graphs])
    density = np.array([graph.density for graph in graphs])
    degrees = np.array([2 * graph.num_edges / max(1, graph.num_nodes) for graph in graphs])
    return GraphStatistics(
        count=len(graphs),
        nodes=(int(nodes.min()), float(nodes.mean()), int(nodes.max())),
        density=(float(density.min()), float(density.mean()), float(density.max())),
        mean_degree=2 * sum(graph.num_edges for graph in graphs) / max(1, int(nodes.sum())),
        degrees=(float(degrees.min()), float(degrees.mean()), float(degrees.max())),
    )


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
