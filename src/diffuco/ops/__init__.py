"""Tensor operations under one name each; this is the only place that decides which implementation serves a device."""

from typing import Any

import torch
from torch import Tensor

from diffuco.ops import reference


def neighbor_sum(values: Tensor, indptr: Tensor, indices: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sum over each node's neighbours in a symmetric CSR adjacency. Reference: `reference.csr_neighbor_sum`.

    >>> path = torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1])  # 0 - 1 - 2
    >>> neighbor_sum(torch.tensor([[1.0], [2.0], [4.0]]), *path).ravel().tolist()
    [2.0, 5.0, 2.0]
    """
    flat = values.reshape(len(values), -1)
    summed: Tensor = _SymmetricNeighborSum.apply(flat, indptr, indices, weights)  # type: ignore[no-untyped-call]
    return summed.view(values.shape)


def dense_neighbor_sum(values: Tensor, adjacency: Tensor) -> Tensor:
    """Sum over each node's neighbours in padded dense adjacencies. Reference: `reference.dense_neighbor_sum`."""
    return reference.dense_neighbor_sum(values, adjacency)


def segment_sum(values: Tensor, lengths: Tensor) -> Tensor:
    """Sum of the rows of each graph. Reference: `reference.segment_sum`."""
    return reference.segment_sum(values, lengths)


class _SymmetricNeighborSum(torch.autograd.Function):
    """A symmetric matrix is its own transpose, so the backward pass is the forward pass on the gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, indptr: Tensor, indices: Tensor, weights: Tensor | None) -> Tensor:
        ctx.adjacency = (indptr, indices, weights)
        return reference.csr_neighbor_sum(values, indptr, indices, weights)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return reference.csr_neighbor_sum(gradient.contiguous(), *ctx.adjacency), None, None, None
