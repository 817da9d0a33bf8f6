"""Discrete simulated bifurcation of sparse graphs on a GPU: a step is one or two Triton kernels, recorded and replayed.

The reference is `torch_bifurcation`, which takes the same steps up to the order of sums. It also serves energies that
couple all pairs. States are bytes, so that those of a neighbour's agents are one read; they are kept twice, as all
nodes move at once. Kept apart from the callers because not every platform has Triton.

Legend: B graphs, N rows of all graphs, S agents per graph, K steps.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from diffuco.ops.adjacency import CsrAdjacency
from diffuco.ops.capture import repeat
from diffuco.ops.triton_rows import KernelRows, columns_per_program, launches_for, neighbor_sum


def bifurcate_quadratic(
    positions: Tensor,
    momenta: Tensor,
    adjacency: CsrAdjacency,
    linear: Tensor,
    edge: float,
    strengths: Tensor,
    pumps: Tensor,
) -> tuple[Tensor, Tensor]:
    """Positions and momenta after all steps. Reference: `torch_bifurcation`. [N, S], [N, S] -> [N, S], [N, S]."""
    num_rows, num_agents = positions.shape
    if not positions.numel():
        return positions.float().clone(), momenta.float().clone()
    degrees, order = adjacency.indptr.diff().sort(descending=True, stable=True)
    rows = KernelRows.of(adjacency.reordered(order))
    graphs = torch.arange(len(adjacency.sizes), dtype=torch.int32, device=order.device)
    graph_of_row = graphs.repeat_interleave(adjacency.sizes, output_size=num_rows)[order]
    q, p = (values.float()[order].contiguous() for values in (positions, momenta))
    inputs = (linear.float()[order].contiguous(), graph_of_row, strengths.float().contiguous(), pumps.float())
    before, after = (q > 0).to(torch.int8), torch.empty_like(q, dtype=torch.int8)
    step = torch.zeros(1, dtype=torch.int64, device=q.device)
    launches = launches_for(degrees, [(0, num_rows)], num_agents)
    columns = columns_per_program(num_agents)

    def take_step(before: Tensor, after: Tensor) -> None:
        for launch in launches:
            step_kernel[(launch.num_programs, triton.cdiv(num_agents, columns))](
                *(q, p, before, after, *rows.arguments, *inputs, step),
                *(edge, launch.first_row, launch.last_row, num_agents),
                has_weights=rows.weights is not None,
                tile_rows=launch.rows_per_program,
                tile_neighbors=launch.neighbors_at_once,
                tile_columns=columns,
            )
        step.add_(1)

    def take_two_steps() -> None:
        take_step(before, after)
        take_step(after, before)

    with torch.cuda.device_of(q):  # type: ignore[no-untyped-call]
        repeat(take_two_steps, len(pumps) // 2, q.device)
        if len(pumps) % 2:
            take_step(before, after)
    moved, pushed = torch.empty_like(q), torch.empty_like(p)
    moved[order], pushed[order] = q, p
    return moved, pushed


@triton.jit(do_not_specialize=("first_row", "last_row"))
def step_kernel(
    q: tl.tensor,
    p: tl.tensor,
    before: tl.tensor,
    after: tl.tensor,
    indptr: tl.tensor,
    indices: tl.tensor,
    weights: tl.tensor,
    linear: tl.tensor,
    graph_of_row: tl.tensor,
    strengths: tl.tensor,
    pumps: tl.tensor,
    step: tl.tensor,
    edge: tl.tensor,
    first_row: tl.tensor,
    last_row: tl.tensor,
    num_agents: tl.tensor,
    has_weights: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_neighbors: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    """Move some rows; `before` and `after` are the states of all rows [N, S] before and after the step."""
    rows = (first_row + tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)).to(tl.int64)
    columns = tl.program_id(1) * tile_columns + tl.arange(0, tile_columns)
    is_row = rows < last_row
    there = is_row[:, None] & (columns < num_agents)[None, :]
    summed = neighbor_sum(
        *(before, indptr, indices, weights, rows, is_row, columns, num_agents),
        *(tile_rows, tile_neighbors, tile_columns, has_weights, tl.int32, tl.float32),
    )
    field = tl.load(linear + rows, mask=is_row, other=0.0)[:, None] + edge * summed
    graphs = tl.load(graph_of_row + rows, mask=is_row, other=0)
    strength = tl.load(strengths + graphs[:, None] * num_agents + columns[None, :], mask=there, other=0.0)
    pump = tl.load(pumps + tl.load(step))
    at = rows[:, None] * num_agents + columns[None, :]
    position = tl.load(q + at, mask=there, other=0.0)
    momentum = tl.load(p + at, mask=there, other=0.0) - (1 - pump) * position - strength * field
    position += momentum
    tl.store(p + at, tl.where(tl.abs(position) > 1, 0.0, momentum), mask=there)
    tl.store(q + at, tl.minimum(tl.maximum(position, -1.0), 1.0), mask=there)
    tl.store(after + at, (position > 0).to(tl.int8), mask=there)
