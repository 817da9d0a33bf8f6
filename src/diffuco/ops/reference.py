"""Every tensor operation in plain torch: the specification that faster versions are tested against.

Legend: B graphs, N nodes of all graphs together, E directed edges, C columns (samples, or samples times features).
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def csr_neighbor_sum(values: Tensor, indptr: Tensor, indices: Tensor, weights: Tensor | None) -> Tensor:
    """Sum over each row's neighbours, `out[i] = sum_j weights[i, j] * values[j]`. [N, C] -> [N, C]."""
    if not len(indices):
        return torch.zeros_like(values)
    cast = None if weights is None else weights.to(values.dtype)
    return F.embedding_bag(indices, values, indptr, mode="sum", per_sample_weights=cast, include_last_offset=True)


def dense_neighbor_sum(values: Tensor, adjacency: Tensor) -> Tensor:
    """The same sum as one matrix product per graph. [N, C] with adjacency [B, P, P] -> [N, C]."""
    num_graphs, num_padded, _ = adjacency.shape
    columns = values.flatten(1)
    product = torch.bmm(adjacency, columns.view(num_graphs, num_padded, columns.shape[1]))
    return product.view(values.shape)


def segment_sum(values: Tensor, lengths: Tensor) -> Tensor:
    """Sum of consecutive runs of rows, one run per graph. [N, ...] -> [B, ...]."""
    if not len(values):
        return values.new_zeros(len(lengths), *values.shape[1:])
    if len(lengths) == 1:  # one large graph: a plain sum uses all cores
        return values.sum(0, keepdim=True)
    return torch.segment_reduce(values, "sum", lengths=lengths, axis=0, unsafe=True)


def segment_max(values: Tensor, lengths: Tensor) -> Tensor:
    """Largest value of consecutive runs, at least 0. [N] -> [B]."""
    if not len(values):
        return values.new_zeros(len(lengths))
    return torch.segment_reduce(values, "max", lengths=lengths, initial=0.0, unsafe=True)
