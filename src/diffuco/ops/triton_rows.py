"""What Triton kernels over compressed rows share: the rows of a launch, random bits, the sum over neighbours.

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
from diffuco.ops.torch_anneal import GOLDEN
from diffuco.ops.triton_anneal import mix

_STRIDE: tl.constexpr = tl.constexpr(GOLDEN)

HUB_DEGREE = 128
"""A row with more neighbours has a program of its own."""
TILE = 1024
"""Elements of a tile: rows times neighbours times columns."""
HUB_TILE = 4096
"""The same for a hub, whose many neighbours are asked a tile at a time."""
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
        shapes = ((first, first + num_hubs, 1, HUB_TILE // columns), (first + num_hubs, last, *_small_tile(columns)))
        launches += [Launch(*shape) for shape in shapes if shape[1] > shape[0]]
    return launches


def _small_tile(columns: int) -> tuple[int, int]:
    return TILE // (columns * NEIGHBORS_AT_ONCE), NEIGHBORS_AT_ONCE


@triton.jit
def tile(
    first_row: tl.tensor,
    last_row: tl.tensor,
    num_chains: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Rows and columns of a program, which of them there are, their places in [n, S], and which of these there are."""
    rows = (first_row + tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)).to(tl.int64)
    columns = tl.program_id(1) * tile_columns + tl.arange(0, tile_columns)
    is_row, is_chain = rows < last_row, columns < num_chains
    at = rows[:, None] * num_chains + columns[None, :]
    return rows, columns, is_row, is_chain, at, is_row[:, None] & is_chain[None, :]


@triton.jit
def random_bits(
    keys: tl.tensor, number: tl.tensor, rows: tl.tensor, columns: tl.tensor, is_chain: tl.tensor
) -> tl.tensor:
    """The 32 bits of each row and chain in a sweep."""
    counters = tl.load(keys + columns, mask=is_chain, other=0).to(tl.uint32) + number.to(tl.uint32) * _STRIDE
    return mix(mix(counters)[None, :] + rows.to(tl.uint32)[:, None] * _STRIDE)


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
