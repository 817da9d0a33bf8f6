"""Simulated annealing on a GPU by Triton kernels: one program per graph and chain, fields in registers.

The reference is `torch_anneal`, which has the same functions and gives the same states. It also serves graphs padded to
more than `MAX_PADDED` nodes. Kept apart from the callers because not every platform has Triton.

A rejected proposal changes nothing, so a program does not walk through the nodes. It compares all fields with their
thresholds at once and goes straight to the next node that will flip. A sweep then has as many steps as flips, a few per
hundred nodes at low temperatures. A flip needs the node's row of the adjacency. As in `triton_decode`, a program has
only as many warps as are needed to hold a graph's fields. Products are not fused into sums, because that would round
differently from the reference.

Legend: B graphs, P padded nodes per graph, N = B * P rows, S chains per graph, K sweeps.
"""

import logging
import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from diffuco.ops import torch_anneal
from diffuco.ops.adjacency import CoverCosts, DenseAdjacency
from diffuco.ops.torch_anneal import GOLDEN, LEVEL_BITS, MIX_FACTORS, MIX_SHIFTS, TIE, chain_keys, exponentials
from diffuco.ops.triton_decode import MAX_PADDED, NODES_PER_WARP, WIDEST_READ, closed_row, row_of

_log = logging.getLogger(__name__)

COUNTS = ("num_chains", "num_graphs", "num_sweeps", "num_temperatures")
"""Arguments whose values do not lead to a new kernel, because compiling one takes longer than most runs."""

_STRIDE: tl.constexpr = tl.constexpr(GOLDEN)
_LEVEL_SHIFT: tl.constexpr = tl.constexpr(32 - LEVEL_BITS)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = (tl.constexpr(shift) for shift in MIX_SHIFTS)
_FACTOR_1, _FACTOR_2 = (tl.constexpr(factor) for factor in MIX_FACTORS)


def anneal_quadratic(
    states: Tensor, adjacency: DenseAdjacency, linear: Tensor, edge: float, pair: float, temperatures: Tensor, seed: int
) -> Tensor:
    """Anneal a quadratic energy. Reference: `torch_anneal`. [N, S] -> [N, S]."""
    if not _fits(adjacency):
        return torch_anneal.anneal_quadratic(states, adjacency, linear, edge, pair, temperatures, seed)
    inputs = (states, linear.double())
    return _launch(quadratic_kernel, states, adjacency, inputs, (edge, pair), temperatures, seed)


def anneal_cover(
    states: Tensor,
    adjacency: DenseAdjacency,
    penalty: float,
    temperatures: Tensor,
    seed: int,
    costs: CoverCosts | None = None,
) -> Tensor:
    """Anneal a cover energy. Reference: `torch_anneal`. [N, S] -> [N, S]."""
    if not _fits(adjacency):
        return torch_anneal.anneal_cover(states, adjacency, penalty, temperatures, seed, costs)
    table = temperatures if costs is None else torch.stack(costs)
    inputs, constants = (states, table.double()), (penalty, 0.0)
    has_costs = {"has_costs": costs is not None}
    return _launch(cover_kernel, states, adjacency, inputs, constants, temperatures, seed, **has_costs)


def _fits(adjacency: DenseAdjacency) -> bool:
    num_padded = adjacency.matrix.shape[1]
    if num_padded > MAX_PADDED:
        _log.debug("graphs padded to %d: annealed by torch_anneal", num_padded)
    return num_padded <= MAX_PADDED


