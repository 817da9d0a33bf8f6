"""Simulated annealing on the CPU: compiled loops over one chain, threads over graphs and chains.

The reference is `torch_anneal`, which has the same functions and gives the same states. What a node needs to know of
its neighbours is kept up to date, so a rejected proposal costs a comparison and usually no random number. A flip costs
a walk over the neighbours. For a cover energy, it also walks over the neighbours of each neighbour that at most one
other chosen node covers. Large graphs wait for memory, so counts and neighbours have few bits.

Legend: N rows of all graphs, S chains per graph, E directed edges, K sweeps.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diffuco.ops.adjacency import CoverCosts, CsrAdjacency
from diffuco.ops.compilation import compiled
from diffuco.ops.threads import on_all_threads
from diffuco.ops.torch_anneal import GOLDEN, LEVEL_BITS, MIX_FACTORS, MIX_SHIFTS, TIE, chain_keys, exponentials

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
States = NDArray[np.int8]
Accepts = NDArray[np.bool_]

LEVEL_SHIFT = np.uint64(32 - LEVEL_BITS)
LEVEL_SHIFT_32 = np.uint32(LEVEL_SHIFT)
LOW_32 = np.uint64(0xFFFFFFFF)
STRIDE = np.uint64(GOLDEN)
SHIFT_1, SHIFT_2, SHIFT_3 = (np.uint64(shift) for shift in MIX_SHIFTS)
FACTOR_1, FACTOR_2 = (np.uint64(factor) for factor in MIX_FACTORS)
BLOCK = 64
"""Nodes that are asked together on graphs that are large and sparse."""
NEAR = 2.0
"""The most neighbours that a node of such a graph has in its block, on average."""


def anneal_quadratic(
    states: Tensor, adjacency: CsrAdjacency, linear: Tensor, edge: float, pair: float, temperatures: Tensor, seed: int
) -> Tensor:
    """Anneal a quadratic energy. Reference: `torch_anneal`. [N, S] -> [N, S]."""
    indptr, indices = _narrow(adjacency)
    weights = None if adjacency.weights is None else adjacency.weights.double().numpy()
    coefficients = linear.double().numpy()
    kind = _counting(indptr) if weights is None else np.float64

    def anneal(x: States, first_row: int, schedule: Floats, table: Floats, key: np.uint64) -> None:
        graph = x, np.zeros(len(x), kind), first_row, indptr, indices, weights, coefficients, edge
        ends = indptr[first_row + len(x)] - indptr[first_row]
        if pair or BLOCK * ends > NEAR * len(x) ** 2:
            quadratic_chain(*graph, pair, schedule, table, key)
        else:
            blockwise_chain(*graph, schedule, table, key)

    return _anneal_all(states, adjacency, temperatures, seed, anneal)


def anneal_cover(
    states: Tensor,
    adjacency: CsrAdjacency,
    penalty: float,
    temperatures: Tensor,
    seed: int,
    costs: CoverCosts | None = None,
) -> Tensor:
    """Anneal a cover energy. Reference: `torch_anneal`. [N, S] -> [N, S]."""
    indptr, indices = _narrow(adjacency)
    of_rows = None if costs is None else torch.stack(costs).double().numpy()
    kind = _counting(indptr)

    def anneal(x: States, first_row: int, schedule: Floats, table: Floats, key: np.uint64) -> None:
        covering, needs = x.astype(kind), np.zeros(len(x), kind if of_rows is None else np.float64)
        cover_chain(x, covering, needs, first_row, indptr, indices, penalty, of_rows, schedule, table, key)

    return _anneal_all(states, adjacency, temperatures, seed, anneal)


def _narrow(adjacency: CsrAdjacency) -> tuple[Ints, Ints]:
    """`indptr` and, with half the bits, `indices`."""
    return adjacency.indptr.numpy(), adjacency.indices.to(torch.int32).numpy()


def _counting(indptr: Ints) -> type[np.signedinteger[Any]]:
    """The smallest numbers that count a node and its neighbours."""
    return np.int16 if np.diff(indptr).max(initial=0) < np.iinfo(np.int16).max else np.int32


def _anneal_all(
    states: Tensor,
    adjacency: CsrAdjacency,
    temperatures: Tensor,
    seed: int,
    anneal: Callable[[States, int, Floats, Floats, np.uint64], None],
) -> Tensor:
    """Run `anneal(x, first_row, schedule, table, key)`, which changes states in place, for every graph and chain."""
    chains = states.T.to(torch.int8, copy=True, memory_format=torch.contiguous_format).numpy()  # [S, N]
    device = torch.device("cpu")
    keys = chain_keys(seed, len(adjacency.sizes), len(chains), device).numpy().astype(np.uint64)
    schedules = np.ascontiguousarray(temperatures.double().permute(1, 2, 0).numpy())  # [B, C, K]
    table = exponentials(device).double().numpy()
    spans = zip(adjacency.row_starts.tolist(), adjacency.sizes.tolist(), strict=True)
    width = schedules.shape[1]
    items = [
        (chains[chain, start : start + size], start, schedules[graph, chain % width], table, keys[graph, chain])
        for graph, (start, size) in enumerate(spans)
        for chain in range(len(chains))
    ]
    on_all_threads(anneal, items, doing=f"annealing {schedules.shape[2]:,} sweeps, chains")
    return torch.from_numpy(chains).T.to(states.dtype)


@compiled
def quadratic_chain(
    x: States,
    sums: Ints | Floats,
    first_row: int,
    indptr: Ints,
    indices: Ints,
    weights: Floats | None,
    linear: Floats,
    edge: float,
    pair: float,
    temperatures: Floats,
    table: Floats,
    key: np.uint64,
) -> None:
    """Replace the states of one graph with the best that a chain started from them has at the end of a sweep.

    `sums`, zeros at first, has the weights of the edges from a node to chosen ones or, without weights, their number.
    """
    num_nodes, num_chosen = len(x), x.sum()
    add_chosen(x, sums, first_row, indptr, indices, weights)
    best = x.copy()
    energy = lowest = 0.0
    for sweep in range(len(temperatures)):
        temperature = temperatures[sweep]
        highest = temperature * table[0]
        sweep_key = mix(key + np.uint64(sweep) * STRIDE)
        for node in range(num_nodes):
            sign = 1 - 2 * x[node]
            change = sign * (linear[first_row + node] + edge * sums[node] + pair * (num_chosen - x[node]))
            if change >= highest:
                continue
            # A flip that lowers the energy is accepted without a random number.
            if change < 0 or change < temperature * table[mix(sweep_key + np.uint64(node) * STRIDE) >> LEVEL_SHIFT]:
                x[node] += sign
                num_chosen += sign
                energy += change
                for e in range(indptr[first_row + node], indptr[first_row + node + 1]):
                    sums[indices[e] - first_row] += sign if weights is None else sign * weights[e]
        if energy < lowest - TIE:
            lowest = energy
            best[:] = x
    x[:] = best


@compiled
def blockwise_chain(
    x: States,
    sums: Ints | Floats,
    first_row: int,
    indptr: Ints,
    indices: Ints,
    weights: Floats | None,
    linear: Floats,
    edge: float,
    temperatures: Floats,
    table: Floats,
    key: np.uint64,
) -> None:
    """The same without `pair`: the same states, on sparse graphs in about three quarters of the time.

    All nodes of a block are asked in two loops without branches, which processors run on several nodes at once. Those
    that accept then flip in order, and a flip asks its neighbours in the block again.
    """
    num_nodes = len(x)
    add_chosen(x, sums, first_row, indptr, indices, weights)
    best = x.copy()
    energy = lowest = 0.0
    limits, accepts = np.empty(BLOCK), np.empty(BLOCK, np.bool_)
    for sweep in range(len(temperatures)):
        sweep_key = mix(key + np.uint64(sweep) * STRIDE)
        for start in range(0, num_nodes, BLOCK):
            stop = min(start + BLOCK, num_nodes)
            fill_limits(limits, stop - start, sweep_key + np.uint64(start) * STRIDE, temperatures[sweep], table)
            own = linear[first_row + start : first_row + stop]
            ask(accepts, limits, x[start:stop], sums[start:stop], own, edge)
            for node in range(start, stop):
                if not accepts[node - start]:
                    continue
                sign = 1 - 2 * x[node]
                energy += sign * (linear[first_row + node] + edge * sums[node])
                x[node] += sign
                for e in range(indptr[first_row + node], indptr[first_row + node + 1]):
                    other = indices[e] - first_row
                    sums[other] += sign if weights is None else sign * weights[e]
                    if node < other < stop:
                        change = (1 - 2 * x[other]) * (linear[first_row + other] + edge * sums[other])
                        accepts[other - start] = change < limits[other - start]
        if energy < lowest - TIE:
            lowest = energy
            best[:] = x
    x[:] = best


@compiled
def add_chosen(
    x: States, sums: Ints | Floats, first_row: int, indptr: Ints, indices: Ints, weights: Floats | None
) -> None:
    """Add the weights of the edges to chosen nodes to the sums of their neighbours; 1 for each without weights."""
    for node in range(len(x)):
        if x[node]:
            for e in range(indptr[first_row + node], indptr[first_row + node + 1]):
                sums[indices[e] - first_row] += 1 if weights is None else weights[e]


@compiled
def fill_limits(limits: Floats, count: int, key: np.uint64, temperature: float, table: Floats) -> None:
    """Below which changes of the energy the nodes from that of this key on are flipped: `mix` for many, in 32 bits."""
    first, stride = np.uint32(key), np.uint32(STRIDE)
    for place in range(count):
        bits = np.uint32(first + np.uint32(place) * stride)
        bits = np.uint32(np.uint32(bits ^ (bits >> np.uint32(SHIFT_1))) * np.uint32(FACTOR_1))
        bits = np.uint32(np.uint32(bits ^ (bits >> np.uint32(SHIFT_2))) * np.uint32(FACTOR_2))
        bits = bits ^ (bits >> np.uint32(SHIFT_3))
        limits[place] = temperature * table[bits >> LEVEL_SHIFT_32]


@compiled
def ask(accepts: Accepts, limits: Floats, x: States, sums: Ints | Floats, linear: Floats, edge: float) -> None:
    """Whether each node of a block would flip now."""
    for place in range(len(x)):
        accepts[place] = (1 - 2 * x[place]) * (linear[place] + edge * sums[place]) < limits[place]


@compiled
def cover_chain(
    x: States,
    covering: Ints,
    needs: Ints | Floats,
    first_row: int,
    indptr: Ints,
    indices: Ints,
    penalty: float,
    costs: Floats | None,
    temperatures: Floats,
    table: Floats,
    key: np.uint64,
) -> None:
    """Replace the states of one graph with the best that a chain started from them has at the end of a sweep.

    `covering`, the states at first, counts the chosen nodes that cover a node. `needs`, zeros at first, counts the
    nodes that a node covers and no other chosen node does, so its field is 1 - penalty * needs. With `costs` [2, N],
    whose rows are chosen and uncovered, `needs` is the cost of those nodes, and the first row replaces the 1. Without
    `costs`, a separate loop is compiled.
    """
    num_nodes = len(x)
    for node in range(num_nodes):
        for e in range(indptr[first_row + node], indptr[first_row + node + 1]):
            covering[node] += x[indices[e] - first_row]
    for node in range(num_nodes):
        begin, end = indptr[first_row + node], indptr[first_row + node + 1]
        for e in range(begin - 1, end):
            other = node if e < begin else indices[e] - first_row
            if covering[other] == x[node]:
                needs[node] += 1 if costs is None else costs[1, first_row + other]
    best = x.copy()
    energy = lowest = 0.0
    for sweep in range(len(temperatures)):
        temperature = temperatures[sweep]
        highest = temperature * table[0]
        sweep_key = mix(key + np.uint64(sweep) * STRIDE)
        for node in range(num_nodes):
            sign = 1 - 2 * x[node]
            change = sign * ((1 if costs is None else costs[0, first_row + node]) - penalty * needs[node])
            if change >= highest:
                continue
            if change < 0 or change < temperature * table[mix(sweep_key + np.uint64(node) * STRIDE) >> LEVEL_SHIFT]:
                flip_in_cover(node, x, covering, needs, first_row, indptr, indices, costs)
                energy += change
        if energy < lowest - TIE:
            lowest = energy
            best[:] = x
    x[:] = best


@compiled
def flip_in_cover(
    node: int,
    x: States,
    covering: Ints,
    needs: Ints | Floats,
    first_row: int,
    indptr: Ints,
    indices: Ints,
    costs: Floats | None,
) -> None:
    """Flip a node. Update `covering` of the nodes it covers, and `needs` of the nodes around them.

    Where no other chosen node covers a node, `needs` of all nodes around it changes. Where a single other one does,
    only `needs` of that one changes.
    """
    sign = 1 - 2 * x[node]
    alone = x[node]  # `covering`, before the flip, of a node that no other node covers
    begin, end = indptr[first_row + node], indptr[first_row + node + 1]
    for e in range(begin - 1, end):
        covered = node if e < begin else indices[e] - first_row
        before = covering[covered]
        covering[covered] += sign
        if before > alone + 1:
            continue
        first, last = indptr[first_row + covered], indptr[first_row + covered + 1]
        for f in range(first - 1, last):
            other = covered if f < first else indices[f] - first_row
            if other != node and (before == alone or x[other]):
                needs[other] -= sign if costs is None else sign * costs[1, first_row + covered]
    x[node] += sign


@compiled
def mix(bits: np.uint64) -> np.uint64:
    """The 32-bit mixer of the reference."""
    bits &= LOW_32
    bits = ((bits ^ (bits >> SHIFT_1)) * FACTOR_1) & LOW_32
    bits = ((bits ^ (bits >> SHIFT_2)) * FACTOR_2) & LOW_32
    return bits ^ (bits >> SHIFT_3)
