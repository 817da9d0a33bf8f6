"""The graphs of a batch in the form that the kernels use: where their rows are, and how to sum over neighbours.

Legend: B graphs, N rows, S samples, F hidden features.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.model.gnn import GnnConfig, node_inputs, weight_scale
from diffuco.ops import triton_gnn as kernels
from diffuco.ops.triton_neighbor_sum import MOST_COLUMNS, OrderedRows, ordered_neighbor_sum

LARGEST_SUM = 2048
"""Most neighbours summed in float16 without scaling; in trained networks, no sum over 100 neighbours exceeded 225."""


@dataclass(frozen=True)
class Neighborhood:
    """The graphs of a batch in the form that the kernels use."""

    starts: Tensor
    """[B] first row of each graph."""
    sizes: Tensor
    """[B] nodes of each graph."""
    extents: Tensor
    """[B] rows of each graph, padding included."""
    largest: int
    """Rows of the largest graph, padding included."""
    node_inputs: Tensor
    """[N] node weights as the encoder sees them."""
    sum: Callable[[Tensor, Tensor], None]
    """Write the sum over each node's neighbours. [N, S, F] -> [N, S, F]."""
    row_scale: Tensor
    """[N] factor that the sum still has to be multiplied by: 1 / sqrt(degree), or 1 if `sum` has applied it."""
    sum_gradient: Callable[[Tensor, Tensor], None]
    """The transpose of `sum` without its scale; takes the gradient times `gradient_scale`. [N, S, F] -> [N, S, F]."""
    gradient_scale: Tensor
    """[N] the scale of the whole sum."""

    def tiles(self, num_samples: int) -> kernels.Tiles:
        """The work of the kernels for `num_samples` samples."""
        return kernels.Tiles(self.starts, self.sizes, self.extents, self.largest, num_samples)

    def repeated(self, times: int) -> "Neighborhood":
        """The same graphs, repeated one after the other; sums still take the rows of one repetition."""
        first_rows = torch.arange(times, device=self.starts.device)[:, None] * len(self.row_scale)
        return replace(
            self,
            starts=(first_rows + self.starts).flatten(),
            sizes=self.sizes.repeat(times),
            extents=self.extents.repeat(times),
            node_inputs=self.node_inputs.repeat(times),
            row_scale=self.row_scale.repeat(times),
            gradient_scale=self.gradient_scale.repeat(times),
        )


def neighborhood(batch: Batch, config: GnnConfig, dtype: torch.dtype) -> Neighborhood:
    """Prepare a batch: dense matrices for the tensor cores, or neighbour lists if the batch has them."""
    weighted = config.weighted
    scale = weight_scale(batch) if weighted else torch.ones_like(batch.degrees)
    per_degree = 1 / batch.degrees.clamp(min=1).sqrt()
    seen = node_inputs(batch, config)
    inputs = torch.zeros_like(batch.degrees) if seen is None else seen
    if batch.wide_lists is not None:
        lists = batch.wide_lists if weighted else batch.wide_lists._replace(weights=None)
        whole_scale = per_degree / scale
        ordered = OrderedRows.of(lists) if isinstance(batch, SparseBatch) else None

        def list_sum(values: Tensor, out: Tensor, row_scale: Tensor | None = None) -> None:
            if ordered is not None and values[0].numel() <= MOST_COLUMNS:
                ordered_neighbor_sum(ordered, lists.weights, values, out, row_scale)
            else:
                kernels.neighbor_sum(lists, values, out, row_scale)

        # The sum is scaled before it is rounded, because a hub's sum may be out of float16's range.
        return Neighborhood(
            *(batch.row_starts, batch.sizes, batch.extents, batch.largest, inputs),
            sum=partial(list_sum, row_scale=whole_scale),
            row_scale=torch.ones_like(whole_scale),
            sum_gradient=list_sum,
            gradient_scale=whole_scale,
        )
    assert isinstance(batch, DenseBatch)
    if weighted and batch.weights is not None:
        # The matrix is scaled before it is rounded, because weights may be of any size.
        matrix = (batch.weights / scale.view(batch.num_graphs, -1)[:, :1, None]).to(dtype)
    else:
        # A power of two keeps sums over very many neighbours in float16's range and loses no digit.
        factor = 2.0 ** -max(0, math.ceil(math.log2(max(1, batch.largest) / LARGEST_SUM)))
        matrix, per_degree = batch.matrix(dtype), per_degree / (scale * factor)
        matrix = matrix if factor == 1 else matrix * factor

    def dense_sum(values: Tensor, out: Tensor) -> None:
        columns = values[0].numel()
        torch.bmm(matrix, values.view(*matrix.shape[:2], columns), out=out.view(*matrix.shape[:2], columns))

    return Neighborhood(
        *(batch.row_starts, batch.sizes, batch.extents, batch.largest, inputs),
        sum=dense_sum,
        row_scale=per_degree,
        sum_gradient=dense_sum,
        gradient_scale=per_degree,
    )
