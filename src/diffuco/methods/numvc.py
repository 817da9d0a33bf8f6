"""Vertex covers and independent sets by NuMVC: a local search that weighs edges (`ops.numba_cover_walk`).

It ends where cliques that share out the nodes (`ops.numba_clique_cover`) show that no more can be found.
"""

from functools import cache
from threading import Event

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.progress import Progress, current_follower
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph, beside
from diffuco.methods.merging import bounded
from diffuco.problems import MaximumIndependentSet, MinimumVertexCover, Problem
from diffuco.solution.result import Solution

NUM_STEPS = 200_000
"""Of each walk, without a time limit."""
STEPS_AT_ONCE = 2_000
"""After so many, the clock is asked."""
FIRST_ROUNDS, ROUNDS_BESIDE = 300, 1
"""Rounds of looking for fewer cliques: before the walks, and after every `STEPS_AT_ONCE` of the first one."""
MOST_LOOKS = 100_000_000
"""Entries of the adjacency that the first rounds look at: some tenths of a second."""
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

    def solve_one(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> Solution:
        """The best of the walks, with the bound of the cliques. Loading the compiled loops does not count as time."""
        left_s = None if deadline.limit_s is None else deadline.remaining_s
        Walking.load()
        deadline = Deadline.after(left_s)
        return self.go_on(Walking(problem, graph, seed, has_clock=deadline.limit_s is not None), deadline)

    def go_on(self, walking: "Walking", deadline: Deadline) -> Solution:
        """The best of walks that may have begun before."""
        walking.run(deadline)
        best = self.best_of(walking.problem, walking.graph, walking.states, walking.seed, deadline)
        return bounded(best, walking.bound, "a partition into cliques")


class Walking:
    """Walks on one graph, and the cliques that bound what they can find."""

    @staticmethod
    @cache
    def load() -> None:
        """Use everything once, on the smallest graph."""
        Walking(MaximumIndependentSet(), Graph.from_edges([(0, 1)]), 0, has_clock=True).run(Deadline.after(None))

    def __init__(self, problem: Problem, graph: Graph, seed: int, *, has_clock: bool) -> None:
        # Importing these takes longer than many a proof, after which nothing is searched.
        import torch

        from diffuco.ops import numba_cover_walk as loops

        self.problem, self.graph, self.seed, self.loops = problem, graph, seed, loops
        self.cliques = Cliques(graph, seed)
        self.walks = [
            loops.make_walk(graph.csr.indptr, graph.csr.indices, seed * 1000 + number)
            for number in range(torch.get_num_threads() if has_clock else NUM_WALKS)
        ]
        for walk in self.walks:
            loops.take_steps(walk, 1)  # keeps the cover that it starts from

    @property
    def states(self) -> NDArray[np.bool_]:
        """The best of every walk, as a cover or as the rest. [n, S]."""
        covers = np.stack([walk.best for walk in self.walks], axis=1)
        return covers if isinstance(self.problem, MinimumVertexCover) else ~covers

    @property
    def bound(self) -> float:
        """What no solution is better than."""
        return self._objective(self.graph.num_nodes - self.cliques.number)

    def _objective(self, cover_size: int) -> float:
        is_cover = isinstance(self.problem, MinimumVertexCover)
        return float(cover_size if is_cover else self.graph.num_nodes - cover_size)

    def run(self, deadline: Deadline) -> None:
        """Walk until the time is over, or for `NUM_STEPS` if there is no clock, or until the bound is met."""
        from diffuco.ops.threads import on_all_threads

        loops, walks, follower, stopped = self.loops, self.walks, current_follower(), Event()

        def is_best() -> bool:
            smallest = min(int(walk.counts[loops.BEST_SIZE]) for walk in walks)
            return smallest == self.graph.num_nodes - self.cliques.number

        def walk_on(number: int) -> None:
            while not (deadline.is_over or stopped.is_set() or is_best()):
                loops.take_steps(walks[number], STEPS_AT_ONCE)
                if number == 0:
                    self.cliques.improve(ROUNDS_BESIDE)
                    steps, smallest = (int(walks[0].counts[count]) for count in (loops.STEP, loops.BEST_SIZE))
                    if follower:
                        follower(Progress("exchanging nodes, steps", steps, None, self._objective(smallest)))

        def walk(number: int) -> None:
            try:
                walk_on(number)
            finally:  # a follower may have ended the search
                stopped.set()

        if deadline.limit_s is not None:
            try:
                beside(lambda: on_all_threads(walk, [(number,) for number in range(len(walks))])).result()
            finally:  # Ctrl+C ends the wait
                stopped.set()
        elif not is_best():
            on_all_threads(loops.take_steps, [(walk, NUM_STEPS) for walk in walks])


class Cliques:
    """Cliques that share out the nodes of a graph; no independent set has more nodes than there are of them."""

    def __init__(self, graph: Graph, seed: int) -> None:
        from diffuco.ops.numba_clique_cover import share_out

        self.indptr, self.indices, _ = graph.csr
        self.seed = seed % 2**32
        self.cliques = share_out(self.indptr, self.indices)
        self.improve(min(FIRST_ROUNDS, MOST_LOOKS // max(1, len(self.indices))))

    @property
    def number(self) -> int:
        """How many there are."""
        return 1 + int(self.cliques.max(initial=-1))

    def improve(self, num_rounds: int) -> None:
        """Look for fewer."""
        from diffuco.ops.numba_clique_cover import share_again

        self.seed = (self.seed + 1) % 2**32
        self.cliques = share_again(self.indptr, self.indices, self.cliques, num_rounds, self.seed)
