"""Nodes that wait to be looked at, in a ring, for compiled loops that take out nodes of a graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

BLOCK = 256
"""Consecutive nodes, often near each other, that are looked at in turn. Blocks come in random order, so that what the
first looks find tells what can be expected."""
HEAD, NUMBER = range(2)
"""Places in `Waiting.counts`: the place in the ring of the first node that waits, and how many wait."""


class Waiting(NamedTuple):
    """The nodes of a graph that wait."""

    ring: NDArray[np.int32]
    """[N]."""
    is_waiting: NDArray[np.bool_]
    """[N]."""
    counts: NDArray[np.int64]


def all_wait(num_nodes: int) -> Waiting:
    """All nodes of a graph, in blocks."""
    blocks = np.random.default_rng(0).permutation(-(-num_nodes // BLOCK))
    order = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
    ring = order[order < num_nodes].astype(np.int32)
    return Waiting(ring, np.ones(num_nodes, np.bool_), np.array([0, num_nodes]))


@compiled
def wait(waiting: Waiting, node: int) -> None:
    """Look at a node later."""
    if not waiting.is_waiting[node]:
        waiting.is_waiting[node] = True
        waiting.ring[(waiting.counts[HEAD] + waiting.counts[NUMBER]) % len(waiting.ring)] = node
        waiting.counts[NUMBER] += 1


@compiled
def next_node(waiting: Waiting) -> int:
    """The node that has waited longest; it waits no more."""
    node = int(waiting.ring[waiting.counts[HEAD]])
    waiting.counts[HEAD] = (waiting.counts[HEAD] + 1) % len(waiting.ring)
    waiting.counts[NUMBER] -= 1
    waiting.is_waiting[node] = False
    return node
