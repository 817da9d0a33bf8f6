"""Ten families of sparse random graphs, from trees to power laws, for models that are told nothing of the family.

Every function is pure, as in `generate`, and takes time roughly proportional to the edges: a million nodes take
seconds.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.wording import counted
from diffuco.graphs.generate import ba_graph, bernoulli_successes, er_graph, random_pairs, require
from diffuco.graphs.graph import Graph

Pairs = NDArray[np.int64]
"""Pairs of nodes in any order, perhaps repeated. [pairs, 2]"""


def regular_graph(num_nodes: int, degree: int, rng: np.random.Generator) -> Graph:
    """Every node has the same degree; if degree times nodes is odd, one node has one neighbour fewer.

    The ends of edges are paired at random. Then pairs that are a loop or a repeated edge exchange ends with random
    others until none is left.

    >>> regular_graph(100, 3, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=150)
    """
    require(
        0 <= 2 * degree <= num_nodes,
        f"degree {degree} in a regular graph of {counted(num_nodes, 'node')}; expected at most half of the nodes",
    )
    ends = rng.permutation(np.repeat(np.arange(num_nodes), degree))
    pairs = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    while True:
        keys = pairs.min(axis=1) * num_nodes + pairs.max(axis=1)
        is_bad = np.ones(len(pairs), dtype=bool)
        is_bad[np.unique(keys, return_index=True)[1]] = False
        is_bad |= pairs[:, 0] == pairs[:, 1]
        if not is_bad.any():
            return _simple(num_nodes, pairs)
        bad = np.flatnonzero(is_bad)
        moved = np.unique(np.concatenate([bad, rng.integers(len(pairs), size=len(bad) + 1)]))
        pairs[moved, 1] = rng.permutation(pairs[moved, 1])


def power_law_graph(num_nodes: int, exponent: float, min_degree: int, rng: np.random.Generator) -> Graph:
    """Degrees follow k^-exponent from `min_degree` on; their ends are paired at random, and repeated edges merged.

    >>> power_law_graph(100, 2.5, 2, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=255)
    """
    require(exponent > 1, f"exponent {exponent} of a power law; expected more than 1")
    drawn = min_degree * (1 - rng.random(num_nodes)) ** (-1 / (exponent - 1))
    degrees = np.minimum(drawn, num_nodes - 1).astype(np.int64)
    ends = rng.permutation(np.repeat(np.arange(num_nodes), degrees))
    return _simple(num_nodes, ends[: len(ends) // 2 * 2].reshape(-1, 2))


def small_world_graph(num_nodes: int, reach: int, rewired: float, rng: np.random.Generator) -> Graph:
    """Watts-Strogatz: a ring in which nodes up to `reach` apart are joined; a share of the edges gets a random end.

    >>> small_world_graph(100, 2, 0.1, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=199)
    """
    nodes = np.arange(num_nodes)
    pairs = np.concatenate([np.stack([nodes, (nodes + hop) % num_nodes], axis=1) for hop in range(1, reach + 1)])
    moves = rng.random(len(pairs)) < rewired
    pairs[moves, 1] = rng.integers(num_nodes, size=int(moves.sum()))
    return _simple(num_nodes, pairs)


def geometric_graph(num_nodes: int, average_degree: float, rng: np.random.Generator) -> Graph:
    """Random points in a square, joined if they are near; nodes away from the border have the given mean degree.

    >>> geometric_graph(100, 6.0, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=251)
    """
    from scipy.spatial import cKDTree

    radius = math.sqrt(average_degree / (math.pi * max(1, num_nodes - 1)))
    pairs = cKDTree(rng.random((num_nodes, 2))).query_pairs(radius, output_type="ndarray")
    return _simple(num_nodes, pairs.astype(np.int64))


def grid_graph(num_nodes: int, missing: float, rng: np.random.Generator, *, triangles: bool = False) -> Graph:
    """A square grid, with one random diagonal in every cell if `triangles`, from which a share of edges is missing.

    >>> grid_graph(100, 0.0, np.random.default_rng(0)), grid_graph(100, 0.0, np.random.default_rng(0), triangles=True)
    (Graph(num_nodes=100, num_edges=180), Graph(num_nodes=100, num_edges=261))
    """
    width = max(1, math.isqrt(num_nodes))
    nodes = np.arange(num_nodes)
    has_right = nodes % width < width - 1
    right = np.stack([nodes, nodes + 1], axis=1)[has_right]
    down = np.stack([nodes, nodes + width], axis=1)
    parts = [right, down]
    if triangles:
        falls = rng.random(num_nodes) < 0.5
        falling = np.stack([nodes, nodes + width + 1], axis=1)[has_right & falls]
        rising = np.stack([nodes + 1, nodes + width], axis=1)[has_right & ~falls]
        parts += [falling, rising]
    pairs = np.concatenate(parts)
    pairs = pairs[(pairs < num_nodes).all(axis=1)]
    return _simple(num_nodes, pairs[rng.random(len(pairs)) >= missing])


def community_graph(
    num_nodes: int, size: int, inside_degree: float, outside_degree: float, rng: np.random.Generator
) -> Graph:
    """Communities of `size` nodes: random edges inside them, and fewer between all nodes; both by their mean degree.

    >>> community_graph(100, 20, 6.0, 1.0, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=299)
    """
    first, second = np.triu_indices(size, 1)
    trials = -(-num_nodes // size) * len(first)
    community, pair = np.divmod(bernoulli_successes(trials, min(1.0, inside_degree / (size - 1)), rng), len(first))
    inside = np.stack([first[pair], second[pair]], axis=1) + size * community[:, None]
    outside = random_pairs(num_nodes, min(1.0, outside_degree / (num_nodes - 1)), rng)
    return _simple(num_nodes, np.concatenate([inside[inside[:, 1] < num_nodes], outside]))


def tree_graph(num_nodes: int, reach: int, extra: float, rng: np.random.Generator) -> Graph:
    """A random tree and random edges, `extra` per node; a node's parent is among the `reach` nodes before it.

    A short reach gives long branches, a long one a tree that is a few levels deep.

    >>> tree_graph(100, 10, 0.1, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=109)
    """
    nodes = np.arange(1, num_nodes)
    parents = nodes - 1 - (rng.random(len(nodes)) * np.minimum(nodes, reach)).astype(np.int64)
    added = rng.integers(num_nodes, size=(int(extra * num_nodes), 2))
    return _simple(num_nodes, np.concatenate([np.stack([parents, nodes], axis=1), added]))


FAMILIES: dict[str, Callable[[int, float, float, np.random.Generator], Graph]] = {
    "uniform": lambda n, a, b, rng: er_graph(n, (3 + 17 * a) / (n - 1), rng),
    "regular": lambda n, a, b, rng: regular_graph(n, 3 + int(8 * a), rng),
    "preferential": lambda n, a, b, rng: ba_graph(n, 2 + int(7 * a), rng),
    "power-law": lambda n, a, b, rng: power_law_graph(n, 2.1 + 0.9 * a, 1 + int(4 * b), rng),
    "small-world": lambda n, a, b, rng: small_world_graph(n, 2 + int(4 * a), 0.5 * b, rng),
    "geometric": lambda n, a, b, rng: geometric_graph(n, 4 + 12 * a, rng),
    "grid": lambda n, a, b, rng: grid_graph(n, 0.3 * a, rng),
    "triangulation": lambda n, a, b, rng: grid_graph(n, 0.3 * a, rng, triangles=True),
    "communities": lambda n, a, b, rng: community_graph(n, 10 + int(41 * a), 3 + 5 * b, 0.5 + 1.5 * rng.random(), rng),
    "tree": lambda n, a, b, rng: tree_graph(n, max(1, int(n**a)), 0.3 * b, rng),
}
"""The families by name. Two numbers from 0 to 1 place a graph in the ranges of its family."""


def sparse_graph(family: int, size: float, first: float, second: float, rng: np.random.Generator) -> Graph:
    """A graph of the family with this number; sizes from 0 to 1 mean 100 to 1,000 nodes, spaced by their logarithm.

    >>> sparse_graph(1, 0.0, 0.5, 0.0, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=350)
    """
    return list(FAMILIES.values())[family](int(100 * 10**size), first, second, rng)


def weighted_sparse_graph(
    family: int, size: float, first: float, second: float, kind: int, rng: np.random.Generator
) -> Graph:
    """The same with weights on the edges: +1 and -1 at random (kind 0) or normally distributed (kind 1).

    >>> weighted_sparse_graph(1, 0.0, 0.5, 0.0, 0, np.random.default_rng(0)).edge_weights[:4]
    array([1., 1., 1., 1.])
    """
    graph = sparse_graph(family, size, first, second, rng)
    weights = rng.choice([-1.0, 1.0], graph.num_edges) if kind == 0 else rng.standard_normal(graph.num_edges)
    return replace(graph, edge_weights=weights)


def _simple(num_nodes: int, pairs: Pairs) -> Graph:
    """The graph of these pairs without loops, each edge once, in lexicographic order."""
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    keys = np.unique(pairs.min(axis=1) * num_nodes + pairs.max(axis=1))
    return Graph(num_nodes, np.stack(np.divmod(keys, num_nodes), axis=1))
