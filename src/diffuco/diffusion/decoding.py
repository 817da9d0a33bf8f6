"""Conditional Expectation: states never worse than the probabilities they come from (Sec. 4.1, CE and CE-ST_k).

Nodes are decided in the order of falling probability (ties: the lower node first), `token_size` at a time. Each token
gets the configuration with the lowest expected energy given all decisions so far; of those within 1e-9 of it (in the
unit of the energy's form), the lowest one, where bit j is the state of the token's j-th node.

Every energy is multilinear, so for one node the difference of the two energies is its local field, and a decision
changes the fields of its neighbours alone: decoding costs O(edges), not O(nodes) evaluations of the energy.

Legend: B graphs, N rows of all graphs, S samples per graph, k nodes per token.
"""

import copy

import torch
from torch import Tensor

from diffuco import ops
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.ops.adjacency import CsrAdjacency, DenseAdjacency
from diffuco.ops.torch_decode import TIE
from diffuco.problems.base import CoverForm, Problem

MAX_TOKEN_SIZE = 16


def conditional_expectation(problem: Problem, batch: Batch, probs: Tensor, token_size: int = 1) -> Tensor:
    """Decode probabilities to states in {0, 1} of the same type; padding gets 0. [N, S] -> [N, S].

    A `token_size` above 1 looks further ahead: usually a lower energy, for up to 2^token_size / token_size more work.

    >>> from diffuco.graphs.batch import make_batch
    >>> from diffuco.graphs.graph import Graph
    >>> from diffuco.problems import get_problem
    >>> path = make_batch([Graph.from_edges([(0, 1), (1, 2)])])
    >>> conditional_expectation(get_problem("mis"), path, torch.tensor([[0.6], [0.5], [0.6]])).ravel().tolist()
    [1.0, 0.0, 1.0]
    """
    _check(batch, probs, token_size)
    if not probs.numel():
        return probs.clone()
    form = problem.form(with_float64_degrees(batch))
    if form is None:
        return conditional_expectation_by_energy(problem, batch, probs, token_size)
    if isinstance(form, CoverForm):
        adjacency = adjacency_of(batch, weighted=False)
        states = ops.decode_cover(probs, adjacency, penalty=form.penalty, token_size=token_size, costs=form.costs)
    else:
        adjacency = adjacency_of(form.edges or batch, weighted=form.edges is not None)
        states = ops.decode_quadratic(
            probs, adjacency, linear=form.linear, edge=form.edge, pair=form.pair, token_size=token_size
        )
    return without_padding(batch, states).to(probs.dtype).contiguous()


def conditional_expectation_by_energy(problem: Problem, batch: Batch, probs: Tensor, token_size: int = 1) -> Tensor:
    """The same states, found as the paper words it: with the energy of every configuration. Slow. [N, S] -> [N, S].

    The oracle of `conditional_expectation`, and what serves a problem that states nothing but its energy.

    >>> from diffuco.graphs.batch import make_batch
    >>> from diffuco.graphs.graph import Graph
    >>> from diffuco.problems import get_problem
    >>> triangle = make_batch([Graph.from_edges([(0, 1), (1, 2), (0, 2)])])
    >>> probs = torch.tensor([[0.2], [0.3], [0.3]])
    >>> conditional_expectation_by_energy(get_problem("mis"), triangle, probs, token_size=2).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    _check(batch, probs, token_size)
    num_samples, form = probs.shape[1], problem.form(batch)
    unit = None if form is None else form.unit
    tie = TIE if unit is None else TIE * unit.double()[:, None, None]
    values = without_padding(batch, probs.double())
    orders = [part.argsort(dim=0, descending=True, stable=True) for part in batch.split(probs)]
    for first in range(0, max((len(order) for order in orders), default=0), token_size):
        # A graph's energy is its own, so all graphs take this step at once; configurations of short tokens repeat.
        tokens = [order[first : first + token_size] for order in orders]
        options = _with_tokens(batch, values, tokens, 2**token_size)  # [N, 2^k, S]
        energies = problem.energy(batch, options.flatten(1)).view(batch.num_graphs, -1, num_samples)
        ties = energies <= energies.amin(dim=1, keepdim=True) + tie
        lowest = batch.spread(ties.to(torch.uint8).argmax(dim=1))  # [N, S]
        values = options.gather(1, lowest[:, None])[:, 0]
    return values.to(probs.dtype)


def _with_tokens(batch: Batch, values: Tensor, tokens: list[Tensor], num_configurations: int) -> Tensor:
    """`values` with every graph's token set to each configuration in turn. [N, S] -> [N, num_configurations, S]."""
    options = values[:, None].repeat(1, num_configurations, 1)
    configurations = torch.arange(num_configurations, device=values.device)[:, None]
    for part, token in zip(batch.split(options), tokens, strict=True):
        for position, nodes in enumerate(token):  # nodes: [S]
            bits = (configurations >> position & 1).expand(-1, len(nodes))
            part.scatter_(0, nodes.expand_as(bits)[None], bits[None].to(values.dtype))
    return options


def _check(batch: Batch, probs: Tensor, token_size: int) -> None:
    if not 1 <= token_size <= MAX_TOKEN_SIZE:
        raise InputError(
            f"token size {token_size}; give 1 to {MAX_TOKEN_SIZE}, as a token of k nodes has 2^k configurations"
        )
    if probs.dim() != 2 or len(probs) != batch.num_rows:
        shape = tuple(probs.shape)
        raise InputError(f"probabilities of shape {shape}; expected [N, S] with the batch's N = {batch.num_rows} rows")
    inside = without_padding(batch, probs)
    if not bool(((inside >= 0) & (inside <= 1)).all()):
        raise InputError("probabilities that are NaN or outside 0..1; check the values that the model computed")


def without_padding(batch: Batch, values: Tensor) -> Tensor:
    """Padding rows set to 0, whatever they held. [N, S] -> [N, S]."""
    return values.where(batch.mask[:, None], 0.0) if isinstance(batch, DenseBatch) else values


def with_float64_degrees(batch: Batch) -> Batch:
    """A view of the batch from which problems compute their coefficients in float64, as ties are finer than float32."""
    wide = copy.copy(batch)
    wide.degrees = batch.degrees.double()
    return wide


def adjacency_of(batch: Batch, weighted: bool) -> CsrAdjacency | DenseAdjacency:
    """The edges of a batch as operations take them."""
    assert isinstance(batch, DenseBatch | SparseBatch)
    weights = batch.weights if weighted else None
    if isinstance(batch, DenseBatch):
        return DenseAdjacency(batch.sizes, batch.adjacency if weights is None else weights)
    return CsrAdjacency(batch.row_starts, batch.sizes, batch.indptr, batch.indices, weights)
