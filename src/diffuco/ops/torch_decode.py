"""Conditional Expectation by local fields in plain torch: one loop over token positions for all graphs and samples.

Sec. 4.1. This is the reference for `numba_decode` and `triton_decode`. It also decodes dense batches on a GPU if Triton
does not work; nothing in the loop waits for the device. Everything is float64, so that ties are recognised as ties.

Legend: B graphs, P padded nodes per graph, N = B * P rows, S samples per graph, k nodes per token; a token has 2^k
configurations s, bit j of s being the state of its j-th node.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from diffuco.ops.adjacency import CoverCosts, DenseAdjacency

TIE = 1e-9
"""Energies closer than this are equal, and the lower configuration wins."""
SMALLEST_FREE = 2.0**-53
"""Floor of 1 - v in a product: the distance from 1 to the float64 below it, so only v = 1 is changed."""
BYTES_PER_CHUNK = 2**30
"""Memory for the adjacency rows and configurations of one step; larger batches are decoded in parts."""


def decode_quadratic(
    probs: Tensor, adjacency: DenseAdjacency, linear: Tensor, edge: float, pair: float, token_size: int
) -> Tensor:
    """States that minimise H(X) = sum_i linear_i x_i + edge * sum_(i,j) w_ij x_i x_j + pair * sum_(i<j) x_i x_j.

    Tokens are decided one by one, in order of falling probability. [N, S] -> [N, S], float64.
    """
    coefficients = linear.double().view(len(adjacency.sizes), -1)

    def decode(graphs: slice, values: Tensor) -> Tensor:
        sizes, matrix = adjacency.sizes[graphs], adjacency.matrix[graphs]
        return _decode_quadratic(values, sizes, matrix, coefficients[graphs], edge, pair, token_size)

    return _decode_in_chunks(probs, adjacency, token_size, decode)


def decode_cover(
    probs: Tensor, adjacency: DenseAdjacency, penalty: float, token_size: int, costs: CoverCosts | None = None
) -> Tensor:
    """States that minimise H(X) = sum_i chosen_i x_i + penalty * sum_i uncovered_i prod_j (1 - x_j).

    The product is over node i and its neighbours j. Without `costs`, nodes cost 1. Tokens are decided one by one, in
    order of falling probability. [N, S] -> [N, S], float64.
    """
    ones = torch.ones(len(probs), device=probs.device)
    table = torch.stack(costs or (ones, ones)).double().view(2, len(adjacency.sizes), -1)

    def decode(graphs: slice, values: Tensor) -> Tensor:
        sizes, matrix = adjacency.sizes[graphs], adjacency.matrix[graphs]
        return _decode_cover(values, sizes, matrix, penalty, table[:, graphs], token_size)

    return _decode_in_chunks(probs, adjacency, token_size, decode)


def fixed_point_scale(num_terms: int) -> float:
    """A power of two that turns logarithms of values from `SMALLEST_FREE` up into integers whose sums fit in 63 bits.

    Sums of logarithms are updated once per edge; integers make every update exact, so no error builds up at hubs.

    >>> math.log2(fixed_point_scale(10_000))
    43.0
    """
    return float(2 ** (62 - math.ceil(math.log2(-math.log(SMALLEST_FREE) * num_terms))))


def _decode_in_chunks(
    probs: Tensor, adjacency: DenseAdjacency, token_size: int, decode: Callable[[slice, Tensor], Tensor]
) -> Tensor:
    """Run `decode(graphs, values[b, S, P])` on as many graphs at a time as memory allows. [N, S] -> [N, S]."""
    num_graphs, num_padded, _ = adjacency.matrix.shape
    values = probs.double().view(num_graphs, num_padded, -1).transpose(1, 2)  # [B, S, P]
    values = torch.where(adjacency.is_node[:, None], values, -1.0)  # padding comes last in every order
    bytes_per_graph = 8 * values.shape[1] * (2 * token_size * num_padded + 2 * 2**token_size)
    chunk_size = max(1, BYTES_PER_CHUNK // max(1, bytes_per_graph))
    states = torch.zeros_like(values)
    for first in range(0, num_graphs, chunk_size):
        graphs = slice(first, first + chunk_size)
        states[graphs] = decode(graphs, values[graphs])
    return states.transpose(1, 2).reshape(probs.shape)


def _decode_quadratic(
    values: Tensor, sizes: Tensor, matrix: Tensor, linear: Tensor, edge: float, pair: float, token_size: int
) -> Tensor:
    """States of some graphs, whose padding has probability -1. [B, S, P] -> [B, S, P]."""
    in_order, order = values.sort(dim=2, descending=True, stable=True)
    values, in_order = values.clamp(min=0), in_order.clamp(min=0)
    # Summed from the back, not updated while decoding: rounding errors do not build up and the last sum is exactly 0.
    undecided = F.pad(in_order.flip(2).cumsum(2).flip(2), (0, 1))  # [B, S, P + 1]
    linear = linear[:, None].expand_as(values)
    num_chosen = torch.zeros_like(undecided[:, :, 0])
    for first, token in _tokens(order, token_size):
        length = token.shape[2]
        rows = _rows_of(matrix, token).double()  # [B, S, k, P]
        outside = values.scatter(2, token, 0.0)
        total_outside = num_chosen + undecided[:, :, first + length]
        fields = linear.gather(2, token) + edge * (rows @ outside[..., None])[..., 0] + pair * total_outside[..., None]
        inner = edge * rows.gather(3, token[:, :, None].expand(-1, -1, length, -1)) + pair  # [B, S, k, k]
        # Padding gets no energy, so its two states tie and the lower one, 0, wins.
        valid = _valid(sizes, first, length)  # [B, 1, k]
        fields, inner = fields.where(valid, 0.0), inner.where(valid[..., None] & valid[:, :, None], 0.0)
        states = _states_of(_lowest(_quadratic_energies(fields, inner)), length)
        values = outside.scatter(2, token, states.double())
        num_chosen = num_chosen + states.sum(2)
    return values


def _quadratic_energies(fields: Tensor, inner: Tensor) -> Tensor:
    """Energy of every configuration from the nodes' fields and couplings. [..., k], [..., k, k] -> [..., 2^k].

    Node `a` doubles the configurations; the new ones add its field and its couplings to the nodes before it.
    """
    energies = torch.zeros_like(fields[..., :1])
    for a in range(fields.shape[-1]):
        added = fields[..., a : a + 1]
        for b in range(a):
            added = torch.cat([added, added + inner[..., a, b : b + 1]], dim=-1)
        energies = torch.cat([energies, energies + added], dim=-1)
    return energies


def _decode_cover(
    values: Tensor, sizes: Tensor, matrix: Tensor, penalty: float, costs: Tensor, token_size: int
) -> Tensor:
    """States of some graphs, whose padding has probability -1; `costs` are [2, B, P]. [B, S, P] -> [B, S, P]."""
    cost_chosen, cost_uncovered = costs[:, :, None].expand(-1, -1, values.shape[1], -1)  # [B, S, P]
    num_padded = values.shape[2]
    order = values.argsort(dim=2, descending=True, stable=True)
    values = values.clamp(min=0)
    scale = fixed_point_scale(num_padded + 1)
    log_free = (scale * (1 - values).clamp(min=SMALLEST_FREE).log()).round().long()
    diagonal = torch.eye(num_padded, dtype=torch.bool, device=values.device) & _valid(sizes, 0, num_padded)
    closed = (matrix != 0) | diagonal  # [B, P, P]
    log_uncovered = _integer_product(log_free, closed)  # sums over the undecided nodes that could cover each node
    covered = torch.zeros_like(values, dtype=torch.bool)
    for first, token in _tokens(order, token_size):
        length = token.shape[2]
        rows = _rows_of(closed, token)  # [B, S, k, P]
        log_uncovered = log_uncovered - (rows * log_free.gather(2, token)[..., None]).sum(2)
        uncovered = (cost_uncovered * (log_uncovered.double() / scale).exp()).masked_fill(covered, 0.0)
        bits = 2 ** torch.arange(length, device=values.device)
        masks = (rows * bits[:, None]).sum(2)  # which members of the token cover each node
        per_mask = uncovered.new_zeros(*uncovered.shape[:2], 2**length).scatter_add(2, masks, uncovered)
        per_mask[..., 0] = 0.0
        # Padding covers nothing and costs 1, so its lower state is better.
        own = cost_chosen.gather(2, token).where(_valid(sizes, first, length), 1.0)
        chosen = _lowest(_cover_energies(per_mask, penalty, own))
        covered = covered | (masks & chosen[..., None] != 0)
        values = values.scatter(2, token, _states_of(chosen, length).double())
    return values


def _cover_energies(per_mask: Tensor, penalty: float, own: Tensor) -> Tensor:
    """Energy of every configuration: the cost of its nodes and of what none of them covers. [..., 2^k] -> [..., 2^k].

    `own` [..., k] is the cost of each node. Configuration s leaves the masks inside its complement uncovered, so these
    are sums over subsets, read backwards.
    """
    num_states = per_mask.shape[-1]
    length = num_states.bit_length() - 1
    uncovered = per_mask
    for a in range(length):
        without, with_node = uncovered.view(*per_mask.shape[:-1], -1, 2, 2**a).unbind(-2)
        uncovered = torch.stack([without, without + with_node], dim=-2).flatten(-3)
    members = _states_of(torch.arange(num_states, device=per_mask.device), length).double()  # [2^k, k]
    return own @ members.T + penalty * uncovered.flip(-1)


def _integer_product(values: Tensor, closed: Tensor) -> Tensor:
    """Sum of 63-bit integers over each node's closed neighbourhood, exactly. [B, S, P], [B, P, P] -> [B, S, P].

    GPUs cannot multiply integer matrices, so float64 sums the upper and the lower 32 bits, without rounding.
    """
    high, low = values >> 32, values & 0xFFFFFFFF
    weights = closed.double()
    return ((high.double() @ weights).long() << 32) + (low.double() @ weights).long()


def _tokens(order: Tensor, token_size: int) -> Iterator[tuple[int, Tensor]]:
    """Position and nodes of each token, [B, S, k]; the last may be shorter."""
    for first in range(0, order.shape[2], token_size):
        yield first, order[:, :, first : first + token_size]


def _rows_of(matrix: Tensor, token: Tensor) -> Tensor:
    """The matrix rows of a token's nodes. [B, P, P], [B, S, k] -> [B, S, k, P]."""
    graphs = torch.arange(len(matrix), device=matrix.device)
    return matrix[graphs[:, None, None], token]


def _valid(sizes: Tensor, first: int, length: int) -> Tensor:
    """Which positions of an order hold nodes, not padding. [B] -> [B, 1, length]."""
    return torch.arange(first, first + length, device=sizes.device) < sizes[:, None, None]


def _lowest(energies: Tensor) -> Tensor:
    """The first configuration whose energy ties with the minimum. [..., 2^k] -> [...]."""
    ties = energies <= energies.amin(dim=-1, keepdim=True) + TIE
    return ties.to(torch.uint8).argmax(dim=-1)


def _states_of(configurations: Tensor, length: int) -> Tensor:
    """The bits of each configuration. [...] -> [..., length]."""
    return configurations[..., None] >> torch.arange(length, device=configurations.device) & 1
