"""Random graphs: RB, Barabási-Albert, Erdős-Rényi, unions of planar graphs and random QUBOs.

Every function is pure: the same parameters and the same state of `rng` give the same graph on every machine.
"""

import math

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.graphs.graph import Graph

GENERATOR_VERSION = 1
"""Part of every cache file's name; raise it whenever a generator or a named dataset gives different graphs."""

MAX_QUBO_WEIGHT = 100


def rb_graph(num_cliques: int, clique_size: int, tightness: float, rng: np.random.Generator) -> Graph:
    """Model RB: cliques, with random edges between random pairs of them; the cliques bound every independent set.

    With n cliques of k nodes and tightness p, let a = ln k / ln n and r = -a / ln(1 - p). There are int(r n ln n - 1)
    draws. Each draw picks an ordered pair of different cliques (i, j). There are k^2 ordered pairs of nodes between
    them; of the pairs not yet drawn in that orientation, the draw adds int(p n^(2a)), or all that are left. A pair of
    nodes drawn in both orientations is one edge. The benchmark depends on this: excluding both orientations makes its
    graphs measurably harder.

    The exponents cancel: r n ln n = -n ln k / ln(1 - p) and n^(2a) = k^2. The code computes these forms, which avoids
    rounding that could differ between machines. No node is isolated, because a clique has at least two nodes.

    >>> rb_graph(10, 4, 0.5, np.random.default_rng(0))
    Graph(num_nodes=40, num_edges=204)
    """
    require(num_cliques >= 2, f"{counted(num_cliques, 'clique')} in an RB graph; expected 2 or more")
    require(clique_size >= 2, f"RB cliques of size {clique_size}; expected 2 or more")
    require(0 < tightness <= 1, f"RB tightness {tightness}; expected above 0 and at most 1")
    from diffuco.graphs.kernels import rb_edges

    pairs_per_draw = int(tightness * clique_size**2)
    num_draws = 0
    if tightness < 1 and pairs_per_draw > 0:
        num_draws = max(0, int(-num_cliques * math.log(clique_size) / math.log1p(-tightness) - 1))
    return Graph(num_cliques * clique_size, rb_edges(num_cliques, clique_size, num_draws, pairs_per_draw, rng))


def ba_graph(num_nodes: int, attachments: int, rng: np.random.Generator) -> Graph:
    """Barabási-Albert: starting from a star of `attachments + 1` nodes, each new node joins `attachments` older ones.

    The older nodes are distinct, each drawn with probability proportional to its degree.

    >>> ba_graph(100, 4, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=384)
    """
    require(
        1 <= attachments < num_nodes,
        f"{counted(attachments, 'attachment')} in a BA graph of {counted(num_nodes, 'node')};"
        " expected at least 1 and fewer than there are nodes",
    )
    from diffuco.graphs.kernels import ba_edges

    return Graph(num_nodes, ba_edges(num_nodes, attachments, rng))


def er_graph(num_nodes: int, edge_probability: float, rng: np.random.Generator) -> Graph:
    """Erdős-Rényi G(n, p): every pair of nodes is an edge independently with the same probability.

    >>> er_graph(100, 0.1, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=450)
    """
    return Graph(num_nodes, random_pairs(num_nodes, edge_probability, rng))


def planar_union(num_nodes: int, num_layers: int, rng: np.random.Generator) -> Graph:
    """Union of planar graphs with as many edges as planarity allows, each grown independently on shuffled nodes.

    Growth starts from a triangle. Each new node is placed in a random face and joined to its three corners.

    >>> planar_union(100, 1, np.random.default_rng(0))
    Graph(num_nodes=100, num_edges=294)
    """
    require(num_nodes >= 3, f"a planar union of {counted(num_nodes, 'node')}; expected 3 or more")
    require(num_layers >= 1, f"a union of {num_layers} planar graphs; expected 1 or more")
    layers = [rng.permutation(num_nodes)[_stacked_triangles(num_nodes, rng)] for _ in range(num_layers)]
    return Graph(num_nodes, np.unique(np.sort(np.concatenate(layers), axis=1), axis=0))


