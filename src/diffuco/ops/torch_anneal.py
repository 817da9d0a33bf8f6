"""Simulated annealing by single flips in plain torch: one loop over sweeps and nodes for all graphs and chains.

This is the reference for `numba_anneal` and `triton_anneal`, which give the same states. It also anneals dense batches
on a GPU if Triton does not work. A sweep proposes every node of a chain once, in order. A proposal that changes the
energy by d is accepted if d < temperature * e, where e is exponentially distributed (the logarithm of Metropolis's
rule). The result is the best state at the end of any sweep, or the start if none is better.

The random number e is a hash of seed, graph, chain, sweep and node, so the order in which they come does not matter. It
takes one of `NUM_LEVELS` values from a table: logarithms differ in their last bits between devices, a table does not.

Legend: B graphs, P padded nodes per graph, N = B * P rows, S chains per graph, K sweeps.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from diffuco.ops.adjacency import CoverCosts, DenseAdjacency

TIE = 1e-9
"""A state is better than another if its energy is lower by more than this."""
LEVEL_BITS = 12
NUM_LEVELS = 2**LEVEL_BITS
GOLDEN = 0x9E3779B9
"""Counters are multiplied by this before they are mixed; it is 2^32 over the golden ratio."""
MIX_SHIFTS, MIX_FACTORS = (16, 15, 16), (0x7FEB352D, 0x846CA68B)
"""Constants of the 32-bit mixer; each of its output bits depends on every input bit about equally."""


def anneal_quadratic(
    states: Tensor,
    adjacency: DenseAdjacency,
    linear: Tensor,
    edge: float,
    pair: float,
    temperatures: Tensor,
    seed: int,
) -> Tensor:
    """Anneal H(X) = sum_i linear_i x_i + edge * sum_(i,j) w_ij x_i x_j + pair * sum_(i<j) x_i x_j.

    `temperatures` [K, B, C] has a value above 0 for every sweep and graph, for all chains (C = 1) or for each (C = S).
    [N, S] -> [N, S], of the same type.
    """
    num_graphs, num_padded, _ = adjacency.matrix.shape
    coefficients = linear.double().view(num_graphs, num_padded)

    def field(x: Tensor, node: int) -> Tensor:
        row = adjacency.matrix[:, node, :, None].double()
        others = x.sum(1) - x[:, node]
        return coefficients[:, node, None] + edge * (x.transpose(1, 2) @ row)[..., 0] + pair * others

    return _anneal(states, adjacency, field, temperatures, seed)


def anneal_cover(
    states: Tensor,
    adjacency: DenseAdjacency,
    penalty: float,
    temperatures: Tensor,
    seed: int,
    costs: CoverCosts | None = None,
) -> Tensor:
    """Anneal H(X) = sum_i chosen_i x_i + penalty * sum_i uncovered_i prod_(j in i and its neighbours) (1 - x_j).

    Without `costs`, nodes cost 1. `temperatures` [K, B, C] are those of `anneal_quadratic`.
    [N, S] -> [N, S], of the same type.
    """
    closed = ((adjacency.matrix != 0) | torch.eye(adjacency.matrix.shape[1], device=states.device).bool()).double()
    is_node = adjacency.is_node[..., None]
    ones = torch.ones(len(states), device=states.device)
    table: Tensor = torch.stack(costs or (ones, ones)).double().view(2, len(adjacency.sizes), -1, 1)
    cost_chosen, cost_uncovered = table.unbind()

    def field(x: Tensor, node: int) -> Tensor:
        covering = closed @ x  # chosen nodes that cover each node
        only_this = (covering - x[:, node, None] == 0) & (closed[:, node, :, None] != 0) & is_node
        return cost_chosen[:, node] - penalty * (cost_uncovered * only_this).sum(1)

    return _anneal(states, adjacency, field, temperatures, seed)


def chain_keys(seed: int, num_graphs: int, num_chains: int, device: torch.device) -> Tensor:
    """Keys that give every chain random numbers of its own. [B, S], 32 bits in int64.

    >>> chain_keys(0, 2, 2, torch.device("cpu")).unique().numel()
    4
    """
    graphs = torch.arange(num_graphs, device=device)[:, None]
    chains = torch.arange(num_chains, device=device)
    first = mix(torch.tensor([(seed & 0xFFFFFFFF) ^ 0x5851F42D, (seed >> 32) & 0xFFFFFFFF], device=device))
    return mix(mix(first[0] + mix(first[1] + graphs * GOLDEN & 0xFFFFFFFF)) + chains * GOLDEN & 0xFFFFFFFF)


def levels_of(keys: Tensor, sweep: int, num_nodes: int) -> Tensor:
    """Entry of the table that each node of a chain gets in a sweep. [B, S] -> [B, num_nodes, S]."""
    return random_bits(keys, sweep, num_nodes) >> (32 - LEVEL_BITS)


def random_bits(keys: Tensor, sweep: int, num_nodes: int) -> Tensor:
    """32 bits for each node of a chain in a sweep, different for all of them. [B, S] -> [B, num_nodes, S]."""
    sweep_keys = mix(keys + sweep * GOLDEN & 0xFFFFFFFF)
    nodes = torch.arange(num_nodes, device=keys.device)[:, None]
    return mix(sweep_keys[:, None] + nodes * GOLDEN & 0xFFFFFFFF)


def exponentials(device: torch.device) -> Tensor:
    """The table: quantiles of the exponential distribution, the largest about 9. [NUM_LEVELS], float32."""
    uniform = (torch.arange(NUM_LEVELS, dtype=torch.float64) + 0.5) / NUM_LEVELS
    quantiles: Tensor = -uniform.log()
    return quantiles.float().to(device)


def mix(bits: Tensor) -> Tensor:
    """A one-to-one function of 32 bits, held in int64, that looks random."""
    bits = bits & 0xFFFFFFFF
    for shift, factor in zip(MIX_SHIFTS[:2], MIX_FACTORS, strict=True):
        bits = ((bits ^ (bits >> shift)) * factor) & 0xFFFFFFFF
    return bits ^ (bits >> MIX_SHIFTS[2])


def _anneal(
    states: Tensor,
    adjacency: DenseAdjacency,
    field: Callable[[Tensor, int], Tensor],
    temperatures: Tensor,
    seed: int,
) -> Tensor:
    """The annealing loop; `field(x, node)` is the energy with the node less that without it. [B, P, S] -> [B, S]."""
    num_graphs, num_padded, _ = adjacency.matrix.shape
    num_chains = states.shape[1]
    is_node = adjacency.is_node
    x = states.double().view(num_graphs, num_padded, num_chains).where(is_node[..., None], 0.0)
    keys, table = chain_keys(seed, num_graphs, num_chains, states.device), exponentials(states.device).double()
    best, energy = x.clone(), torch.zeros_like(x[:, 0])
    lowest = energy
    for sweep, temperature in enumerate(temperatures.double()):
        thresholds = temperature[:, None] * table[levels_of(keys, sweep, num_padded)]
        for node in range(num_padded):
            sign = 1 - 2 * x[:, node]
            change = sign * field(x, node)
            accepted = (change < thresholds[:, node]) & is_node[:, node, None]
            x[:, node] += sign * accepted
            energy = energy + change.where(accepted, 0.0)
        is_better = energy < lowest - TIE
        best = best.where(~is_better[:, None], x)
        lowest = lowest.where(~is_better, energy)
    return best.view(states.shape).to(states.dtype)
