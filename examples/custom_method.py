"""A method of your own behind the same interface as the others: one class with one function.

    python examples/custom_method.py [NUM_GRAPHS]

The method here is a simple local search for independent sets: drop some nodes of the set at random, fill it up again in
random order, keep what is not smaller. After `register_method`, `diffuco.cli.main` finds it too.
"""

import sys

import numpy as np
from numpy.typing import NDArray

import diffuco
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.methods import Deadline, GraphByGraph, register_method, repair
from diffuco.problems import MaximumIndependentSet, Problem

NUM_ROUNDS = 300


class RuinAndRecreate(GraphByGraph):
    """Drop a few random nodes of the set, fill it up again, keep what is not smaller."""

    name = "ruin-and-recreate"
    summary = "drops random nodes of an independent set and fills it up again"
    time_limit = "stops"

    def solves(self, problem: Problem) -> bool:
        """Independent sets."""
        return isinstance(problem, MaximumIndependentSet)

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """States [num_nodes] of one graph; what a method returns has to be feasible."""
        rng = np.random.default_rng(seed)
        best = self.filled(graph, np.zeros(graph.num_nodes, dtype=np.bool_), rng)
        for _ in range(NUM_ROUNDS):
            if deadline.is_over:
                break
            found = self.filled(graph, best & (rng.random(graph.num_nodes) < 0.7), rng)
            best = found if found.sum() >= best.sum() else best
        # Nothing is left to repair here; a search that ends with conflicts would need it.
        return repair(problem, graph, best[:, None])

    def filled(self, graph: Graph, chosen: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Add nodes without a neighbour in the set, in random order."""
        indptr, indices, _ = graph.csr
        chosen = chosen.copy()
        for node in rng.permutation(graph.num_nodes):
            if not chosen[indices[indptr[node] : indptr[node + 1]]].any():
                chosen[node] = True
        return chosen


def main(num_graphs: int) -> None:
    """Register the method and compare it with another one on the same graphs."""
    register_method(RuinAndRecreate())
    graphs = get_dataset("rb-tiny").graphs("test", num_graphs)
    for name in ("greedy", "ruin-and-recreate"):
        solutions = diffuco.solve(graphs, "mis", method=name)
        assert all(solution.feasible for solution in solutions)
        print(f"mean size of the sets, {name}: {np.mean([solution.objective for solution in solutions]):.3f}")


if __name__ == "__main__":
    main(num_graphs=int(sys.argv[1]) if len(sys.argv) > 1 else 20)
