"""The network with little memory: between two sums over neighbours, a few rows at a time pass through a whole layer.

It computes the same as `Gnn`, up to rounding, without gradients. All it asks of a batch are sums over neighbours and
means over graphs, so it also runs where several processes have a part of the rows each.

Legend: B graphs, N rows, S samples, F hidden features.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.model.gnn import Gnn, GraphNorm, MessageLayer, weight_scale

ROWS_AT_ONCE = 2**16
"""Nodes times samples that pass through a layer together."""


class RowwiseGnn:
    """A denoiser with the parameters of a `Gnn`; at its peak, it holds four tensors of features."""

    def __init__(self, model: Gnn) -> None:
        self.model, self.num_random_features = model, model.num_random_features

    @torch.inference_mode()
    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits [N, S] of states [N, S] at steps [S], given random features [N, S, R]."""
        model, config = self.model, self.model.config
        divisor = batch.degrees.clamp(min=1).sqrt() * (weight_scale(batch) if config.weighted else 1.0)
        graph = batch.spread(torch.arange(batch.num_graphs, device=x.device))  # [N]
        tiles = list(row_tiles(*x.shape))
        h = model.encode(batch, x, step, features)
        for layer in model.layers:
            assert isinstance(layer, MessageLayer)
            summed = batch.neighbor_sum(layer.message(h), weighted=config.weighted).div_(divisor[:, None, None])
            scale = centre(layer.message_norm, batch, summed, graph, tiles)
            for rows in tiles:
                aggregated = summed[rows] * scale[graph[rows]] + layer.message_norm.shift
                h[rows] = layer.update(h[rows], aggregated)
        return torch.cat([model.head(h[rows]).squeeze(-1) for rows in tiles]) if tiles else torch.zeros_like(x)


def centre(norm: GraphNorm, batch: Batch, summed: Tensor, graph: Tensor, tiles: list[slice]) -> Tensor:
    """Remove the share of the mean in place, as GraphNorm does; its scale of each graph. [N, S, F] -> [B, S, F]."""
    mean = norm.mean_scale * batch.graph_mean(summed)
    for rows in tiles:
        summed[rows] -= mean[graph[rows]]
    return norm.scale * (batch.graph_mean(summed.square()) + norm.epsilon).rsqrt()


def row_tiles(num_rows: int, num_samples: int) -> Iterator[slice]:
    """Ranges of nodes that cover all rows."""
    size = max(1, ROWS_AT_ONCE // max(1, num_samples))
    return (slice(first, min(first + size, num_rows)) for first in range(0, num_rows, size))
