"""Simulated annealing of covers of large sparse graphs on a GPU: two Triton kernels per group, a sweep replayed.

The reference is `torch_cover_anneal`, which gives the same states. The first kernel asks the nodes of a group and lets
those that want to flip claim the nodes where they could do harm together; the second flips those whose claims all hold.
A claim has the number of the group and sweep in its upper bits, so the largest is always of today, and none is erased.
The bit below tells choosing from leaving: those who choose claim nodes that nobody covers, those who leave claim nodes
that two cover, so no node is claimed by both. Kept apart from the callers because not every platform has Triton.

Legend: N rows of all graphs, n nodes of one graph, S chains per graph, K sweeps.
"""

from functools import partial
from itertools import pairwise

import torch
import triton
import triton.language as tl
from torch import Tensor

from diffuco.ops.adjacency import CoverCosts, CsrAdjacency
from diffuco.ops.capture import repeat
from diffuco.ops.classes import Chains, ClassedGraph, anneal_by_class
from diffuco.ops.reference import csr_neighbor_sum
from diffuco.ops.torch_anneal import LEVEL_BITS, TIE, exponentials
from diffuco.ops.torch_cover_anneal import closed, group_classes
from diffuco.ops.triton_rows import TILE, KernelRows, columns_per_program, launches_for, random_bits, tile

_LEVEL_SHIFT: tl.constexpr = tl.constexpr(32 - LEVEL_BITS)


def anneal_cover(
    states: Tensor,
    adjacency: CsrAdjacency,
    penalty: float,
    temperatures: Tensor,
    seed: int,
    costs: CoverCosts | None = None,
) -> Tensor:
    """Anneal a cover energy. Reference: `torch_cover_anneal`. [N, S] -> [N, S]."""
    with torch.cuda.device_of(states):  # type: ignore[no-untyped-call]
        anneal = partial(anneal_graph, penalty, costs)
        return anneal_by_class(states, adjacency, group_classes(adjacency), temperatures, seed, anneal)


def anneal_graph(
    penalty: float,
    costs: CoverCosts | None,
    states: Tensor,
    graph: ClassedGraph,
    temperatures: Tensor,
    keys: Tensor,
) -> Chains:
    """Anneal the chains of one graph. [n, S], [K, C], [S] -> [n, S], [S]."""
    num_chains, device = states.shape[1], states.device
    x, covers, columns = states.to(torch.int8).contiguous(), closed(graph.adjacency), columns_per_program(num_chains)
    rows, spans = KernelRows.of(covers), list(pairwise(graph.starts))
    launches = [launches_for(covers.indptr.diff(), [span], num_chains) for span in spans]
    covering = csr_neighbor_sum(states.float(), covers.indptr, covers.indices, None).to(torch.int32).contiguous()
    wants, claims = torch.zeros_like(x), torch.zeros(x.shape, dtype=torch.int64, device=device)
    ones = torch.ones(len(x), dtype=torch.float64, device=device)
    chosen, uncovered = (ones, ones) if costs is None else (cost[graph.rows].double() for cost in costs)
    # A tensor, because Triton would turn the number into float32.
    factor = torch.full((1,), penalty, dtype=torch.float64, device=device)
    of_chains = temperatures.expand(-1, num_chains).contiguous()
    sweep = torch.zeros(1, dtype=torch.int64, device=device)
    inputs = (chosen, uncovered, factor, of_chains, exponentials(device))
    rows_at_once = TILE // columns
    energies = torch.empty((triton.cdiv(len(x), rows_at_once), num_chains), dtype=torch.float64, device=device)

    def energy() -> Tensor:
        energy_kernel[(len(energies), triton.cdiv(num_chains, columns))](
            *(x, covering, chosen, uncovered, factor, energies, len(x), num_chains),
            tile_rows=rows_at_once,
            tile_columns=columns,
            enable_fp_fusion=False,
        )
        return energies.sum(0)

    best, start = x.clone(), energy()
    lowest = start.clone()

    def take_sweep() -> None:
        for group, of_group in enumerate(launches):
            for kernel, arguments in ((ask_kernel, inputs), (flip_kernel, ())):
                for launch in of_group:
                    kernel[(launch.num_programs, triton.cdiv(num_chains, columns))](
                        *(x, covering, wants, claims, rows.indptr, rows.indices, keys, sweep, *arguments),
                        *(launch.first_row, launch.last_row, group, len(launches), num_chains),
                        **({"has_costs": costs is not None} if kernel is ask_kernel else {}),
                        tile_rows=launch.rows_per_program,
                        tile_neighbors=launch.neighbors_at_once,
                        tile_columns=columns,
                        enable_fp_fusion=False,
                    )
        now = energy()
        is_better = now < lowest - TIE
        torch.where(is_better, x, best, out=best)
        torch.where(is_better, now, lowest, out=lowest)
        sweep.add_(1)

    repeat(take_sweep, len(temperatures), device)
    return Chains(best, lowest - start)


