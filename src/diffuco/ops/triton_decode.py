"""Conditional Expectation on a GPU by Triton kernels: one program per graph and sample walks all tokens.

Sec. 4.1. The reference is `torch_decode`, which has the same functions and takes what these kernels do not: tokens of
more than `MAX_TOKEN_SIZE` nodes, and graphs padded to more than `MAX_PADDED`. Kept apart from the callers because not
every platform has Triton.

Not timed on a GPU yet; this is what was reasoned. A token needs the rows of its nodes and one decision, so the bytes
are those of the rows, one contiguous read each, mostly from L2 as the samples of a graph run side by side. The steps
of one program depend on each other, so a program is as few warps as hold a graph's values in registers, up to 512
nodes per warp: sums then are shuffles without barriers, and latency is hidden by the other programs of the processor.
Energies of 2^k configurations stay in registers as well; couplings inside a token are single loads of rows just read.
The cover kernel reads every row twice, first for the products of all nodes, and sums over the nodes once per
configuration, 2^k - 1 times per token, which for k = 8 is most of its work. Everything is float64 or integer, so that
ties are ties; scalars come in a tensor, as Triton would make float32 of them. Compiled for sm_90 by Triton 3.9, at 512
nodes and at 2,048 in bfloat16, neither kernel spills registers for k = 1 or 8 (88 to 232 per thread), and programs of
one warp have no barrier.

Legend: B graphs, P padded nodes per graph, N = B * P rows, S samples per graph, k nodes per token; a token has 2^k
configurations s, bit j of s being the state of its j-th node.
"""

import logging
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from diffuco.ops import torch_decode
from diffuco.ops.adjacency import DenseAdjacency
from diffuco.ops.torch_decode import SMALLEST_FREE, TIE, fixed_point_scale

MAX_TOKEN_SIZE = 8
"""Largest token of the kernels: 2^k energies are held in registers, and the code grows with k^2."""
MAX_PADDED = 8192
"""Most padded nodes per graph: 16 warps hold them in registers."""
NODES_PER_WARP = 512

_log = logging.getLogger(__name__)


def decode_quadratic(
    probs: Tensor, adjacency: DenseAdjacency, linear: Tensor, edge: float, pair: float, token_size: int
) -> Tensor:
    """States that minimise a quadratic energy token by token. Reference: `torch_decode`. [N, S] -> [N, S], float64."""
    if not _fits(adjacency, token_size):
        return torch_decode.decode_quadratic(probs, adjacency, linear, edge, pair, token_size)
    values, order = _values_and_order(probs, adjacency)
    # As in the reference: summed from the back, so that the last sum is exactly 0.
    undecided = F.pad(values.gather(2, order).flip(2).cumsum(2).flip(2), (0, 1))  # [B, S, P + 1]
    coefficients = linear.double().contiguous()
    return _launch(
        quadratic_kernel, adjacency, (values, order.int(), undecided, coefficients), (edge, pair), token_size
    )


def decode_cover(probs: Tensor, adjacency: DenseAdjacency, penalty: float, token_size: int) -> Tensor:
    """States that minimise a cover energy token by token. Reference: `torch_decode`. [N, S] -> [N, S], float64."""
    if not _fits(adjacency, token_size):
        return torch_decode.decode_cover(probs, adjacency, penalty, token_size)
    values, order = _values_and_order(probs, adjacency)
    scale = fixed_point_scale(adjacency.matrix.shape[1] + 1)
    log_free = (scale * (1 - values).clamp(min=SMALLEST_FREE).log()).round().long()
    return _launch(cover_kernel, adjacency, (order.int(), log_free), (penalty, 1 / scale), token_size)


def _fits(adjacency: DenseAdjacency, token_size: int) -> bool:
    num_padded = adjacency.matrix.shape[1]
    fits = token_size <= MAX_TOKEN_SIZE and num_padded <= MAX_PADDED
    if not fits:
        _log.debug("tokens of %d nodes, graphs padded to %d: decoded by torch_decode", token_size, num_padded)
    return fits


