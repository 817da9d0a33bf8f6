"""Colours of the nodes of a graph, no two neighbours alike: a compiled loop that gives each node the first free one."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diffuco.ops.adjacency import CsrAdjacency
from diffuco.ops.compilation import compiled

Ints = NDArray[np.int64]


def greedy_colors(adjacency: CsrAdjacency) -> Tensor:
    """A colour from 0 for every row, in main memory; nodes of high degree choose first. [N].

    >>> path = CsrAdjacency(*map(torch.tensor, ([0], [3], [0, 1, 3, 4], [1, 0, 2, 1])), None)  # 0 - 1 - 2
    >>> greedy_colors(path).tolist()
    [1, 0, 1]
    """
    csr = adjacency.cpu()
    order = csr.indptr.diff().argsort(descending=True, stable=True)
    return torch.from_numpy(first_free_colors(csr.indptr.numpy(), csr.indices.numpy(), order.numpy()))


@compiled
def first_free_colors(indptr: Ints, indices: Ints, order: Ints) -> Ints:
    """Go through the rows in order."""
    colors = np.full(len(order), -1, np.int64)
    last_seen_at = np.full(len(order) + 1, -1, np.int64)  # the row that last had a neighbour of a colour
    for row in order:
        for e in range(indptr[row], indptr[row + 1]):
            color = colors[indices[e]]
            if color >= 0:
                last_seen_at[color] = row
        color = 0
        while last_seen_at[color] == row:
            color += 1
        colors[row] = color
    return colors
