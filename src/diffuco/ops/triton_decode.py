"""Conditional Expectation on a GPU by Triton kernels: one program per graph and sample walks all tokens.

Sec. 4.1. The reference is `torch_decode`, which has the same functions. It also serves what these kernels do not:
tokens of more than `MAX_TOKEN_SIZE` nodes, and graphs padded to more than `MAX_PADDED`. Kept apart from the callers
because not every platform has Triton.

A token needs the rows of its nodes and one decision, and each decision of a program depends on those before it. So a
program has only as many warps as are needed to hold a graph's values in registers, with up to 512 nodes per warp. Sums
are then shuffles without barriers, and the other programs of the processor hide latency. The energies of the 2^k
configurations stay in registers too. Couplings inside a token are single loads from rows just read. The cover kernel
reads every row twice, the first time for the products of all nodes. It sums over the nodes once per configuration,
2^k - 1 times per token, which is most of its work for k = 8. Everything is float64 or integer, so that ties are
recognised as ties. Scalars are passed in a tensor, because Triton would turn them into float32.

On an H200, 500 RB-small graphs x 8 samples take 0.46 ms in the quadratic kernel for k = 1 and 0.62 ms for k = 8;
RB-large graphs take 9.6 and 15.9 ms. In the cover kernel these are 2.7, 8.4, 37 and 165 ms
(`experiments/results/decode-h200.json`). Rows are read at up to 0.9 TB/s, a fifth of the rate of a copy, so
instructions and not memory are the limit.

Legend: B graphs, P padded nodes per graph, N = B * P rows, S samples per graph, k nodes per token; a token has 2^k
configurations s, bit j of s being the state of its j-th node.
"""

import logging
import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from diffuco.ops import torch_decode
from diffuco.ops.adjacency import CoverCosts, DenseAdjacency
from diffuco.ops.torch_decode import SMALLEST_FREE, TIE, fixed_point_scale

MAX_TOKEN_SIZE = 8
"""Largest token of the kernels: 2^k energies are held in registers, and the code grows with k^2."""
MAX_PADDED = 8192
"""Most padded nodes per graph: 16 warps hold them in registers."""
NODES_PER_WARP = 512
WIDEST_READ = 8
"""Entries of a row that a thread reads at once if the padding allows it: 16 bytes of bfloat16."""

_log = logging.getLogger(__name__)


def decode_quadratic(
    probs: Tensor, adjacency: DenseAdjacency, linear: Tensor, edge: float, pair: float, token_size: int
) -> Tensor:
    """States that minimise a quadratic energy token by token. Reference: `torch_decode`. [N, S] -> [N, S], float64."""
    if not _fits(adjacency, token_size):
        return torch_decode.decode_quadratic(probs, adjacency, linear, edge, pair, token_size)
    return _launch(quadratic_kernel, probs, adjacency, (probs, linear), (edge, pair), token_size)


def decode_cover(
    probs: Tensor, adjacency: DenseAdjacency, penalty: float, token_size: int, costs: CoverCosts | None = None
) -> Tensor:
    """States that minimise a cover energy token by token. Reference: `torch_decode`. [N, S] -> [N, S], float64."""
    if not _fits(adjacency, token_size):
        return torch_decode.decode_cover(probs, adjacency, penalty, token_size, costs)
    scale = fixed_point_scale(adjacency.matrix.shape[1] + 1)
    log_free = (scale * (1 - probs.double()).clamp(min=SMALLEST_FREE).log()).round().long()
    table = log_free if costs is None else torch.stack(costs).double()
    constants = (penalty, 1 / scale)
    has_costs = {"has_costs": costs is not None}
    return _launch(cover_kernel, probs, adjacency, (log_free, table), constants, token_size, **has_costs)


def _fits(adjacency: DenseAdjacency, token_size: int) -> bool:
    num_padded = adjacency.matrix.shape[1]
    fits = token_size <= MAX_TOKEN_SIZE and num_padded <= MAX_PADDED
    if not fits:
        _log.debug("tokens of %d nodes, graphs padded to %d: decoded by torch_decode", token_size, num_padded)
    return fits


def _order(probs: Tensor, adjacency: DenseAdjacency) -> Tensor:
    """Nodes of each graph by falling probability, padding last. [N, S] -> [B, S, P]."""
    num_graphs, num_padded, _ = adjacency.matrix.shape
    values = probs.view(num_graphs, num_padded, probs.shape[1]).transpose(1, 2)
    # Sorted in their own type, which gives the same order as float64 with fewer bits to sort by.
    return torch.where(adjacency.is_node[:, None], values, -1.0).argsort(dim=2, descending=True, stable=True)


