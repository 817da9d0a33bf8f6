"""Compiled loops of the random graph generators.

Kept apart from `generate` because importing numba takes a third of a second. The kernels run without the GIL, so that
threads generate in parallel. With `NUMBA_DISABLE_JIT=1` they are plain Python and give the same graphs bit for bit.
"""

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled


@compiled
def rb_edges(
    num_cliques: int, clique_size: int, num_draws: int, pairs_per_draw: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Sorted edges of one RB graph whose clique i holds the nodes `i * clique_size ... (i + 1) * clique_size - 1`."""
    draws = count_draws(num_cliques, num_draws, rng)
    block_of = np.full((num_cliques, num_cliques), -1)
    blocks = np.zeros((min(num_draws, num_cliques * (num_cliques - 1) // 2), clique_size**2), dtype=np.bool_)
    order = np.arange(clique_size**2)
    num_blocks = 0
    for i in range(num_cliques):
        for j in range(i + 1, num_cliques):
            if draws[i, j] + draws[j, i] > 0:
                block_of[i, j] = num_blocks
                # Marking both orientations in one block merges an edge that was drawn as (u, v) and as (v, u).
                mark_subset(blocks[num_blocks], draws[i, j] * pairs_per_draw, order, rng)
                mark_subset(blocks[num_blocks], draws[j, i] * pairs_per_draw, order, rng)
                num_blocks += 1
    num_edges = num_cliques * clique_size * (clique_size - 1) // 2 + int(blocks.sum())
    return list_edges(block_of, blocks, clique_size, num_edges)


@compiled
def count_draws(num_cliques: int, num_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How often each ordered pair of different cliques is drawn, [num_cliques, num_cliques]."""
    draws = np.zeros((num_cliques, num_cliques), dtype=np.int64)
    for _ in range(num_draws):
        i = int(rng.random() * num_cliques)
        j = int(rng.random() * (num_cliques - 1))
        draws[i, j + (j >= i)] += 1
    return draws


@compiled
def mark_subset(cells: NDArray[np.bool_], subset_size: int, order: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Set a uniformly random subset of `subset_size` cells, or all cells if there are fewer.

    The RB model draws several times from the same cells without replacement. Together, these draws give a uniform
    subset of the summed size, so one call makes all of them. `order` is any permutation of the cells; only the part of
    it that is needed for the smaller of the subset and its complement is shuffled.
    """
    num_cells = len(cells)
    num_marked = min(subset_size, num_cells)
    num_picked = min(num_marked, num_cells - num_marked)
    for i in range(num_picked):
        j = i + int(rng.random() * (num_cells - i))
        order[i], order[j] = order[j], order[i]
    first, last = (0, num_marked) if num_picked == num_marked else (num_picked, num_cells)
    for i in range(first, last):
        cells[order[i]] = True


@compiled
def list_edges(
    block_of: NDArray[np.int64], blocks: NDArray[np.bool_], clique_size: int, num_edges: int
) -> NDArray[np.int64]:
    """Edges inside the cliques and edges marked in the blocks between them, in lexicographic order, [num_edges, 2]."""
    edges = np.empty((num_edges, 2), dtype=np.int64)
    num_cliques = len(block_of)
    e = 0
    for u in range(num_cliques * clique_size):
        i = u // clique_size
        row = (u - i * clique_size) * clique_size
        for v in range(u + 1, (i + 1) * clique_size):
            edges[e, 0], edges[e, 1] = u, v
            e += 1
        for j in range(i + 1, num_cliques):
            block = block_of[i, j]
            if block < 0:
                continue
            for column in range(clique_size):
                if blocks[block, row + column]:
                    edges[e, 0], edges[e, 1] = u, j * clique_size + column
                    e += 1
    return edges


@compiled
def ba_edges(num_nodes: int, attachments: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Sorted edges of one BA graph: a star of `attachments + 1` nodes, then one node at a time."""
    num_edges = attachments * (num_nodes - attachments)
    ends = np.empty((num_edges, 2), dtype=np.int64)
    for e in range(attachments):
        ends[e, 0], ends[e, 1] = 0, e + 1
    # A node appears in `ends` once per edge, so a uniformly drawn entry is a node drawn in proportion to its degree.
    entries = ends.reshape(-1)
    newest_neighbor = np.zeros(num_nodes, dtype=np.int64)
    for source in range(attachments + 1, num_nodes):
        num_older = attachments * (source - attachments)
        for e in range(num_older, num_older + attachments):
            target = entries[int(rng.random() * 2 * num_older)]
            while newest_neighbor[target] == source:
                target = entries[int(rng.random() * 2 * num_older)]
            newest_neighbor[target] = source
            ends[e, 0], ends[e, 1] = target, source
    return sort_by_first(ends, num_nodes)


@compiled
def sort_by_first(ends: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Stable counting sort by the first column: lexicographic order, because the second column is already sorted."""
    position = np.zeros(num_nodes + 1, dtype=np.int64)
    for e in range(len(ends)):
        position[ends[e, 0] + 1] += 1
    position = np.cumsum(position)
    edges = np.empty_like(ends)
    for e in range(len(ends)):
        edges[position[ends[e, 0]]] = ends[e]
        position[ends[e, 0]] += 1
    return edges