def _values_and_order(probs: Tensor, adjacency: DenseAdjacency) -> tuple[Tensor, Tensor]:
    """Probabilities with 0 in the padding, and nodes by falling probability, padding last. [N, S] -> 2 x [B, S, P]."""
    num_graphs, num_padded, _ = adjacency.matrix.shape
    values = probs.view(num_graphs, num_padded, probs.shape[1]).transpose(1, 2)
    mask = torch.arange(num_padded, device=probs.device) < adjacency.sizes[:, None, None]
    # Sorted in the type they came in: the same order as in float64, with fewer bits to sort by.
    order = torch.where(mask, values, -1.0).argsort(dim=2, descending=True, stable=True)
    return torch.where(mask, values, 0.0).double(), order


def _launch(
    kernel: Any,
    adjacency: DenseAdjacency,
    inputs: tuple[Tensor, ...],
    scalars: tuple[float, float],
    token_size: int,
) -> Tensor:
    """Run one program per graph and sample on `inputs`, the first of shape [B, S, P]. -> [N, S], float64."""
    num_graphs, num_samples, num_padded = inputs[0].shape
    states = torch.empty(inputs[0].shape, dtype=torch.float64, device=inputs[0].device)
    # Filled on the device: copying from the host would wait.
    constants = torch.cat([states.new_full((1,), scalar) for scalar in (*scalars, TIE)])
    block = triton.next_power_of_2(num_padded)
    if states.numel():
        with torch.cuda.device_of(states):  # type: ignore[no-untyped-call]
            kernel[(num_graphs * num_samples,)](
                states,
                *(tensor.contiguous() for tensor in (*inputs, adjacency.matrix, adjacency.sizes)),
                *(constants, num_samples, num_padded),
                token_size=token_size,
                block=block,
                num_warps=max(1, block // NODES_PER_WARP),
                enable_fp_fusion=True,
            )
    return states.transpose(1, 2).reshape(num_graphs * num_padded, num_samples)


@triton.jit
def quadratic_kernel(
    states: tl.tensor,
    probs: tl.tensor,
    order: tl.tensor,
    undecided: tl.tensor,
    linear: tl.tensor,
    matrix: tl.tensor,
    sizes: tl.tensor,
    constants: tl.tensor,
    num_samples: tl.tensor,
    num_padded: tl.tensor,
    token_size: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Decide the nodes of one graph and sample by the fields that the values outside each token exert."""
    program = tl.program_id(0).to(tl.int64)
    graph = program // num_samples
    size = tl.load(sizes + graph).to(tl.int32)
    edge, pair, tie = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    matrix += graph * num_padded * num_padded
    linear += graph * num_padded
    order += program * num_padded
    undecided += program * (num_padded + 1)
    nodes = tl.arange(0, block)
    configurations = tl.arange(0, 2**token_size)
    values = tl.load(probs + program * num_padded + nodes, mask=nodes < size, other=0.0)
    num_chosen = tl.full((), 0.0, tl.float64)
    for first in range(0, size, token_size):
        for a in tl.static_range(token_size):
            values = tl.where(nodes == _node(order, first + a, size), 0.0, values)
        outside = pair * (num_chosen + tl.load(undecided + tl.minimum(first + token_size, size)))
        # Padding at the end of the last token adds no energy: both its states tie, and the lower one is 0.
        energies = tl.full((2**token_size,), 0.0, tl.float64)
        for a in tl.static_range(token_size):
            node = _node(order, first + a, size)
            row = matrix + node * num_padded
            weights = _row(matrix, node, nodes, size, num_padded).to(tl.float64)
            field = tl.load(linear + node, mask=node >= 0, other=0.0) + edge * tl.sum(weights * values) + outside
            with_node = ((configurations >> a) & 1) != 0
            energies += tl.where(with_node, tl.where(node >= 0, field, 0.0), 0.0)
            for b in tl.static_range(a):
                weight = tl.load(row + _node(order, first + b, size), mask=node >= 0, other=0.0)
                coupling = edge * weight.to(tl.float64) + pair
                with_both = with_node & (((configurations >> b) & 1) != 0)
                energies += tl.where(with_both, tl.where(node >= 0, coupling, 0.0), 0.0)
        chosen = _lowest(energies, configurations, tie)
        for a in tl.static_range(token_size):
            state = ((chosen >> a) & 1).to(tl.float64)
            values = tl.where(nodes == _node(order, first + a, size), state, values)
            num_chosen += state
    tl.store(states + program * num_padded + nodes, values, mask=nodes < num_padded)


@triton.jit
def cover_kernel(
    states: tl.tensor,
    order: tl.tensor,
    log_free: tl.tensor,
    matrix: tl.tensor,
    sizes: tl.tensor,
    constants: tl.tensor,
    num_samples: tl.tensor,
    num_padded: tl.tensor,
    token_size: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Decide the nodes of one graph and sample by what each configuration of a token leaves uncovered.

    `log_uncovered` of a node is the sum of log(1 - v), in fixed point, over the undecided nodes that could cover it.
    """
    program = tl.program_id(0).to(tl.int64)
    graph = program // num_samples
    size = tl.load(sizes + graph).to(tl.int32)
    penalty, unit, tie = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    matrix += graph * num_padded * num_padded
    order += program * num_padded
    log_free += program * num_padded
    nodes = tl.arange(0, block)
    configurations = tl.arange(0, 2**token_size)
    num_members = tl.full((2**token_size,), 0, tl.int32)
    for a in tl.static_range(token_size):
        num_members += (configurations >> a) & 1
    log_uncovered = tl.full((block,), 0, tl.int64)
    for position in range(0, size):
        node = _node(order, position, size)
        closed = _closed_row(matrix, node, nodes, size, num_padded)
        log_uncovered += tl.where(closed, tl.load(log_free + node), 0)
    covered = nodes < 0
    values = tl.full((block,), 0.0, tl.float64)
    for first in range(0, size, token_size):
        masks = tl.full((block,), 0, tl.int32)  # which members of the token cover each node
        for a in tl.static_range(token_size):
            node = _node(order, first + a, size)
            closed = _closed_row(matrix, node, nodes, size, num_padded)
            masks += tl.where(closed, 2**a, 0)
            log_uncovered -= tl.where(closed, tl.load(log_free + node, mask=node >= 0, other=0), 0)
        uncovered = tl.where((masks == 0) | covered, 0.0, tl.exp(log_uncovered.to(tl.float64) * unit))
        energies = num_members.to(tl.float64)
        for configuration in range(0, 2**token_size - 1):  # the last one covers all that the token can
            left = tl.sum(tl.where((masks & configuration) == 0, uncovered, 0.0))
            energies += tl.where(configurations == configuration, penalty * left, 0.0)
        chosen = _lowest(energies, configurations, tie)
        covered = covered | ((masks & chosen) != 0)
        for a in tl.static_range(token_size):
            state = ((chosen >> a) & 1).to(tl.float64)
            values = tl.where(nodes == _node(order, first + a, size), state, values)
    tl.store(states + program * num_padded + nodes, values, mask=nodes < num_padded)


@triton.jit
def _node(order: tl.tensor, position: tl.tensor, size: tl.tensor) -> tl.tensor:
    """The node at a position of the order, or -1 after its end."""
    return tl.load(order + position, mask=position < size, other=-1)


@triton.jit
def _row(matrix: tl.tensor, node: tl.tensor, nodes: tl.tensor, size: tl.tensor, num_padded: tl.tensor) -> tl.tensor:
    """The weights between `node` and each of `nodes`; zeros if it is -1."""
    # One comparison, not two joined: Triton's interpreter gives the truth of a scalar the type of what was compared.
    mask = nodes < tl.where(node >= 0, size, 0)
    return tl.load(matrix + node * num_padded + nodes, mask=mask, other=0.0)


@triton.jit
def _closed_row(
    matrix: tl.tensor, node: tl.tensor, nodes: tl.tensor, size: tl.tensor, num_padded: tl.tensor
) -> tl.tensor:
    """Which nodes `node` covers: itself and its neighbours; none if it is -1."""
    return (_row(matrix, node, nodes, size, num_padded).to(tl.float32) != 0.0) | (nodes == node)


@triton.jit
def _lowest(energies: tl.tensor, configurations: tl.tensor, tie: tl.tensor) -> tl.tensor:
    """The first configuration whose energy ties with the minimum."""
    ties = energies <= tl.min(energies) + tie
    return tl.min(tl.where(ties, configurations, energies.shape[0]))