def _launch(
    kernel: Any,
    probs: Tensor,
    adjacency: DenseAdjacency,
    inputs: tuple[Tensor, ...],
    scalars: tuple[float, float],
    token_size: int,
    **flags: bool,
) -> Tensor:
    """Run one program per graph and sample. [N, S] -> [N, S], float64."""
    num_samples, num_padded = probs.shape[1], adjacency.matrix.shape[1]
    states = torch.empty(probs.shape, dtype=torch.float64, device=probs.device)
    if not states.numel():
        return states
    # Filled on the device, because copying from the host would wait for it.
    constants = torch.cat([states.new_full((1,), scalar) for scalar in (*scalars, TIE)])
    tensors = (_order(probs, adjacency), *inputs, adjacency.matrix, adjacency.sizes, constants)
    block = triton.next_power_of_2(num_padded)
    vector = math.gcd(num_padded, WIDEST_READ)
    with torch.cuda.device_of(states):  # type: ignore[no-untyped-call]
        kernel[(len(adjacency.sizes) * num_samples,)](
            states,
            *(tensor.contiguous() for tensor in tensors),
            *(num_samples, num_padded // vector),
            token_size=token_size,
            block=block,
            vector=vector,
            **flags,
            num_warps=max(1, block // NODES_PER_WARP),
            enable_fp_fusion=True,
        )
    return states


@triton.jit
def quadratic_kernel(
    states: tl.tensor,
    order: tl.tensor,
    probs: tl.tensor,
    linear: tl.tensor,
    matrix: tl.tensor,
    sizes: tl.tensor,
    constants: tl.tensor,
    num_samples: tl.tensor,
    num_reads: tl.tensor,
    token_size: tl.constexpr,
    block: tl.constexpr,
    vector: tl.constexpr,
) -> None:
    """Decide the nodes of one graph and sample by the fields that come from the values outside each token."""
    num_padded = num_reads * vector
    program = tl.program_id(0).to(tl.int64)
    graph = program // num_samples
    first_cell = graph * num_padded * num_samples + program % num_samples  # of [N, S]
    size = tl.load(sizes + graph).to(tl.int32)
    edge, pair, tie = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    matrix += graph * num_padded * num_padded
    linear += graph * num_padded
    order += program * num_padded
    nodes = tl.arange(0, block)
    configurations = tl.arange(0, 2**token_size)
    values = tl.load(probs + first_cell + nodes * num_samples, mask=nodes < size, other=0.0).to(tl.float64)
    for first in range(0, size, token_size):
        for a in tl.static_range(token_size):
            values = tl.where(nodes == _node(order, first + a, size), 0.0, values)
        # Padding at the end of the last token adds no energy, so its two states tie and the lower one, 0, wins.
        energies = tl.full((2**token_size,), 0.0, tl.float64)
        for a in tl.static_range(token_size):
            node = _node(order, first + a, size)
            row = matrix + node * num_padded
            weights = row_of(matrix, node, nodes, size, num_padded, vector).to(tl.float64)
            field = tl.load(linear + node, mask=node >= 0, other=0.0).to(tl.float64)
            field += tl.sum((edge * weights + pair) * values)
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
    tl.store(states + first_cell + nodes * num_samples, values, mask=nodes < num_padded)


@triton.jit
def cover_kernel(
    states: tl.tensor,
    order: tl.tensor,
    log_free: tl.tensor,
    costs: tl.tensor,
    matrix: tl.tensor,
    sizes: tl.tensor,
    constants: tl.tensor,
    num_samples: tl.tensor,
    num_reads: tl.tensor,
    token_size: tl.constexpr,
    block: tl.constexpr,
    vector: tl.constexpr,
    has_costs: tl.constexpr,
) -> None:
    """Decide the nodes of one graph and sample by the nodes that each configuration of a token leaves uncovered.

    `log_uncovered` of a node is the sum of log(1 - v), in fixed point, over the undecided nodes that could cover it.
    `costs` [2, N] are the costs of rows if chosen and if uncovered.
    """
    num_padded = num_reads * vector
    program = tl.program_id(0).to(tl.int64)
    graph = program // num_samples
    first_cell = graph * num_padded * num_samples + program % num_samples  # of [N, S]
    size = tl.load(sizes + graph).to(tl.int32)
    penalty, unit, tie = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    matrix += graph * num_padded * num_padded
    order += program * num_padded
    log_free += first_cell
    nodes = tl.arange(0, block)
    configurations = tl.arange(0, 2**token_size)
    num_members = tl.full((2**token_size,), 0, tl.int32)
    for a in tl.static_range(token_size):
        num_members += (configurations >> a) & 1
    if has_costs:  # otherwise they are not read
        num_rows = tl.num_programs(0).to(tl.int64) // num_samples * num_padded
        costs += graph * num_padded
        cost_uncovered = tl.load(costs + num_rows + nodes, mask=nodes < size, other=0.0)
    log_uncovered = tl.full((block,), 0, tl.int64)
    for position in range(0, size):
        node = _node(order, position, size)
        closed = closed_row(matrix, node, nodes, size, num_padded, vector)
        log_uncovered += tl.where(closed, tl.load(log_free + node * num_samples), 0)
    covered = nodes < 0
    values = tl.full((block,), 0.0, tl.float64)
    for first in range(0, size, token_size):
        masks = tl.full((block,), 0, tl.int32)  # which members of the token cover each node
        energies = num_members.to(tl.float64)
        if has_costs:
            energies = tl.full((2**token_size,), 0.0, tl.float64)
        reached = nodes < 0  # not `masks != 0`, which ptxas 12.8 to 13.0 miscompiles next to `covered`
        for a in tl.static_range(token_size):
            node = _node(order, first + a, size)
            closed = closed_row(matrix, node, nodes, size, num_padded, vector)
            masks += tl.where(closed, 2**a, 0)
            reached = reached | closed
            log_uncovered -= tl.where(closed, tl.load(log_free + node * num_samples, mask=node >= 0, other=0), 0)
            if has_costs:
                # Padding costs 1, so its lower state is better.
                own = tl.load(costs + node, mask=node >= 0, other=1.0)
                energies += tl.where(((configurations >> a) & 1) != 0, own, 0.0)
        uncovered = tl.where(covered, 0.0, tl.exp(log_uncovered.to(tl.float64) * unit))
        uncovered = tl.where(reached, uncovered, 0.0)
        if has_costs:
            uncovered *= cost_uncovered
        for configuration in range(0, 2**token_size - 1):  # the last one covers everything that the token can
            left = tl.sum(tl.where((masks & configuration) == 0, uncovered, 0.0))
            energies += tl.where(configurations == configuration, penalty * left, 0.0)
        chosen = _lowest(energies, configurations, tie)
        covered = covered | ((masks & chosen) != 0)
        for a in tl.static_range(token_size):
            state = ((chosen >> a) & 1).to(tl.float64)
            values = tl.where(nodes == _node(order, first + a, size), state, values)
    tl.store(states + first_cell + nodes * num_samples, values, mask=nodes < num_padded)


@triton.jit
def _node(order: tl.tensor, position: tl.tensor, size: tl.tensor) -> tl.tensor:
    """The node at a position of the order, or -1 after its end."""
    return tl.load(order + position, mask=position < size, other=-1).to(tl.int32)


@triton.jit
def row_of(
    matrix: tl.tensor,
    node: tl.tensor,
    nodes: tl.tensor,
    size: tl.tensor,
    num_padded: tl.tensor,
    vector: tl.constexpr,
) -> tl.tensor:
    """The weights between `node` and each of `nodes`; zeros if `node` is -1."""
    # The mask covers whole vectors, so that Triton reads whole vectors; the last one may hold zeros of the padding.
    # It is one comparison and not two joined ones, because Triton's interpreter gives the result of a comparison of
    # scalars the type of these scalars.
    mask = nodes // vector < tl.where(node >= 0, tl.cdiv(size, vector), 0)
    return tl.load(matrix + node * num_padded + nodes, mask=mask, other=0.0)


@triton.jit
def closed_row(
    matrix: tl.tensor,
    node: tl.tensor,
    nodes: tl.tensor,
    size: tl.tensor,
    num_padded: tl.tensor,
    vector: tl.constexpr,
) -> tl.tensor:
    """Which nodes `node` covers: itself and its neighbours; none if `node` is -1."""
    return (row_of(matrix, node, nodes, size, num_padded, vector).to(tl.float32) != 0.0) | (nodes == node)


@triton.jit
def _lowest(energies: tl.tensor, configurations: tl.tensor, tie: tl.tensor) -> tl.tensor:
    """The first configuration whose energy ties with the minimum."""
    ties = energies <= tl.min(energies) + tie
    return tl.min(tl.where(ties, configurations, energies.shape[0]))
