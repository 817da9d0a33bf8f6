"""Conditional Expectation on the CPU: compiled loops over one graph and sample, threads over graphs and samples.

The reference is `torch_decode`, which has the same functions. Kept apart from the callers because importing numba and
compiling take longer than importing the package; only the kernel that is called is compiled.

Legend: N rows of all graphs, S samples per graph, E directed edges, k nodes per token.
"""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diffuco.ops.adjacency import CoverCosts, CsrAdjacency
from diffuco.ops.compilation import compiled
from diffuco.ops.threads import on_all_threads
from diffuco.ops.torch_decode import SMALLEST_FREE, TIE, fixed_point_scale

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def decode_quadratic(
    probs: Tensor, adjacency: CsrAdjacency, linear: Tensor, edge: float, pair: float, token_size: int
) -> Tensor:
    """States that minimise a quadratic energy token by token. Reference: `torch_decode`. [N, S] -> [N, S], float64."""
    indptr, indices = adjacency.indptr.numpy(), adjacency.indices.numpy()
    weights = np.ones(len(indices)) if adjacency.weights is None else adjacency.weights.double().numpy()
    couplings = edge * weights
    coefficients = linear.double().numpy()

    def decode(values: Floats, order: Ints) -> None:
        quadratic_kernel(values, order, indptr, indices, couplings, coefficients, pair, token_size)

    return _decode_all(probs, adjacency, decode)


def decode_cover(
    probs: Tensor, adjacency: CsrAdjacency, penalty: float, token_size: int, costs: CoverCosts | None = None
) -> Tensor:
    """States that minimise a cover energy token by token. Reference: `torch_decode`. [N, S] -> [N, S], float64."""
    indptr, indices = adjacency.indptr.numpy(), adjacency.indices.numpy()
    scale = fixed_point_scale(1 + int(np.diff(indptr).max(initial=0)))
    table = None if costs is None else torch.stack(costs).double().numpy()

    def decode(values: Floats, order: Ints) -> None:
        free = np.maximum(1 - values[order], SMALLEST_FREE)
        log_free = np.rint(scale * np.log(free)).astype(np.int64)
        cover_kernel(values, order, log_free, indptr, indices, scale, penalty, table, token_size)

    return _decode_all(probs, adjacency, decode)


def _decode_all(probs: Tensor, adjacency: CsrAdjacency, decode: Callable[[Floats, Ints], None]) -> Tensor:
    """Run `decode(values, order)`, which turns probabilities into states in place, for every graph and sample."""
    values = probs.T.to(torch.float64, copy=True, memory_format=torch.contiguous_format).numpy()  # [S, N]
    spans = list(zip(adjacency.row_starts.tolist(), adjacency.sizes.tolist(), strict=True))

    def decode_item(row: Floats, start: int, size: int) -> None:
        decode(row, start + np.argsort(-row[start : start + size], kind="stable"))

    on_all_threads(decode_item, [(row, start, size) for (start, size), row in product(spans, values)])
    return torch.from_numpy(values).T


@compiled
def quadratic_kernel(
    values: Floats,
    order: Ints,
    indptr: Ints,
    indices: Ints,
    couplings: Floats,
    linear: Floats,
    pair: float,
    token_size: int,
) -> None:
    """Replace the probabilities of the rows in `order` with states.

    A token's fields come from the values outside it, so its own values are zero while it is decided.
    """
    num_nodes = len(order)
    first_row = order.min() if num_nodes else 0
    slots = np.full(num_nodes, -1)  # position in the current token, by row - first_row
    # Summed from the back, not updated while decoding: rounding errors do not build up and the last sum is exactly 0.
    undecided = np.zeros(num_nodes + 1)
    for position in range(num_nodes - 1, -1, -1):
        undecided[position] = undecided[position + 1] + values[order[position]]
    fields = np.empty(token_size)
    inner = np.empty((token_size, token_size))
    energies = np.empty(1 << token_size)
    num_chosen = 0
    for first in range(0, num_nodes, token_size):
        last = min(first + token_size, num_nodes)
        length = last - first
        for a in range(length):
            values[order[first + a]] = 0.0
            slots[order[first + a] - first_row] = a
        inner[:] = pair
        for a in range(length):
            row = order[first + a]
            field = linear[row] + pair * (num_chosen + undecided[last])
            for e in range(indptr[row], indptr[row + 1]):
                field += couplings[e] * values[indices[e]]
            fields[a] = field
            # This is a separate loop, so that the one above stays fast for tokens of a single node.
            for e in range(indptr[row], indptr[row + 1] if length > 1 else indptr[row]):
                slot = slots[indices[e] - first_row]
                if slot >= 0:
                    inner[a, slot] += couplings[e]
        fill_quadratic_energies(energies, fields, inner, length)
        chosen = lowest(energies[: 1 << length])
        for a in range(length):
            state = (chosen >> a) & 1
            num_chosen += state
            values[order[first + a]] = state
            slots[order[first + a] - first_row] = -1