def _launch(
    kernel: Any,
    states: Tensor,
    adjacency: DenseAdjacency,
    inputs: tuple[Tensor, ...],
    scalars: tuple[float, float],
    temperatures: Tensor,
    seed: int,
    **flags: bool,
) -> Tensor:
    """Run one program per graph and chain. [N, S] -> [N, S]."""
    num_chains, num_graphs, num_padded = states.shape[1], len(adjacency.sizes), adjacency.matrix.shape[1]
    annealed = torch.empty(states.shape, device=states.device)
    if not states.numel():
        return annealed.to(states.dtype)
    # Filled on the device, because copying from the host would wait for it.
    constants = torch.cat([annealed.new_full((1,), scalar, dtype=torch.float64) for scalar in (*scalars, TIE)])
    keys = chain_keys(seed, num_graphs, num_chains, states.device)
    tensors = (adjacency.matrix, adjacency.sizes, temperatures.double(), keys, exponentials(states.device), constants)
    block = triton.next_power_of_2(num_padded)
    vector = math.gcd(num_padded, WIDEST_READ)
    with torch.cuda.device_of(states):  # type: ignore[no-untyped-call]
        kernel[(num_graphs * num_chains,)](
            annealed,
            *(tensor.contiguous() for tensor in (*inputs, *tensors)),
            *(num_chains, num_graphs, len(temperatures), temperatures.shape[2], num_padded // vector),
            block=block,
            vector=vector,
            **flags,
            num_warps=max(1, block // NODES_PER_WARP),
            enable_fp_fusion=False,
        )
    return annealed.to(states.dtype)


@triton.jit(do_not_specialize=COUNTS)
def quadratic_kernel(
    annealed: tl.tensor,
    states: tl.tensor,
    linear: tl.tensor,
    matrix: tl.tensor,
    sizes: tl.tensor,
    temperatures: tl.tensor,
    keys: tl.tensor,
    table: tl.tensor,
    constants: tl.tensor,
    num_chains: tl.tensor,
    num_graphs: tl.tensor,
    num_sweeps: tl.tensor,
    num_temperatures: tl.tensor,
    num_reads: tl.tensor,
    block: tl.constexpr,
    vector: tl.constexpr,
) -> None:
    """Anneal one chain; `fields` leaves out the coupling of all pairs, which depends only on the number chosen."""
    num_padded = num_reads * vector
    program = tl.program_id(0).to(tl.int64)
    graph = program // num_chains
    first_cell = graph * num_padded * num_chains + program % num_chains  # of [N, S]
    size = tl.load(sizes + graph).to(tl.int32)
    edge, pair, tie = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    counter = tl.load(keys + program).to(tl.uint32)
    matrix += graph * num_padded * num_padded
    temperatures += graph * num_temperatures + program % num_temperatures  # one for all chains, or for each
    nodes = tl.arange(0, block)
    x = (tl.load(states + first_cell + nodes * num_chains, mask=nodes < size, other=0.0) != 0.0).to(tl.int32)
    coefficients = tl.load(linear + graph * num_padded + nodes, mask=nodes < size, other=0.0)
    fields = coefficients
    position = size * 0
    while position < size:  # the chosen nodes, one after the other
        node = tl.min(tl.where((nodes >= position) & (x != 0), nodes, size))
        row = row_of(matrix, tl.where(node < size, node, -1), nodes, size, num_padded, vector)
        fields += edge * row.to(tl.float64)
        position = node + 1
    num_chosen = tl.sum(x)
    best = x
    lowest = _quadratic_energy(x, fields, coefficients, pair, num_chosen)
    for sweep in range(0, num_sweeps):
        temperature = tl.load(temperatures + sweep * num_graphs * num_temperatures)
        thresholds = _thresholds(temperature, counter, nodes, table)
        counter += _STRIDE
        position = size * 0
        while position < size:
            changes = (1 - 2 * x).to(tl.float64) * (fields + pair * (num_chosen - x).to(tl.float64))
            flip = _next_flip(changes < thresholds, nodes, x, position, size)
            node, sign = flip // 2, tl.where(flip < 2 * size, 1 - 2 * (flip % 2), 0)
            row = row_of(matrix, tl.where(node < size, node, -1), nodes, size, num_padded, vector)
            fields += sign.to(tl.float64) * (edge * row.to(tl.float64))
            x += tl.where(nodes == node, sign, 0)
            num_chosen += sign
            position = node + 1
        energy = _quadratic_energy(x, fields, coefficients, pair, num_chosen)
        best = tl.where(energy < lowest - tie, x, best)
        lowest = tl.where(energy < lowest - tie, energy, lowest)
    tl.store(annealed + first_cell + nodes * num_chains, best.to(tl.float32), mask=nodes < num_padded)


@triton.jit(do_not_specialize=COUNTS)
def cover_kernel(
    annealed: tl.tensor,
    states: tl.tensor,
    costs: tl.tensor,
    matrix: tl.tensor,
    sizes: tl.tensor,
    temperatures: tl.tensor,
    keys: tl.tensor,
    table: tl.tensor,
    constants: tl.tensor,
    num_chains: tl.tensor,
    num_graphs: tl.tensor,
    num_sweeps: tl.tensor,
    num_temperatures: tl.tensor,
    num_reads: tl.tensor,
    block: tl.constexpr,
    vector: tl.constexpr,
    has_costs: tl.constexpr,
) -> None:
    """Anneal one chain; as in `numba_anneal`, a node's field is 1 - penalty * needs; `costs` [2, N] change it."""
    num_padded = num_reads * vector
    program = tl.program_id(0).to(tl.int64)
    graph = program // num_chains
    first_cell = graph * num_padded * num_chains + program % num_chains  # of [N, S]
    size = tl.load(sizes + graph).to(tl.int32)
    penalty, tie = tl.load(constants), tl.load(constants + 2)
    counter = tl.load(keys + program).to(tl.uint32)
    matrix += graph * num_padded * num_padded
    temperatures += graph * num_temperatures + program % num_temperatures  # one for all chains, or for each
    nodes = tl.arange(0, block)
    x = (tl.load(states + first_cell + nodes * num_chains, mask=nodes < size, other=0.0) != 0.0).to(tl.int32)
    cost_chosen, cost_uncovered = 1.0, 1
    if has_costs:  # otherwise they are not read
        costs += graph * num_padded
        cost_chosen = tl.load(costs + nodes, mask=nodes < size, other=0.0)
        cost_uncovered = tl.load(costs + num_graphs * num_padded + nodes, mask=nodes < size, other=0.0)
    covering = x * 0
    position = size * 0
    while position < size:  # the chosen nodes, one after the other
        node = tl.min(tl.where((nodes >= position) & (x != 0), nodes, size))
        closed = closed_row(matrix, tl.where(node < size, node, -1), nodes, size, num_padded, vector)
        covering += closed.to(tl.int32)
        position = node + 1
    needs = x * 0
    if has_costs:
        needs = needs.to(tl.float64)
    for node in range(0, size):
        closed = closed_row(matrix, node, nodes, size, num_padded, vector)
        is_needed = closed & (tl.sum(tl.where(nodes == node, covering, 0)) == x)
        needs += tl.where(is_needed, _at(cost_uncovered, nodes, node, has_costs), 0)
    best = x
    lowest = _cover_energy(x, covering, penalty, nodes < size, cost_chosen, cost_uncovered, has_costs)
    for sweep in range(0, num_sweeps):
        temperature = tl.load(temperatures + sweep * num_graphs * num_temperatures)
        thresholds = _thresholds(temperature, counter, nodes, table)
        counter += _STRIDE
        position = size * 0
        while position < size:
            changes = (1 - 2 * x).to(tl.float64) * (cost_chosen - penalty * needs.to(tl.float64))
            flip = _next_flip(changes < thresholds, nodes, x, position, size)
            node, sign = flip // 2, tl.where(flip < 2 * size, 1 - 2 * (flip % 2), 0)
            closed = closed_row(matrix, tl.where(node < size, node, -1), nodes, size, num_padded, vector)
            # The flip changes `needs` around nodes that no other chosen node covers, or a single one.
            others = covering - flip % 2
            affected = tl.where(closed & (others <= 1), others, 2)
            inner = size * 0
            while inner < size:
                code = tl.min(tl.where((nodes >= inner) & (affected < 2), 2 * nodes + affected, 2 * size))
                covered = code // 2
                around = closed_row(matrix, tl.where(covered < size, covered, -1), nodes, size, num_padded, vector)
                needed = tl.where(code % 2 == 0, 1, x)
                cost = _at(cost_uncovered, nodes, covered, has_costs)
                needs -= tl.where(around & (nodes != node), sign * needed * cost, 0)
                inner = covered + 1
            covering += tl.where(closed, sign, 0)
            x += tl.where(nodes == node, sign, 0)
            position = node + 1
        energy = _cover_energy(x, covering, penalty, nodes < size, cost_chosen, cost_uncovered, has_costs)
        best = tl.where(energy < lowest - tie, x, best)
        lowest = tl.where(energy < lowest - tie, energy, lowest)
    tl.store(annealed + first_cell + nodes * num_chains, best.to(tl.float32), mask=nodes < num_padded)


@triton.jit
def _next_flip(accepted: tl.tensor, nodes: tl.tensor, x: tl.tensor, position: tl.tensor, size: tl.tensor) -> tl.tensor:
    """Twice the first accepted node from a position on, plus its state; twice the size if there is none."""
    accepted = accepted & (nodes >= position) & (nodes < size)
    return tl.min(tl.where(accepted, 2 * nodes + x, 2 * size))


@triton.jit
def _quadratic_energy(
    x: tl.tensor, fields: tl.tensor, coefficients: tl.tensor, pair: tl.tensor, num_chosen: tl.tensor
) -> tl.tensor:
    """H(X): half of the fields of the chosen nodes, pairs included, plus half of their linear coefficients."""
    pairs = pair * (num_chosen * (num_chosen - 1)).to(tl.float64)
    return 0.5 * (tl.sum(x.to(tl.float64) * (fields + coefficients)) + pairs)


@triton.jit
def _cover_energy(
    x: tl.tensor,
    covering: tl.tensor,
    penalty: tl.tensor,
    is_node: tl.tensor,
    cost_chosen: tl.tensor,
    cost_uncovered: tl.tensor,
    has_costs: tl.constexpr,
) -> tl.tensor:
    """H(X): the cost of the chosen nodes plus the penalty for the uncovered ones."""
    uncovered = is_node & (covering == 0)
    if has_costs:
        return tl.sum(x.to(tl.float64) * cost_chosen) + penalty * tl.sum(tl.where(uncovered, cost_uncovered, 0.0))
    else:
        return tl.sum(x).to(tl.float64) + penalty * tl.sum(uncovered.to(tl.int32)).to(tl.float64)


@triton.jit
def _at(values: tl.tensor, nodes: tl.tensor, node: tl.tensor, is_tensor: tl.constexpr) -> tl.tensor:
    """The value of one node, or the value that all nodes share."""
    if is_tensor:
        return tl.sum(tl.where(nodes == node, values, 0.0))
    else:
        return values


@triton.jit
def _thresholds(temperature: tl.tensor, counter: tl.tensor, nodes: tl.tensor, table: tl.tensor) -> tl.tensor:
    """The change of energy below which each node flips in this sweep; `counter` is the chain's key plus its strides."""
    levels = mix(mix(counter) + nodes.to(tl.uint32) * _STRIDE) >> _LEVEL_SHIFT
    return temperature * tl.load(table + levels).to(tl.float64)


@triton.jit
def mix(bits: tl.tensor) -> tl.tensor:
    """The 32-bit mixer of the reference."""
    bits = (bits ^ (bits >> _SHIFT_1)) * _FACTOR_1
    bits = (bits ^ (bits >> _SHIFT_2)) * _FACTOR_2
    return bits ^ (bits >> _SHIFT_3)
