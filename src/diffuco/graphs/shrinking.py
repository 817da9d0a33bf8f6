"""Taking nodes out of a graph with compiled loops, as long as there is time and it takes out enough of them."""

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from diffuco.foundation.progress import report
from diffuco.graphs.graph import Graph

if TYPE_CHECKING:
    from diffuco.ops.numba_waiting import Waiting

LOOKS_AT_ONCE, ENTRIES_AT_ONCE = 20_000, 1_000_000
"""Nodes that are looked at before the clock is asked, and how many neighbours they may have in all, on average."""
MOST_EDGES = 2**30 - 1
"""Places in the adjacency are numbers of 32 bits."""
FIRST_SHARE = 0.25
"""Of the nodes: after so many looks, the yield is known."""


def is_shrunk(
    graph: Graph,
    waiting: "Waiting",
    look: Callable[[int], None],
    num_taken: Callable[[], float],
    end_s: float,
    least_yield: float | None,
) -> bool:
    """Look at waiting nodes until none is left or the time is over; False, early, if that takes out too few.

    `least_yield` is the least share of the looks that must take out a node; None: none has to.
    """
    from diffuco.ops.numba_waiting import NUMBER

    size, looks = graph.num_nodes, 0
    looks_at_once = min(LOOKS_AT_ONCE, 1 + ENTRIES_AT_ONCE * size // (1 + 2 * graph.num_edges))
    while waiting.counts[NUMBER] and perf_counter() < end_s:
        look(looks_at_once)
        looks += looks_at_once
        taken = num_taken()
        report("taking out nodes", int(taken), size)
        is_known = FIRST_SHARE * size <= looks < size
        if least_yield is not None and taken <= (least_yield * looks if is_known else 0):
            return False
    return True
