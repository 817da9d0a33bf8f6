"""A step of RLSA on a GPU as one Triton kernel: all that follows the local fields. The reference is `rlsa.take_step`.

Legend: B graphs, P padded nodes per graph, N = B * P rows, S chains per graph.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

ELEMENTS_PER_WARP = 1024


def take_step(
    x: Tensor,
    best: Tensor,
    lowest: Tensor,
    field: Tensor,
    linear: Tensor | None,
    energies: Tensor | None,
    uniform: Tensor,
    temperatures: Tensor,
    ranks: Tensor,
    sizes: Tensor,
) -> Tensor:
    """The next states; `best` [N, S] and `lowest` [B, S] are brought up to date in place. [N, S] -> [N, S].

    A quadratic energy is computed from the fields and its `linear` terms [N], any other is given as `energies` [B, S].
    `temperatures` and `ranks` are those of each graph [B].
    """
    num_graphs, num_chains = lowest.shape
    num_padded = len(x) // num_graphs
    width = triton.next_power_of_2(num_padded)
    num_warps = 4 if width <= 1024 else 8
    chains = max(1, min(triton.next_power_of_2(num_chains), num_warps * ELEMENTS_PER_WARP // width))
    following = torch.empty_like(x)
    step_kernel[(num_graphs, triton.cdiv(num_chains, chains))](
        *(x, best, lowest, field, x if linear is None else linear, x if energies is None else energies),
        *(uniform, temperatures, ranks, sizes, following, num_padded, num_chains),
        IS_QUADRATIC=linear is not None,
        WIDTH=width,
        CHAINS=chains,
        num_warps=num_warps,
    )
    return following


@triton.jit
def step_kernel(
    x: tl.tensor,
    best: tl.tensor,
    lowest: tl.tensor,
    field: tl.tensor,
    linear: tl.tensor,
    energies: tl.tensor,
    uniform: tl.tensor,
    temperatures: tl.tensor,
    ranks: tl.tensor,
    sizes: tl.tensor,
    following: tl.tensor,
    num_padded: tl.tensor,
    num_chains: tl.tensor,
    IS_QUADRATIC: tl.constexpr,
    WIDTH: tl.constexpr,
    CHAINS: tl.constexpr,
) -> None:
    """Some chains of one graph."""
    graph = tl.program_id(0).to(tl.int64)
    nodes = tl.arange(0, WIDTH)
    chains = tl.program_id(1) * CHAINS + tl.arange(0, CHAINS)
    rows = graph * num_padded + nodes
    is_chain = chains < num_chains
    is_node = nodes < tl.load(sizes + graph)
    there = is_node[:, None] & is_chain[None, :]
    at = rows[:, None] * num_chains + chains[None, :]
    state = tl.load(x + at, mask=there, other=0.0)
    slope = tl.load(field + at, mask=there, other=0.0)

    # Keep the best state of every chain.
    of_chain = graph * num_chains + chains
    if IS_QUADRATIC:
        own = tl.load(linear + rows, mask=is_node, other=0.0)
        energy = tl.sum(0.5 * state * (own[:, None] + slope), 0)
    else:
        energy = tl.load(energies + of_chain, mask=is_chain, other=0.0)
    before = tl.load(lowest + of_chain, mask=is_chain, other=0.0)
    is_lower = energy < before
    tl.store(lowest + of_chain, energy, mask=is_chain & is_lower)
    tl.store(best + at, state, mask=there & is_lower[None, :])

    # The gain of the given rank, counting equal gains as often as they occur.
    gain = tl.where(there, (2 * state - 1) * slope, float("-inf"))
    rank = tl.load(ranks + graph)
    threshold = tl.max(gain, 0)
    for _ in range(1, rank):
        count = tl.sum((gain >= threshold[None, :]).to(tl.int32), 0)
        below = tl.max(tl.where(gain < threshold[None, :], gain, float("-inf")), 0)
        threshold = tl.where(count < rank, below, threshold)

    # Flip.
    excess = tl.where(there, gain - tl.where(is_chain, threshold, 0.0)[None, :], 0.0) / tl.load(temperatures + graph)
    drawn = tl.load(uniform + at, mask=there, other=1.0)
    flips = drawn < 1 / (1 + tl.exp(-excess))
    is_row = (nodes < num_padded)[:, None] & is_chain[None, :]
    tl.store(following + at, tl.where(flips & there, 1 - state, state), mask=is_row)
