"""Goemans-Williamson for Maximum Cut: a semidefinite relaxation, rounded by random hyperplanes.

The relaxation is solved in the low-rank form of Burer and Monteiro by the mixing method: each node has a unit vector,
and in turn each is set to what is best given its neighbours, minus the weighted sum of theirs. With more than sqrt(2 n)
dimensions the result is as good as that of a general SDP solver.
"""

import math

import numpy as np
from numpy.typing import NDArray

from diffuco.baselines.methods.base import Deadline, GraphByGraph
from diffuco.graphs.graph import Graph
from diffuco.problems import Problem

NUM_PLANES = 100
MAX_ROUNDS = 500
TOLERANCE = 1e-5
"""Rounds end when the relaxed cut grows by less than this share."""


class GoemansWilliamson(GraphByGraph):
    """Best of 100 hyperplanes; no local search after it."""

    name = "sdp"
    summary = "Goemans-Williamson: semidefinite relaxation, best of 100 hyperplanes"
    problems = ("max-cut",)
    time_limit = "stops"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Relax, then cut by hyperplanes; every column is one."""
        rng = np.random.default_rng(seed)
        vectors = relax(graph, rng, deadline)
        return vectors @ rng.normal(size=(vectors.shape[1], NUM_PLANES)) > 0


def relax(graph: Graph, rng: np.random.Generator, deadline: Deadline) -> NDArray[np.float64]:
    """Unit vectors that maximise sum_(i,j) w_ij (1 - v_i v_j) / 2, as long as there is time. [num_nodes, rank].

    >>> vectors = relax(Graph.from_edges([(0, 1)]), np.random.default_rng(0), Deadline.after(None))
    >>> round(float(vectors[0] @ vectors[1]), 6)
    -1.0
    """
    from diffuco.baselines.methods.kernels import mix

    indptr, indices, weights = graph.csr
    vectors = rng.normal(size=(graph.num_nodes, math.isqrt(2 * graph.num_nodes) + 2))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scale = float(np.abs(weights).sum()) / 2
    for _ in range(MAX_ROUNDS):
        gain = mix(vectors, indptr, indices, weights)
        if gain <= TOLERANCE * scale or deadline.is_over:
            break
    return vectors
