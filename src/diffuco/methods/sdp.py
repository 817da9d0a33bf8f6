"""Goemans-Williamson for Maximum Cut: a semidefinite relaxation, rounded by random hyperplanes.

The relaxation is solved in the low-rank form of Burer and Monteiro by the mixing method: each node has a unit vector,
and in turn each is set to what is best given its neighbours, minus the weighted sum of theirs. With more than sqrt(2 n)
dimensions the result is as good as that of a general SDP solver.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph
from diffuco.problems import MaximumCut, Problem

NUM_PLANES = 100
MAX_ROUNDS = 5000
TOLERANCE = 1e-5
"""Rounds end when the relaxed cut grows by less than this share."""
BOUND_TOLERANCE = 1e-8
"""The same where the relaxation is to bound all cuts; less of it tightens the bound of a BA graph by no whole edge."""
MAX_BOUND_NODES = 5_000
"""The bound takes the eigenvalues of a dense matrix; graphs of more nodes get the sum of their weights."""


class GoemansWilliamson(GraphByGraph):
    """Best of 100 hyperplanes; no local search after it."""

    name = "sdp"
    summary = "Goemans-Williamson: semidefinite relaxation, best of 100 hyperplanes"
    time_limit = "stops"

    def solves(self, problem: Problem) -> bool:
        """Cuts."""
        return isinstance(problem, MaximumCut)

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Relax, then cut by hyperplanes; every column is one."""
        rng = np.random.default_rng(seed)
        vectors = relax(graph, rng, deadline)
        return vectors @ rng.normal(size=(vectors.shape[1], NUM_PLANES)) > 0


def relax(
    graph: Graph, rng: np.random.Generator, deadline: Deadline, tolerance: float = TOLERANCE
) -> NDArray[np.float64]:
    """Unit vectors that maximise sum_(i,j) w_ij (1 - v_i v_j) / 2, as long as there is time. [num_nodes, rank].

    >>> vectors = relax(Graph.from_edges([(0, 1)]), np.random.default_rng(0), Deadline.after(None))
    >>> round(float(vectors[0] @ vectors[1]), 6)
    -1.0
    """
    from diffuco.methods.numba_sdp import mix

    indptr, indices, weights = graph.csr
    vectors = rng.normal(size=(graph.num_nodes, math.isqrt(2 * graph.num_nodes) + 2))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scale = float(np.abs(weights).sum()) / 2
    for _ in range(MAX_ROUNDS):
        gain = mix(vectors, indptr, indices, weights)
        if gain <= tolerance * scale or deadline.is_over:
            break
    return vectors


def upper_bound(graph: Graph) -> float:
    """No cut weighs more than this: the value of a dual solution of the relaxation, whatever the relaxation reached.

    For any y, with lambda the smallest eigenvalue of W + diag(y), W + diag(y) - lambda I is positive semidefinite, so
    that -x'Wx <= sum_i y_i - n lambda for every x in {-1, 1}^n, and a cut weighs (sum_(i,j) w_ij - x'Wx / 2) / 2 with
    the sum over edges. At the optimum y_i is the length of the pull on node i. The last term makes up for rounding in
    the eigenvalue.

    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> round(upper_bound(triangle), 3)
    2.25
    """
    from scipy.linalg import eigvalsh

    indptr, indices, weights = graph.csr
    n, total = graph.num_nodes, float(weights.sum()) / 2
    if n > MAX_BOUND_NODES or not graph.num_edges:
        return float(weights.clip(min=0).sum()) / 2
    matrix = scipy.sparse.csr_array((weights, indices, indptr), shape=(n, n))
    vectors = relax(graph, np.random.default_rng(0), Deadline.after(None), BOUND_TOLERANCE)
    pulls = np.linalg.norm(np.asarray(matrix @ vectors), axis=1)
    slack = matrix.toarray() + np.diag(pulls)
    smallest = float(eigvalsh(slack, subset_by_index=[0, 0])[0])
    smallest -= n * float(np.finfo(np.float64).eps) * float(np.linalg.norm(slack))
    return total / 2 + (float(pulls.sum()) - n * smallest) / 4
