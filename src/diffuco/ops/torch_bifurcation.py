"""Discrete simulated bifurcation in plain torch: all nodes of all graphs and agents move at once (Goto et al. 2021).

This is the reference for `numba_bifurcation` and `triton_bifurcation`, which take the same steps. It also serves dense
batches on a GPU. Each node is an oscillator with a position q and a momentum p. The sign of its position is its state.
A step is

    p <- p - (1 - pump) q - strength * field(states),    q <- q + p,    and |q| > 1: q <- sign(q), p <- 0,

where field_i is the energy with x_i = 1 less that with x_i = 0. While the pump rises to 1, every node leaves 0 for one
of the walls at -1 and 1.

Legend: B graphs, P padded nodes per graph, N rows of all graphs, S agents per graph, K steps.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from diffuco.ops import reference
from diffuco.ops.adjacency import CsrAdjacency, DenseAdjacency
from diffuco.ops.capture import repeat


def bifurcate_quadratic(
    positions: Tensor,
    momenta: Tensor,
    adjacency: CsrAdjacency | DenseAdjacency,
    linear: Tensor,
    edge: float,
    pair: float,
    strengths: Tensor,
    pumps: Tensor,
) -> tuple[Tensor, Tensor]:
    """Positions and momenta after a step for each of the `pumps` [K]. [N, S], [N, S] -> [N, S], [N, S].

    H(X) = sum_i linear_i x_i + edge * sum_(i,j) w_ij x_i x_j + pair * sum_(i<j) x_i x_j, as in `torch_anneal`.
    `strengths` [B, S] weigh its field. Padding gets 0. Everything is float32.
    """
    is_node = _is_node(adjacency)
    q, p, linear = (values.float().where(is_node, 0.0) for values in (positions, momenta, linear[:, None]))
    of_rows = _spread(strengths.float(), adjacency) * is_node  # [N, S]
    neighbor_sum = _neighbor_sum(adjacency)
    pumps = pumps.float()
    step = torch.zeros(1, dtype=torch.int64, device=q.device)

    def take_step() -> None:
        x = (q > 0).float()
        field = linear + edge * neighbor_sum(x)
        if pair:
            field = field + pair * (_spread(_graph_sum(x, adjacency), adjacency) - x)
        p.sub_((1 - pumps.gather(0, step)) * q).sub_(of_rows * field)
        q.add_(p)
        p.masked_fill_(q.abs() > 1, 0.0)
        q.clamp_(-1, 1)
        step.add_(1)

    repeat(take_step, len(pumps), q.device)
    return q, p


def _neighbor_sum(adjacency: CsrAdjacency | DenseAdjacency) -> Callable[[Tensor], Tensor]:
    """The weighted sum over neighbours. [N, S] -> [N, S]."""
    if isinstance(adjacency, CsrAdjacency):
        _, _, indptr, indices, weights = adjacency
        return lambda x: reference.csr_neighbor_sum(x, indptr, indices, weights)
    matrix = adjacency.matrix.float()
    return lambda x: reference.dense_neighbor_sum(x, matrix)


def _graph_sum(x: Tensor, adjacency: CsrAdjacency | DenseAdjacency) -> Tensor:
    """[N, S] -> [B, S]."""
    if isinstance(adjacency, CsrAdjacency):
        return reference.segment_sum(x, adjacency.sizes)
    return x.view(len(adjacency.sizes), -1, x.shape[1]).sum(1)


def _spread(values: Tensor, adjacency: CsrAdjacency | DenseAdjacency) -> Tensor:
    """[B, S] -> [N, S]."""
    if isinstance(adjacency, CsrAdjacency):
        return values.repeat_interleave(adjacency.sizes, dim=0, output_size=len(adjacency.indptr) - 1)
    return values.repeat_interleave(adjacency.matrix.shape[1], dim=0)


def _is_node(adjacency: CsrAdjacency | DenseAdjacency) -> Tensor:
    """Which rows hold nodes: all but padding. [N, 1]."""
    if isinstance(adjacency, CsrAdjacency):
        return adjacency.indptr[1:, None] >= 0
    return adjacency.is_node.view(-1, 1)
