"""Conditional Expectation: states never worse than the probabilities they come from (Sec. 4.1, CE and CE-ST_k).

Nodes are decided in order of falling probability, `token_size` at a time; of equal nodes, the lower one comes first.
Each token gets the configuration with the lowest expected energy given all decisions so far. Among configurations
within `TIE` of it (in the unit of the energy's form), the lowest one wins, where bit j is the state of the token's j-th
node.

This follows the paper's text; `inference.decoding` finds the same states in time proportional to the edges.

Legend: B graphs, N rows of all graphs, S samples per graph, k nodes per token.
"""

import torch
from torch import Tensor

from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch, DenseBatch
from diffuco.ops.torch_decode import TIE
from diffuco.problems.base import Problem

MAX_TOKEN_SIZE = 16


def conditional_expectation_by_energy(problem: Problem, batch: Batch, probs: Tensor, token_size: int = 1) -> Tensor:
    """Decode probabilities to states in {0, 1} by the energy of every configuration. Slow. [N, S] -> [N, S].

    Tests compare the fast decoders with this, and it decodes for problems that define only their energy.

    >>> from diffuco.graphs.batch import make_batch
    >>> from diffuco.graphs.graph import Graph
    >>> from diffuco.problems import get_problem
    >>> triangle = make_batch([Graph.from_edges([(0, 1), (1, 2), (0, 2)])])
    >>> probs = torch.tensor([[0.2], [0.3], [0.3]])
    >>> conditional_expectation_by_energy(get_problem("mis"), triangle, probs, token_size=2).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    check_probabilities(batch, probs, token_size)
    num_samples, form = probs.shape[1], problem.form(batch)
    unit = None if form is None else form.unit
    tie = TIE if unit is None else TIE * unit.double()[:, None, None]
    values = without_padding(batch, probs.double())
    orders = [part.argsort(dim=0, descending=True, stable=True) for part in batch.split(probs)]
    for first in range(0, max((len(order) for order in orders), default=0), token_size):
        # Graphs have independent energies, so all take this step at once; configurations of short tokens repeat.
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


def check_probabilities(batch: Batch, probs: Tensor, token_size: int) -> None:
    """Refuse probabilities and token sizes that cannot be decoded."""
    if not 1 <= token_size <= MAX_TOKEN_SIZE:
        raise InputError(
            f"token size {token_size}; give 1 to {MAX_TOKEN_SIZE}, because a token of k nodes has 2^k configurations"
        )
    if probs.dim() != 2 or len(probs) != batch.num_rows:
        shape = tuple(probs.shape)
        raise InputError(f"the probabilities have shape {shape}; expected [N, S] with N = {batch.num_rows} rows")
    inside = without_padding(batch, probs)
    if not bool(((inside >= 0) & (inside <= 1)).all()):
        raise InputError("some probabilities are NaN or outside 0..1; check the values that the model computed")


def without_padding(batch: Batch, values: Tensor) -> Tensor:
    """The values with padding rows set to 0. [N, S] -> [N, S]."""
    return values.where(batch.mask[:, None], 0.0) if isinstance(batch, DenseBatch) else values
