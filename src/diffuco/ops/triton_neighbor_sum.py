"""Sums of features over neighbours where few columns leave a row too little to do: a program takes several rows.

Rows are ordered by degree, so that those of a program need about as long. Hubs start first. Each has several programs,
which take a few columns each, so that a sum does not wait for the largest hub.

Legend: N rows, C columns.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from diffuco.ops.adjacency import NeighborLists
from diffuco.ops.triton_rows import HUB_DEGREE, neighbor_sum

MOST_COLUMNS = 512
"""Columns up to which this is faster than a program for each row."""
NEIGHBORS_AT_ONCE = 4
HUB_NEIGHBORS_AT_ONCE = 256


class Shape(NamedTuple):
    """How much a program takes."""

    elements: int
    """Of a tile: rows times neighbours times columns."""
    num_warps: int


# The fastest on an H200 of those that were tried for each number of columns.
NARROW, WIDE = Shape(4096, num_warps=4), Shape(8192, num_warps=2)
NARROW_COLUMNS = 128
"""Columns up to which tiles are narrow."""


class OrderedRows(NamedTuple):
    """Neighbour lists and the order in which their rows are summed."""

    indptr: Tensor
    """[N + 1]"""
    indices: Tensor
    """[E], int32"""
    order: Tensor
    """[N] rows by falling degree."""
    num_hubs: int

    @classmethod
    def of(cls, lists: NeighborLists) -> "OrderedRows":
        """The rows of lists that are one graph's or several graphs' joined."""
        (indptr,) = lists.pointers
        degrees, order = indptr.diff().sort(descending=True, stable=True)
        num_hubs = int((degrees > HUB_DEGREE).sum())
        return cls(indptr.contiguous(), lists.neighbors.to(torch.int32).contiguous(), order, num_hubs)


def ordered_neighbor_sum(
    rows: OrderedRows, weights: Tensor | None, values: Tensor, out: Tensor, row_scale: Tensor | None = None
) -> None:
    """Write the sum over each node's neighbours, scaled by row if given. Reference: `csr_neighbor_sum`. [N, ...]."""
    num_rows, num_columns = len(values), values[0].numel()
    columns = triton.next_power_of_2(num_columns)
    shape = NARROW if columns <= NARROW_COLUMNS else WIDE
    tile_rows = max(1, shape.elements // (NEIGHBORS_AT_ONCE * columns))
    hub_columns = min(columns, shape.elements // HUB_NEIGHBORS_AT_ONCE)
    num_hub_programs = rows.num_hubs * triton.cdiv(num_columns, hub_columns)
    num_programs = num_hub_programs + triton.cdiv(num_rows - rows.num_hubs, tile_rows)
    ordered_sum_kernel[(num_programs,)](
        *(values, rows.order, rows.indptr, rows.indices, rows.indices if weights is None else weights),
        *(values if row_scale is None else row_scale, out, num_rows, rows.num_hubs, num_columns),
        has_weights=weights is not None,
        has_scale=row_scale is not None,
        tile_rows=tile_rows,
        tile_neighbors=NEIGHBORS_AT_ONCE,
        tile_columns=columns,
        hub_neighbors=HUB_NEIGHBORS_AT_ONCE,
        hub_columns=hub_columns,
        num_warps=shape.num_warps,
    )


@triton.jit(do_not_specialize=["num_rows", "num_hubs"])
def ordered_sum_kernel(
    values: tl.tensor,
    order: tl.tensor,
    indptr: tl.tensor,
    neighbors: tl.tensor,
    weights: tl.tensor,
    row_scale: tl.tensor,
    result: tl.tensor,
    num_rows: tl.tensor,
    num_hubs: tl.tensor,
    num_columns: tl.tensor,
    has_weights: tl.constexpr,
    has_scale: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_neighbors: tl.constexpr,
    tile_columns: tl.constexpr,
    hub_neighbors: tl.constexpr,
    hub_columns: tl.constexpr,
) -> None:
    """The sums of some columns of a hub, many of whose neighbours are added at once, or of some other rows."""
    program = tl.program_id(0)
    blocks = tl.cdiv(num_columns, hub_columns)
    if program < num_hubs * blocks:
        place = program // blocks + tl.arange(0, 1)
        some = program % blocks * hub_columns + tl.arange(0, hub_columns)
        _write_sums(
            *(values, order, indptr, neighbors, weights, row_scale, result, place, num_hubs, some, num_columns),
            *(has_weights, has_scale, 1, hub_neighbors, hub_columns),
        )
    else:
        places = num_hubs + (program - num_hubs * blocks) * tile_rows + tl.arange(0, tile_rows)
        every = tl.arange(0, tile_columns)
        _write_sums(
            *(values, order, indptr, neighbors, weights, row_scale, result, places, num_rows, every, num_columns),
            *(has_weights, has_scale, tile_rows, tile_neighbors, tile_columns),
        )


@triton.jit
def _write_sums(
    values: tl.tensor,
    order: tl.tensor,
    indptr: tl.tensor,
    neighbors: tl.tensor,
    weights: tl.tensor,
    row_scale: tl.tensor,
    result: tl.tensor,
    places: tl.tensor,
    last_place: tl.tensor,
    columns: tl.tensor,
    num_columns: tl.tensor,
    has_weights: tl.constexpr,
    has_scale: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_neighbors: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    is_row = places < last_place
    rows = tl.load(order + places, mask=is_row, other=0)
    total = neighbor_sum(
        *(values, indptr, neighbors, weights, rows, is_row, columns, num_columns),
        *(tile_rows, tile_neighbors, tile_columns, has_weights, tl.float32, tl.float32),
    )
    if has_scale:
        total *= tl.load(row_scale + rows, mask=is_row, other=0.0)[:, None]
    at = rows[:, None] * num_columns + columns[None, :]
    tl.store(result + at, total, mask=is_row[:, None] & (columns < num_columns)[None, :])
