"""Conditional Expectation in time proportional to the edges (Sec. 4.1): what `diffusion.decoding` states, fast.

Every energy is multilinear, so for one node the difference of the two energies is its local field, and a decision
changes the fields of its neighbours alone.

Legend: N rows of all graphs, S samples per graph.
"""

import copy

from torch import Tensor

from diffuco import ops
from diffuco.diffusion.decoding import check_probabilities, conditional_expectation_by_energy, without_padding
from diffuco.graphs.batch import Batch, DenseBatch, SparseBatch
from diffuco.ops.adjacency import CsrAdjacency, DenseAdjacency
from diffuco.problems.base import CoverForm, Problem


def conditional_expectation(problem: Problem, batch: Batch, probs: Tensor, token_size: int = 1) -> Tensor:
    """Decode probabilities to states in {0, 1} of the same type; padding gets 0. [N, S] -> [N, S].

    A `token_size` above 1 looks further ahead: usually a lower energy, for up to 2^token_size / token_size more work.

    >>> import torch
    >>> from diffuco.graphs.batch import make_batch
    >>> from diffuco.graphs.graph import Graph
    >>> from diffuco.problems import get_problem
    >>> path = make_batch([Graph.from_edges([(0, 1), (1, 2)])])
    >>> conditional_expectation(get_problem("mis"), path, torch.tensor([[0.6], [0.5], [0.6]])).ravel().tolist()
    [1.0, 0.0, 1.0]
    """
    check_probabilities(batch, probs, token_size)
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
