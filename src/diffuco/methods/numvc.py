"""Vertex covers and independent sets by NuMVC: a local search that weighs edges (`ops.numba_cover_walk`)."""

import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph
from diffuco.problems import MaximumIndependentSet, MinimumVertexCover, Problem

NUM_STEPS = 200_000
"""Of each walk, without a time limit."""
STEPS_AT_ONCE = 2_000
"""After so many, the clock is asked."""
NUM_WALKS = 2
"""Without a time limit; with one, there is a walk for every thread."""


class NuMvc(GraphByGraph):
    """Walks from the same greedy cover with different random numbers; the smallest cover of all is kept."""

    name = "numvc"
    summary = "local search for vertex covers and independent sets, 200,000 exchanges unless given a time limit"
    time_limit = "used"

    def solves(self, problem: Problem) -> bool:
        """A vertex cover is all but an independent set."""
        return isinstance(problem, (MaximumIndependentSet, MinimumVertexCover))

    def takes_node_weights(self, problem: Problem) -> bool:
        """It counts nodes."""
        return False

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """The best of every walk, as a cover or as the rest. [n, S]."""
        # Importing these takes longer than many a proof, after which nothing is searched.
        import torch

        from diffuco.ops import numba_cover_walk as loops
        from diffuco.ops.threads import on_all_threads

        num_walks = NUM_WALKS if deadline.limit_s is None else torch.get_num_threads()
        walks = [
            loops.make_walk(graph.csr.indptr, graph.csr.indices, seed * 1000 + number) for number in range(num_walks)
        ]

        def run(walk: loops.Walk) -> None:
            loops.take_steps(walk, NUM_STEPS if deadline.limit_s is None else 1)
            while deadline.limit_s is not None and not deadline.is_over:
                loops.take_steps(walk, STEPS_AT_ONCE)

        on_all_threads(run, [(walk,) for walk in walks])
        covers = np.stack([walk.best for walk in walks], axis=1)
        return covers if isinstance(problem, MinimumVertexCover) else ~covers