@compiled
def fill_quadratic_energies(energies: Floats, fields: Floats, inner: Floats, length: int) -> None:
    """Energy of every configuration: node `a` doubles the known ones, adding its field and its earlier couplings.

    The sums of couplings over all sets of earlier nodes are built by doubling too, in the half that is filled next. So
    all 2^k energies cost O(2^k).
    """
    energies[0] = 0.0
    for a in range(length):
        half = 1 << a
        energies[half] = fields[a]
        for b in range(a):
            for s in range(1 << b):
                energies[half + (1 << b) + s] = energies[half + s] + inner[a, b]
        for s in range(half):
            energies[half + s] += energies[s]


@compiled
def cover_kernel(
    values: Floats,
    order: Ints,
    log_free: Ints,
    indptr: Ints,
    indices: Ints,
    scale: float,
    penalty: float,
    costs: Floats | None,
    token_size: int,
) -> None:
    """Replace the probabilities of the rows in `order` with states; `log_free` is their log(1 - v) in fixed point.

    For a row that no chosen node covers yet, `log_uncovered` is the sum of log(1 - v) over the undecided rows of its
    closed neighbourhood. Rows are grouped by a bit mask of the token members that can cover them. `costs` [2, N] are
    the costs of rows if chosen and if uncovered; without them, a separate loop is compiled.
    """
    num_nodes = len(order)
    first_row = order.min() if num_nodes else 0
    covered = np.zeros(num_nodes, dtype=np.bool_)
    masks = np.zeros(num_nodes, dtype=np.int64)
    touched = np.empty(num_nodes, dtype=np.int64)
    log_uncovered = np.zeros(num_nodes, dtype=np.int64)
    for position in range(num_nodes):
        row = order[position]
        log_uncovered[row - first_row] += log_free[position]
        for e in range(indptr[row], indptr[row + 1]):
            log_uncovered[indices[e] - first_row] += log_free[position]
    energies = np.empty(1 << token_size)
    own = np.empty(token_size)
    for first in range(0, num_nodes, token_size):
        length = min(token_size, num_nodes - first)
        num_touched = 0
        for a in range(length):
            row = order[first + a]
            begin, end = indptr[row], indptr[row + 1]
            for e in range(begin - 1, end):
                node = (row if e < begin else indices[e]) - first_row
                if covered[node]:
                    continue
                if masks[node] == 0:
                    touched[num_touched] = node
                    num_touched += 1
                masks[node] |= 1 << a
                log_uncovered[node] -= log_free[first + a]
        uncovered = energies[: 1 << length]
        uncovered[:] = 0.0
        for node in touched[:num_touched]:
            chance = math.exp(log_uncovered[node] / scale)
            if costs is not None:
                chance *= costs[1, node + first_row]
            uncovered[masks[node]] += chance
        if costs is None:
            fill_cover_energies(uncovered, penalty, None, length)
        else:
            for a in range(length):
                own[a] = costs[0, order[first + a]]
            fill_cover_energies(uncovered, penalty, own, length)
        chosen = lowest(uncovered)
        for node in touched[:num_touched]:
            covered[node] = (masks[node] & chosen) != 0
            masks[node] = 0
        for a in range(length):
            values[order[first + a]] = (chosen >> a) & 1


@compiled
def fill_cover_energies(uncovered: Floats, penalty: float, own: Floats | None, length: int) -> None:
    """Turn the sum per mask into the energy per configuration: the cost of its nodes and of what none of them covers.

    A configuration leaves the masks inside its complement uncovered, so these are sums over subsets, read backwards.
    """
    num_states = 1 << length
    for a in range(length):
        for s in range(num_states):
            if s >> a & 1:
                uncovered[s] += uncovered[s ^ (1 << a)]
    for s in range(num_states // 2):
        complement = num_states - 1 - s
        uncovered[s], uncovered[complement] = uncovered[complement], uncovered[s]
    for s in range(num_states):
        cost = 0
        for a in range(length):
            is_chosen = s >> a & 1
            cost += is_chosen if own is None else is_chosen * own[a]
        uncovered[s] = cost + penalty * uncovered[s]


@compiled
def lowest(energies: Floats) -> int:
    """The first configuration whose energy ties with the minimum."""
    threshold = energies[0]
    for energy in energies:
        threshold = min(threshold, energy)
    threshold += TIE
    for s in range(len(energies)):
        if energies[s] <= threshold:
            return s
    return 0