@triton.jit(do_not_specialize=("first_row", "last_row", "group"))
def ask_kernel(
    x: tl.tensor,
    covering: tl.tensor,
    wants: tl.tensor,
    claims: tl.tensor,
    indptr: tl.tensor,
    indices: tl.tensor,
    keys: tl.tensor,
    sweep: tl.tensor,
    chosen: tl.tensor,
    uncovered: tl.tensor,
    penalty: tl.tensor,
    temperatures: tl.tensor,
    table: tl.tensor,
    first_row: tl.tensor,
    last_row: tl.tensor,
    group: tl.tensor,
    num_groups: tl.tensor,
    num_chains: tl.tensor,
    has_costs: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_neighbors: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    """Ask some nodes of a group whether to flip; those that want to claim what only one of them may change."""
    rows, columns, is_row, is_chain, at, there = tile(first_row, last_row, num_chains, tile_rows, tile_columns)
    state = tl.load(x + at, mask=there, other=0).to(tl.int32)
    begin = tl.load(indptr + rows, mask=is_row, other=0)
    end = tl.load(indptr + rows + 1, mask=is_row, other=0)
    needs = tl.zeros([tile_rows, tile_columns], tl.float64)
    for first in range(0, tl.max(end - begin), tile_neighbors):
        covered, inside = covered_by(indices, begin, end, first, tile_neighbors)
        mask = inside[:, :, None] & is_chain[None, None, :]
        count = tl.load(covering + (covered * num_chains)[:, :, None] + columns[None, None, :], mask=mask, other=-1)
        is_alone = count == state[:, None, :]
        if has_costs:
            cost = tl.load(uncovered + covered, mask=inside, other=0.0)
            needs += tl.sum(tl.where(is_alone, cost[:, :, None], 0.0), 1)
        else:
            needs += tl.sum(is_alone.to(tl.int32), 1).to(tl.float64)
    number = tl.load(sweep)
    bits = random_bits(keys, number, rows, columns, is_chain)
    temperature = tl.load(temperatures + number * num_chains + columns, mask=is_chain, other=0.0)
    threshold = temperature[None, :] * tl.load(table + (bits >> _LEVEL_SHIFT)).to(tl.float64)
    cost_chosen = tl.load(chosen + rows, mask=is_row, other=0.0)[:, None]
    change = (1 - 2 * state).to(tl.float64) * (cost_chosen - tl.load(penalty) * needs)
    want = there & (change < threshold)
    tl.store(wants + at, want.to(tl.int8), mask=there)
    if tl.max(tl.max(want.to(tl.int32), 1), 0) > 0:
        stamp = stamps(number, group, num_groups, state, bits)
        for first in range(0, tl.max(end - begin), tile_neighbors):
            covered, inside = covered_by(indices, begin, end, first, tile_neighbors)
            mask = inside[:, :, None] & want[:, None, :]
            place = (covered * num_chains)[:, :, None] + columns[None, None, :]
            count = tl.load(covering + place, mask=mask, other=-1)
            is_disputed = mask & (count == 2 * state[:, None, :])
            tl.atomic_max(claims + place, tl.broadcast_to(stamp[:, None, :], place.shape), mask=is_disputed)


@triton.jit(do_not_specialize=("first_row", "last_row", "group"))
def flip_kernel(
    x: tl.tensor,
    covering: tl.tensor,
    wants: tl.tensor,
    claims: tl.tensor,
    indptr: tl.tensor,
    indices: tl.tensor,
    keys: tl.tensor,
    sweep: tl.tensor,
    first_row: tl.tensor,
    last_row: tl.tensor,
    group: tl.tensor,
    num_groups: tl.tensor,
    num_chains: tl.tensor,
    tile_rows: tl.constexpr,
    tile_neighbors: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    """Flip those nodes of a group that want to and have lost no claim."""
    rows, columns, is_row, is_chain, at, there = tile(first_row, last_row, num_chains, tile_rows, tile_columns)
    want = tl.load(wants + at, mask=there, other=0) != 0
    if tl.max(tl.max(want.to(tl.int32), 1), 0) > 0:
        state = tl.load(x + at, mask=want, other=0).to(tl.int32)
        number = tl.load(sweep)
        bits = random_bits(keys, number, rows, columns, is_chain)
        stamp = stamps(number, group, num_groups, state, bits)
        begin = tl.load(indptr + rows, mask=is_row, other=0)
        end = tl.load(indptr + rows + 1, mask=is_row, other=0)
        num_lost = tl.zeros([tile_rows, tile_columns], tl.int32)
        for first in range(0, tl.max(end - begin), tile_neighbors):
            covered, inside = covered_by(indices, begin, end, first, tile_neighbors)
            place = (covered * num_chains)[:, :, None] + columns[None, None, :]
            claim = tl.load(claims + place, mask=inside[:, :, None] & want[:, None, :], other=0)
            mine = stamp[:, None, :]
            is_lost = (claim > mine) & ((claim >> 32) == (mine >> 32))
            num_lost += tl.sum(is_lost.to(tl.int32), 1)
        flips = want & (num_lost == 0)
        tl.store(x + at, (1 - state).to(tl.int8), mask=flips)
        sign = 1 - 2 * state
        for first in range(0, tl.max(end - begin), tile_neighbors):
            covered, inside = covered_by(indices, begin, end, first, tile_neighbors)
            place = (covered * num_chains)[:, :, None] + columns[None, None, :]
            signs = tl.broadcast_to(sign[:, None, :], place.shape)
            tl.atomic_add(covering + place, signs, mask=inside[:, :, None] & flips[:, None, :])


@triton.jit(do_not_specialize=("num_rows",))
def energy_kernel(
    x: tl.tensor,
    covering: tl.tensor,
    chosen: tl.tensor,
    uncovered: tl.tensor,
    penalty: tl.tensor,
    energies: tl.tensor,
    num_rows: tl.tensor,
    num_chains: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    """Write the energy of some nodes of each chain."""
    rows, columns, is_row, is_chain, at, there = tile(0, num_rows, num_chains, tile_rows, tile_columns)
    is_chosen = tl.load(x + at, mask=there, other=0) != 0
    is_uncovered = tl.load(covering + at, mask=there, other=1) == 0
    cost_chosen = tl.load(chosen + rows, mask=is_row, other=0.0)[:, None]
    cost_uncovered = tl.load(penalty) * tl.load(uncovered + rows, mask=is_row, other=0.0)[:, None]
    energy = tl.where(is_chosen, cost_chosen, 0.0) + tl.where(is_uncovered, cost_uncovered, 0.0)
    tl.store(energies + tl.program_id(0).to(tl.int64) * num_chains + columns, tl.sum(energy, 0), mask=is_chain)


@triton.jit
def covered_by(
    indices: tl.tensor, begin: tl.tensor, end: tl.tensor, first: tl.tensor, tile_neighbors: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Some of the nodes that each row covers, and which of them there are."""
    at = begin[:, None] + first + tl.arange(0, tile_neighbors)[None, :]
    inside = at < end[:, None]
    return tl.load(indices + at, mask=inside, other=0).to(tl.int64), inside


@triton.jit
def stamps(number: tl.tensor, group: tl.tensor, num_groups: tl.tensor, state: tl.tensor, bits: tl.tensor) -> tl.tensor:
    """What a node claims with: larger for a later group, and then for larger bits."""
    turn = number * num_groups + group + 1
    return (turn << 33) | (state.to(tl.int64) << 32) | bits.to(tl.int64)
