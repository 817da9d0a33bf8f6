"""Simulated annealing of large sparse graphs in plain torch: nodes of one colour are asked at the same time.

No two neighbours have the same colour, so what one node of a colour does changes no other node's field. A sweep asks
one colour after the other, and gives the states of `numba_anneal` on the graph whose nodes are numbered by colour. This
is the reference for `triton_color_anneal`. Not for energies that couple all pairs, where no two nodes are independent,
nor for covers, where nodes at distance two are not independent either: see `torch_cover_anneal`.

Legend: N rows of all graphs, n nodes of one graph, S chains per graph, K sweeps.
"""

from functools import partial
from itertools import pairwise

from torch import Tensor

from diffuco.ops import reference
from diffuco.ops.adjacency import CsrAdjacency
from diffuco.ops.classes import Chains, ClassedGraph, Classes, anneal_by_class, known_classes, rows_of
from diffuco.ops.torch_anneal import TIE, exponentials, levels_of


def anneal_quadratic(
    states: Tensor, adjacency: CsrAdjacency, linear: Tensor, edge: float, temperatures: Tensor, seed: int
) -> Tensor:
    """Anneal H(X) = sum_i linear_i x_i + edge * sum_(i,j) w_ij x_i x_j. [N, S] -> [N, S].

    `temperatures` [K, B, C] are those of `torch_anneal`.
    """
    anneal = partial(anneal_graph, linear, edge)
    return anneal_by_class(states, adjacency, color_classes(adjacency), temperatures, seed, anneal)


def anneal_graph(
    linear: Tensor, edge: float, states: Tensor, graph: ClassedGraph, temperatures: Tensor, keys: Tensor
) -> Chains:
    """Anneal the chains of one graph. [n, S], [K, C], [S] -> [n, S], [S]."""
    x, constant = states.double(), linear[graph.rows, None].double()
    best, energy = x.clone(), x.new_zeros(x.shape[1])
    lowest, table = energy, exponentials(x.device).double()
    colors = [(slice(*span), rows_of(graph.adjacency, *span)) for span in pairwise(graph.starts)]
    for sweep, temperature in enumerate(temperatures):
        thresholds = temperature * table[levels_of(keys[None], sweep, len(x))[0]]
        for part, rows in colors:
            field = constant[part] + edge * reference.csr_neighbor_sum(x, rows.indptr, rows.indices, rows.weights)
            sign = 1 - 2 * x[part]
            change = sign * field
            accepted = change < thresholds[part]
            x[part] += sign * accepted
            energy = energy + change.where(accepted, 0.0).sum(0)
        is_better = energy < lowest - TIE
        best, lowest = best.where(~is_better, x), lowest.where(~is_better, energy)
    return Chains(best, lowest)


def color_classes(adjacency: CsrAdjacency) -> Classes:
    """The colour classes of all graphs."""
    # Imported here: numba would double the time the package takes to import.
    from diffuco.ops.numba_coloring import greedy_colors

    return known_classes(adjacency, greedy_colors)
