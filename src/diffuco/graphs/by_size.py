"""Grouping of graphs that are solved together, and their results in the order in which the graphs were given."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from diffuco.graphs.graph import Graph

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")

ROWS_PER_BATCH = {"cpu": 2**13, "cuda": 2**20}
"""Nodes times samples solved together: few enough for a CPU's cache, or enough to keep a GPU busy."""


def rows_per_batch(device: "torch.device") -> int:
    """Best number of nodes times samples to solve together on a device."""
    return ROWS_PER_BATCH.get(device.type, ROWS_PER_BATCH["cuda"])


def batches_by_size(graphs: Sequence[Graph], samples: int, max_rows: int) -> Iterator[list[int]]:
    """Yield groups of positions of similarly sized graphs; a group has at most `max_rows` rows, or one graph."""
    order = sorted(range(len(graphs)), key=lambda position: graphs[position].num_nodes)
    group: list[int] = []
    for position in order:
        # Graphs are sorted, so this one is the largest yet and decides the padding of the whole group.
        if group and (len(group) + 1) * graphs[position].num_nodes * samples > max_rows:
            yield group
            group = []
        group.append(position)
    if group:
        yield group


def in_order(parts: Iterable[tuple[Sequence[int], Iterable[Result]]]) -> list[Result]:
    """Merge the results of groups, each given with the positions of its members, into one list by position.

    >>> in_order([([2, 0], "ca"), ([1], "b")])
    ['a', 'b', 'c']
    """
    by_position = {
        position: result for positions, results in parts for position, result in zip(positions, results, strict=True)
    }
    return [by_position[position] for position in range(len(by_position))]
