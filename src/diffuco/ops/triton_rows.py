"""What Triton kernels over compressed rows share: which rows a launch takes, and the sum over their neighbours' states.

A program takes a tile of rows, neighbours and columns. Its loop is as long as the longest of its rows, so rows are
ordered by degree, and those of high degree get programs of their own.

Legend: N rows, E directed edges, S columns (chains or agents).
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from diffuco.ops.adjacency import CsrAdjacency

HUB_DEGREE = 128
"""A row with more neighbours has a program of its own."""
TILE = 1024
"""Elements of a tile: rows times neighbours times columns."""
NEIGHBORS_AT_ONCE = 8
MAX_COLUMNS = 32


class Launch(NamedTuple):
    """Consecutive rows that are treated by programs of one shape."""

    first_row: int
    last_row: int
    rows_per_program: int
    neighbors_at_once: int

    @property
    def num_programs(self) -> int:
        """Programs for each block of columns."""
        return -(-(self.last_row - self.first_row) // self.rows_per_program)


class KernelRows(NamedTuple):
    """Compressed rows as kernels read them."""

    indptr: Tensor
    """[N + 1], int64"""
    indices: Tensor
    """[E], int32"""
    weights: Tensor | None
    """[E]"""

    @classmethod
    def of(cls, adjacency: CsrAdjacency) -> "KernelRows":
        """The rows of an adjacency."""
        weights = None if adjacency.weights is None else adjacency.weights.contiguous()
        return cls(adjacency.indptr.contiguous(), adjacency.indices.to(torch.int32).contiguous(), weights)

    @property
    def arguments(self) -> tuple[Tensor, Tensor, Tensor]:
        """What a kernel takes; without weights, something that is not read."""
        return self.indptr, self.indices, self.indices if self.weights is None else self.weights


def columns_per_program(num_columns: int) -> int:
    """Columns of a tile."""
    return min(MAX_COLUMNS, 1 << (num_columns - 1).bit_length())


def launches_for(degrees: Tensor, spans: list[tuple[int, int]], num_columns: int) -> list[Launch]:
    """Launches for spans of rows that must not be mixed; in each span, degrees [N] fall."""
    columns, launches = columns_per_program(num_columns), []
    in_memory = degrees.cpu()
    for first, last in spans:
        num_hubs = int((in_memory[first:last] > HUB_DEGREE).sum())
        shapes = ((first, first + num_hubs, 1, TILE // columns), (first + num_hubs, last, *_small_tile(columns)))
        launches += [Launch(*shape) for shape in shapes if shape[1] > shape[0]]
    return launches


def _small_tile(columns: int) -> tuple[int, int]:
    return TILE // (columns * NEIGHBORS_AT_ONCE), NEIGHBORS_AT_ONCE


@triton.jit
def neighbor_sum(
    x: tl.tensor,
    indptr: tl.tensor,
    indices: tl.tensor,
    weights: tl.tensor,
    rows: tl.tensor,
    is_row: tl.tensor,
    columns: tl.tensor,
    num_columns: tl.tensor,
    tile_rows: tl.constexpr,
    tile_neighbors: tl.constexpr,
    tile_columns: tl.constexpr,
    has_weights: tl.constexpr,
    summed_as: tl.constexpr,
    dtype: tl.constexpr,
) -> tl.tensor:
    """The weighted sum of x [N, S] over the neighbours of some rows; without weights, a tile is summed as given."""
    begin = tl.load(indptr + rows, mask=is_row, other=0)
    end = tl.load(indptr + rows + 1, mask=is_row, other=0)
    slots = tl.arange(0, tile_neighbors)
    total = tl.zeros([tile_rows, tile_columns], dtype)
    for first in range(0, tl.max(end - begin), tile_neighbors):
        at = begin[:, None] + first + slots[None, :]
        there = at < end[:, None]
        neighbors = tl.load(indices + at, mask=there, other=0).to(tl.int64)
        mask = there[:, :, None] & (columns < num_columns)[None, None, :]
        states = tl.load(x + (neighbors * num_columns)[:, :, None] + columns[None, None, :], mask=mask, other=0)
        if has_weights:
            weight = tl.load(weights + at, mask=there, other=0.0).to(dtype)
            total += tl.sum(weight[:, :, None] * states.to(dtype), 1)
        else:
            total += tl.sum(states.to(summed_as), 1).to(dtype)
    return total
