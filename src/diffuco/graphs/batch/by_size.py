"""Which graphs are solved together: those of similar size, as many as suit a device."""

from collections.abc import Iterator, Sequence

import torch

from diffuco.graphs.graph import Graph

ROWS_PER_BATCH = {"cpu": 2**13, "cuda": 2**20}
"""Nodes times samples of the graphs solved together: what fits a CPU's cache, what keeps a GPU busy."""


def rows_per_batch(device: torch.device) -> int:
    """Nodes times samples that are best solved together on a device."""
    return ROWS_PER_BATCH.get(device.type, ROWS_PER_BATCH["cuda"])


def batches_by_size(graphs: Sequence[Graph], samples: int, max_rows: int) -> Iterator[list[int]]:
    """Group positions of graphs of similar size so that a batch has at most `max_rows` rows, or one graph."""
    order = sorted(range(len(graphs)), key=lambda position: graphs[position].num_nodes)
    group: list[int] = []
    for position in order:
        # Sorted, so this graph is the largest yet and decides the padding of the whole group.
        if group and (len(group) + 1) * graphs[position].num_nodes * samples > max_rows:
            yield group
            group = []
        group.append(position)
    if group:
        yield group
