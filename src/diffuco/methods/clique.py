"""Maximum cliques: an exact search beside a local one, at any size.

The exact search is branch and bound with colourings and contradictions between them as bounds (ops/numba_clique.py). A
local search finds large cliques before it does, and fewer branches are left for a larger clique
(ops/numba_clique_walk.py). Both work in rounds of a fixed amount of work, at the same time where there are two threads,
and share the best clique after every round; so the result does not depend on their speed unless time runs out. A large
sparse graph is searched node by node, which takes time and memory in proportion to its edges.
"""

import time

import numpy as np

from diffuco.foundation.progress import report
from diffuco.graphs.graph import Graph
from diffuco.methods.exact import ExactMethod, ExactResult
from diffuco.problems import MaximumClique, Problem

FIRST_WORK = 2_000_000
"""Words of 64 bits that a search looks at in the first round: a few milliseconds."""
MOST_WORK = 40_000_000
"""The same in the longest rounds, about a tenth of a second; each takes twice the work of the one before."""


class CliqueSearch(ExactMethod):
    """Stops when the largest clique is proven, or with the largest found and a bound."""

    name = "clique-search"
    summary = "exact: branch and bound for cliques beside local search, 60 s per graph unless told otherwise"

    def solves(self, problem: Problem) -> bool:
        """Cliques."""
        return isinstance(problem, MaximumClique)

    def takes_node_weights(self, problem: Problem) -> bool:
        """It counts nodes."""
        return False

    def prove(self, problem: Problem, graph: Graph, *, time_limit_s: float, seed: int = 0) -> ExactResult:
        """Search until the largest clique is proven or the time is up.

        >>> house = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)])
        >>> result = CliqueSearch().prove(MaximumClique(), house, time_limit_s=10)
        >>> result.objective, result.proven, result.chosen.nonzero()[0].tolist()
        (3.0, True, [0, 1, 4])
        """
        # Importing torch and numba takes seconds.
        from diffuco.ops import numba_clique as exact
        from diffuco.ops import numba_clique_walk as local
        from diffuco.ops.numba_degeneracy import greedy_clique, order_nodes
        from diffuco.ops.threads import on_all_threads

        started = time.perf_counter()
        order = order_nodes(graph.csr.indptr, graph.csr.indices)
        space = exact.make_space(order, greedy_clique(order))
        walks = local.make_walks(space.adjacent, seed) if exact.is_whole(space) else []
        is_done, work, num_rounds = False, FIRST_WORK, 0
        for walk in walks:
            local.walk(space.adjacent, walk, work)
            exact.adopt(space, walk.best)

        def search_exactly() -> None:
            nonlocal is_done
            is_done = exact.advance(order, space, work)

        def search_locally() -> None:
            if walks and not is_done:
                local.walk(space.adjacent, walks[num_rounds % len(walks)], work)

        while not is_done and (num_rounds == 0 or time.perf_counter() < started + time_limit_s):
            on_all_threads(lambda search: search(), [(search_exactly,), (search_locally,)])
            if walks and not is_done:
                exact.adopt(space, walks[num_rounds % len(walks)].best)
            work, num_rounds = min(2 * work, MOST_WORK), num_rounds + 1
            report("clique search, rounds", num_rounds, best=lambda: float(len(exact.best_clique(space))))
        chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
        chosen[order.nodes[exact.best_clique(space)]] = True
        objective = problem.check(graph, chosen).objective
        bound = objective if is_done else max(objective, float(space.progress[exact.BOUND]))
        return ExactResult(objective, bound, bound == objective, chosen, time.perf_counter() - started)
