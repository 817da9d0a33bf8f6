"""Discrete simulated bifurcation on the CPU: compiled loops over one agent, threads over graphs and agents.

The reference is `torch_bifurcation`, which takes the same steps. Fields depend on the signs of the positions alone, so
they are kept up to date: a step costs a few operations per node, and a walk over the neighbours of each node whose sign
changes.

Legend: N rows of all graphs, S agents per graph, E directed edges, K steps.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diffuco.ops.adjacency import CsrAdjacency
from diffuco.ops.compilation import compiled
from diffuco.ops.threads import on_all_threads

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def bifurcate_quadratic(
    positions: Tensor,
    momenta: Tensor,
    adjacency: CsrAdjacency,
    linear: Tensor,
    edge: float,
    pair: float,
    strengths: Tensor,
    pumps: Tensor,
) -> tuple[Tensor, Tensor]:
    """Positions and momenta after all steps. Reference: `torch_bifurcation`. [N, S], [N, S] -> [N, S], [N, S]."""
    indptr, indices = adjacency.indptr.numpy(), adjacency.indices.numpy()
    weights = torch.ones(len(indices)) if adjacency.weights is None else adjacency.weights.float()
    couplings, coefficients = (edge * weights).numpy(), linear.float().numpy()
    q, p = (
        values.T.to(torch.float32, copy=True, memory_format=torch.contiguous_format) for values in (positions, momenta)
    )
    of_graphs, schedule = strengths.float().numpy(), pumps.float().numpy()

    def bifurcate(q: Floats, p: Floats, first_row: int, strength: np.float32) -> None:
        take_steps(q, p, first_row, indptr, indices, couplings, coefficients, np.float32(pair), strength, schedule)

    spans = zip(adjacency.row_starts.tolist(), adjacency.sizes.tolist(), of_graphs, strict=True)
    items = [
        (q_of_agent[start : start + size], p_of_agent[start : start + size], start, strength)
        for start, size, of_agents in spans
        for q_of_agent, p_of_agent, strength in zip(q.numpy(), p.numpy(), of_agents, strict=True)
    ]
    on_all_threads(bifurcate, items)
    return q.T, p.T


@compiled
def take_steps(
    q: Floats,
    p: Floats,
    first_row: int,
    indptr: Ints,
    indices: Ints,
    couplings: Floats,
    linear: Floats,
    pair: np.float32,
    strength: np.float32,
    pumps: Floats,
) -> None:
    """Move one agent of one graph, in place; `fields` leaves out the coupling of all pairs."""
    num_nodes, zero, one = len(q), np.float32(0), np.float32(1)
    fields = linear[first_row : first_row + num_nodes].copy()
    x = np.zeros(num_nodes, np.int8)
    num_chosen = update_fields(q, x, fields, first_row, indptr, indices, couplings)
    for step in range(len(pumps)):
        inward = one - pumps[step]
        if pair == zero:
            for node in range(num_nodes):
                momentum = p[node] - inward * q[node] - strength * fields[node]
                position = q[node] + momentum
                p[node] = zero if abs(position) > one else momentum
                q[node] = min(max(position, -one), one)
        else:
            for node in range(num_nodes):
                field = fields[node] + pair * np.float32(num_chosen - x[node])
                momentum = p[node] - inward * q[node] - strength * field
                position = q[node] + momentum
                p[node] = zero if abs(position) > one else momentum
                q[node] = min(max(position, -one), one)
        num_chosen += update_fields(q, x, fields, first_row, indptr, indices, couplings)


@compiled
def update_fields(
    q: Floats, x: NDArray[np.int8], fields: Floats, first_row: int, indptr: Ints, indices: Ints, couplings: Floats
) -> int:
    """Bring states and fields up to date with the signs of the positions; by how many nodes more are chosen."""
    gained = 0
    for node in range(len(q)):
        state = q[node] > 0
        if state == x[node]:
            continue
        sign = 1 if state else -1
        x[node] = state
        gained += sign
        for e in range(indptr[first_row + node], indptr[first_row + node + 1]):
            fields[indices[e] - first_row] += np.float32(sign) * couplings[e]
    return gained
