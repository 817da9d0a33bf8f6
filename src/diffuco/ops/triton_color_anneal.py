"""Simulated annealing of large sparse graphs on a GPU: a Triton kernel per colour, a sweep recorded and replayed.

The reference is `torch_color_anneal`, which gives the same states. Fields are not kept: the states of a node's chains
are bytes that lie together, so summing over the neighbours takes one short read for each of them. Every program adds up
what its flips change. Kept apart from the callers because not every platform has Triton.

Legend: N rows of all graphs, n nodes of one graph, S chains per graph, K sweeps.
"""

from functools import partial
from itertools import pairwise

import torch
import triton
import triton.language as tl
from torch import Tensor

from diffuco.ops.adjacency import CsrAdjacency
from diffuco.ops.capture import repeat
from diffuco.ops.classes import Chains, ClassedGraph, anneal_by_class
from diffuco.ops.torch_anneal import LEVEL_BITS, TIE, exponentials
from diffuco.ops.torch_color_anneal import color_classes
from diffuco.ops.triton_rows import KernelRows, columns_per_program, launches_for, neighbor_sum, random_bits, tile

_LEVEL_SHIFT: tl.constexpr = tl.constexpr(32 - LEVEL_BITS)


def anneal_quadratic(
    states: Tensor, adjacency: CsrAdjacency, linear: Tensor, edge: float, temperatures: Tensor, seed: int
) -> Tensor:
    """Anneal a quadratic energy. Reference: `torch_color_anneal`. [N, S] -> [N, S]."""
    with torch.cuda.device_of(states):  # type: ignore[no-untyped-call]
        anneal = partial(anneal_graph, linear, edge)
        return anneal_by_class(states, adjacency, color_classes(adjacency), temperatures, seed, anneal)


def anneal_graph(
    linear: Tensor, edge: float, states: Tensor, graph: ClassedGraph, temperatures: Tensor, keys: Tensor
) -> Chains:
    """Anneal the chains of one graph. [n, S], [K, C], [S] -> [n, S], [S]."""
    num_chains, device = states.shape[1], states.device
    x = states.to(torch.int8).contiguous()
    rows, columns = KernelRows.of(graph.adjacency), columns_per_program(num_chains)
    launches = launches_for(graph.adjacency.indptr.diff(), list(pairwise(graph.starts)), num_chains)
    # A tensor, because Triton would turn the number into float32.
    factor = torch.full((1,), edge, dtype=torch.float64, device=device)
    of_chains = temperatures.expand(-1, num_chains).contiguous()
    inputs = (linear[graph.rows].double(), factor, of_chains, keys.contiguous(), exponentials(device))
    num_programs = sum(launch.num_programs for launch in launches)
    changes = torch.empty((num_programs, num_chains), dtype=torch.float64, device=device)
    best, energy = x.clone(), torch.zeros(num_chains, dtype=torch.float64, device=device)
    lowest, sweep = energy.clone(), torch.zeros(1, dtype=torch.int64, device=device)

    def take_sweep() -> None:
        first_program = 0
        for launch in launches:
            flip_kernel[(launch.num_programs, triton.cdiv(num_chains, columns))](
                *(x, changes, *rows.arguments, *inputs, sweep),
                *(launch.first_row, launch.last_row, first_program, num_chains),
                has_weights=rows.weights is not None,
                tile_rows=launch.rows_per_program,
                tile_neighbors=launch.neighbors_at_once,
                tile_columns=columns,
                enable_fp_fusion=False,
            )
            first_program += launch.num_programs
        energy.add_(changes.sum(0))
        is_better = energy < lowest - TIE
        torch.where(is_better, x, best, out=best)
        torch.where(is_better, energy, lowest, out=lowest)
        sweep.add_(1)

    repeat(take_sweep, len(temperatures), device)
    return Chains(best, lowest)


@triton.jit(do_not_specialize=("first_row", "last_row", "first_program"))
def flip_kernel(
    x: tl.tensor,
    changes: tl.tensor,
    indptr: tl.tensor,
    indices: tl.tensor,
    weights: tl.tensor,
    linear: tl.tensor,
    edge: tl.tensor,
    temperatures: tl.tensor,
    keys: tl.tensor,
    table: tl.tensor,
    sweep: tl.tensor,
    first_row: tl.tensor,
    last_row: tl.tensor,
    first_program: tl.tensor,
    num_chains: tl.tensor,
    has_weights: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_neighbors: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    """Ask some nodes of one colour whether to flip, and write by how much that changes the energy of each chain."""
    rows, columns, is_row, is_chain, at, there = tile(first_row, last_row, num_chains, tile_rows, tile_columns)
    summed = neighbor_sum(
        *(x, indptr, indices, weights, rows, is_row, columns, num_chains),
        *(tile_rows, tile_neighbors, tile_columns, has_weights, tl.int32, tl.float64),
    )
    field = tl.load(linear + rows, mask=is_row, other=0.0)[:, None] + tl.load(edge) * summed
    state = tl.load(x + at, mask=there, other=0)
    change = (1 - 2 * state.to(tl.int32)).to(tl.float64) * field
    number = tl.load(sweep)
    levels = random_bits(keys, number, rows, columns, is_chain) >> _LEVEL_SHIFT
    temperature = tl.load(temperatures + number * num_chains + columns, mask=is_chain, other=0.0)
    threshold = temperature[None, :] * tl.load(table + levels).to(tl.float64)
    accepted = there & (change < threshold)
    tl.store(x + at, 1 - state, mask=accepted)
    program = (first_program + tl.program_id(0)).to(tl.int64)
    tl.store(changes + program * num_chains + columns, tl.sum(tl.where(accepted, change, 0.0), 0), mask=is_chain)
