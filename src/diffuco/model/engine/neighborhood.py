"""What the graphs of a batch are to the kernels: where their rows are, and how neighbours are summed.

Legend: B graphs, N rows, S samples, F hidden features.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch, DenseBatch
from diffuco.model.gnn import GnnConfig, node_inputs, weight_scale
from diffuco.ops import triton_gnn as kernels

LARGEST_SUM = 2048
"""Neighbours whose messages are summed in float16 as they are: 225 was the largest sum over 100 in trained networks."""


@dataclass(frozen=True)
class Neighborhood:
    """What a batch's graphs are to the kernels."""

    starts: Tensor
    """[B] first row of each graph."""
    sizes: Tensor
    """[B] nodes of each graph."""
    extents: Tensor
    """[B] rows of each graph, padding included."""
    largest: int
    """Most rows of a graph."""
    node_inputs: Tensor
    """[N] node weights as the encoder sees them."""
    sum: Callable[[Tensor, Tensor], None]
    """Write the sum over each node's neighbours. [N, S, F] -> [N, S, F]."""
    row_scale: Tensor
    """[N] what such a sum still has to be multiplied with: 1 / sqrt(degree), or 1 where that was done."""
    sum_gradient: Callable[[Tensor, Tensor], None]
    """The transpose of `sum` but for the scale, for the gradient times `gradient_scale`. [N, S, F] -> [N, S, F]."""
    gradient_scale: Tensor
    """[N] the scale of the whole sum."""

    def tiles(self, num_samples: int) -> kernels.Tiles:
        """The work of the kernels for so many samples."""
        return kernels.Tiles(self.starts, self.sizes, self.extents, self.largest, num_samples)

    def repeated(self, times: int) -> "Neighborhood":
        """The same graphs several times, one after the other; sums still take one time's rows."""
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
    """Prepare a batch: dense matrices for the tensor cores, or neighbour lists where the batch has them."""
    weighted = config.weighted
    scale = weight_scale(batch) if weighted else torch.ones_like(batch.degrees)
    per_degree = 1 / batch.degrees.clamp(min=1).sqrt()
    seen = node_inputs(batch, config, scale if weighted else None)
    inputs = torch.zeros_like(batch.degrees) if seen is None else seen
    if batch.wide_lists is not None:
        lists = batch.wide_lists if weighted else batch.wide_lists._replace(weights=None)
        whole_scale = per_degree / scale
        # Scaled before it is rounded: a hub's sum may be out of float16's range.
        return Neighborhood(
            *(batch.row_starts, batch.sizes, batch.extents, batch.largest, inputs),
            sum=lambda values, out: kernels.neighbor_sum(lists, values, out, whole_scale),
            row_scale=torch.ones_like(whole_scale),
            sum_gradient=lambda values, out: kernels.neighbor_sum(lists, values, out),
            gradient_scale=whole_scale,
        )
    assert isinstance(batch, DenseBatch)
    if weighted and batch.weights is not None:
        # Scaled before it is rounded: weights may be of any size.
        matrix = (batch.weights / scale.view(batch.num_graphs, -1)[:, :1, None]).to(dtype)
    else:
        # A power of two keeps sums over very many neighbours in float16's range, and every digit.
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