def mixed_graph(
    num_nodes: int, kind: int, edge_probability: float, average_degree: float, rng: np.random.Generator
) -> Graph:
    """One of three kinds: Erdős-Rényi with a given probability (0), with a given degree (1), two planar layers (2).

    >>> [mixed_graph(100, kind, 0.2, 4.0, np.random.default_rng(0)).num_edges for kind in range(3)]
    [964, 174, 576]
    """
    if kind == 2:
        return planar_union(num_nodes, 2, rng)
    return er_graph(num_nodes, edge_probability if kind == 0 else average_degree / (num_nodes - 1), rng)


def random_qubo(num_nodes: int, density: float, rng: np.random.Generator) -> Graph:
    """A QUBO like those of J. E. Beasley's benchmark: integer coefficients uniform in -100..100.

    `node_weights` hold the diagonal. `edge_weights` hold the pairs, each present with probability `density`; their
    weights are never zero, because a pair of weight zero would not be an edge.

    >>> random_qubo(50, 0.1, np.random.default_rng(0))
    Graph(num_nodes=50, num_edges=106)
    """
    edges = random_pairs(num_nodes, density, rng)
    diagonal = rng.integers(-MAX_QUBO_WEIGHT, MAX_QUBO_WEIGHT, num_nodes, endpoint=True)
    pairs = rng.integers(-MAX_QUBO_WEIGHT, MAX_QUBO_WEIGHT, len(edges))
    pairs += pairs >= 0
    return Graph(num_nodes, edges, pairs.astype(np.float64), diagonal.astype(np.float64))


def _stacked_triangles(num_nodes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Edges of a planar graph whose nodes are numbered in the order they were added. [3 nodes - 6, 2]."""
    faces, edges = [(0, 1, 2), (0, 1, 2)], [(0, 1), (0, 2), (1, 2)]  # inside and outside of the first triangle
    choices = rng.random(num_nodes)
    for node in range(3, num_nodes):
        chosen = int(choices[node] * len(faces))
        a, b, c = faces[chosen]
        faces[chosen] = (a, b, node)
        faces += [(a, c, node), (b, c, node)]
        edges += [(a, node), (b, node), (c, node)]
    return np.array(edges, dtype=np.int64)


def random_pairs(num_nodes: int, probability: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Sorted pairs u < v, each present with the given probability, in time proportional to the pairs present."""
    require(num_nodes >= 0, f"a graph of {num_nodes} nodes; expected 0 or more")
    require(0 <= probability <= 1, f"edge probability {probability}; expected 0 to 1")
    row_starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.arange(num_nodes - 1, 0, -1))])
    present = bernoulli_successes(int(row_starts[-1]), probability, rng)
    row_lengths = np.diff(np.searchsorted(present, row_starts))
    first = np.repeat(np.arange(len(row_lengths)), row_lengths)
    return np.stack([first, present - row_starts[first] + first + 1], axis=1)


def bernoulli_successes(num_trials: int, probability: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices of the successes; the geometric distances between them are drawn directly, so failures cost nothing."""
    if num_trials == 0 or probability == 0:
        return np.empty(0, dtype=np.int64)
    expected = num_trials * probability
    chunk_size = int(expected + 4 * math.sqrt(expected)) + 1
    chunks = [np.full(1, -1, dtype=np.int64)]
    while chunks[-1][-1] < num_trials:
        # Clip: for a tiny probability, a distance can be near the largest integer, and the sum would overflow.
        distances = np.minimum(rng.geometric(probability, chunk_size), num_trials + 1)
        chunks.append(chunks[-1][-1] + np.cumsum(distances))
    successes = np.concatenate(chunks[1:])
    return successes[: np.searchsorted(successes, num_trials)]


def require(condition: bool, complaint: str) -> None:
    """Raise an error that names the wrong parameter unless the condition holds."""
    if not condition:
        raise InputError(complaint)
