"""Tensor operations, each under one name; only this module decides which implementation serves a device."""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from subprocess import CalledProcessError
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor

from diffuco.foundation.errors import InputError
from diffuco.ops import (
    reference,
    scipy_neighbor_sum,
    torch_anneal,
    torch_bifurcation,
    torch_color_anneal,
    torch_cover_anneal,
    torch_decode,
    torch_wave_decode,
)
from diffuco.ops.adjacency import CoverCosts, CsrAdjacency, DenseAdjacency, NeighborLists
from diffuco.ops.forks import survive_forks

Decoder = Literal["numba", "torch", "triton"]

decoder_override: Decoder | None = None
"""Tests set this to compare the implementations that decode and anneal dense batches on one device."""

ASKED_AT_ONCE = 4096
"""Nodes of a colour times chains from which on a GPU anneals them faster than the CPU; one kernel asks them all."""
COVER_ROWS = 20_000
"""Nodes of a graph from which on a GPU anneals covers faster than its CPU (docs/log.md)."""

_log = logging.getLogger(__name__)

survive_forks()


def neighbor_sum(values: Tensor, indptr: Tensor, indices: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sum over each node's neighbours in a symmetric CSR adjacency. Reference: `reference.csr_neighbor_sum`.

    >>> path = torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1])  # 0 - 1 - 2
    >>> neighbor_sum(torch.tensor([[1.0], [2.0], [4.0]]), *path).ravel().tolist()
    [2.0, 5.0, 2.0]
    """
    made = scipy_neighbor_sum if values.dtype == torch.float64 and not values.is_cuda else reference
    return _symmetric_sum(values, lambda flat: made.csr_neighbor_sum(flat, indptr, indices, weights))


def list_neighbor_sum(values: Tensor, lists: NeighborLists) -> Tensor:
    """Sum over each node's neighbours, given as lists, by a Triton kernel. Reference: `reference.csr_neighbor_sum`."""
    # Imported here: not every platform has Triton, and importing it takes time.
    from diffuco.ops import triton_gnn

    def neighbor_sum(flat: Tensor) -> Tensor:
        out = torch.empty_like(flat)
        triton_gnn.neighbor_sum(lists, flat, out)
        return out

    return _symmetric_sum(values, neighbor_sum)


def decode_quadratic(
    probs: Tensor,
    adjacency: CsrAdjacency | DenseAdjacency,
    *,
    linear: Tensor,
    edge: float,
    pair: float,
    token_size: int,
) -> Tensor:
    """Conditional Expectation for a quadratic energy. Reference: `torch_decode.decode_quadratic`."""
    if isinstance(adjacency, DenseAdjacency) and _decoder(probs.device) != "numba":
        made = _made_for(probs.device, torch_decode, "triton_decode")
        decoded: Tensor = made.decode_quadratic(probs, adjacency, linear, edge, pair, token_size)
        return decoded
    if isinstance(adjacency, CsrAdjacency) and not pair and token_size == 1 and _stays_on_gpu(probs):
        waves = _in_parts(
            probs, adjacency, lambda some: torch_wave_decode.decode_quadratic(some, adjacency, linear, edge)
        )
        if waves is not None:
            return waves
    # Imported here: numba would double the time the package takes to import.
    from diffuco.ops import numba_decode

    states = numba_decode.decode_quadratic(probs.cpu(), _csr(adjacency), linear.cpu(), edge, pair, token_size)
    return states.to(probs.device)


def decode_cover(
    probs: Tensor,
    adjacency: CsrAdjacency | DenseAdjacency,
    *,
    penalty: float,
    token_size: int,
    costs: CoverCosts | None,
) -> Tensor:
    """Conditional Expectation for a cover energy. Reference: `torch_decode.decode_cover`."""
    if isinstance(adjacency, DenseAdjacency) and _decoder(probs.device) != "numba":
        made = _made_for(probs.device, torch_decode, "triton_decode")
        decoded: Tensor = made.decode_cover(probs, adjacency, penalty, token_size, costs)
        return decoded
    if isinstance(adjacency, CsrAdjacency) and token_size == 1 and _stays_on_gpu(probs):
        waves = _in_parts(
            probs, adjacency, lambda some: torch_wave_decode.decode_cover(some, adjacency, penalty, costs)
        )
        if waves is not None:
            return waves
    from diffuco.ops import numba_decode

    states = numba_decode.decode_cover(probs.cpu(), _csr(adjacency), penalty, token_size, costs and costs.cpu())
    return states.to(probs.device)


def anneal_quadratic(
    states: Tensor,
    adjacency: CsrAdjacency | DenseAdjacency,
    *,
    linear: Tensor,
    edge: float,
    pair: float,
    temperatures: Tensor,
    seed: int,
) -> Tensor:
    """Simulated annealing of a quadratic energy from given states. Reference: `torch_anneal.anneal_quadratic`."""
    if isinstance(adjacency, DenseAdjacency) and _decoder(states.device) != "numba":
        made = _made_for(states.device, torch_anneal, "triton_anneal")
        annealed: Tensor = made.anneal_quadratic(states, adjacency, linear, edge, pair, temperatures, seed)
        return annealed
    if isinstance(adjacency, CsrAdjacency) and not pair and _colors_pay(states, adjacency):
        made = _made_for(states.device, torch_color_anneal, "triton_color_anneal")
        annealed = made.anneal_quadratic(states, adjacency, linear, edge, temperatures, seed)
        return annealed
    from diffuco.ops import numba_anneal

    csr = _csr(adjacency)
    found = numba_anneal.anneal_quadratic(states.cpu(), csr, linear.cpu(), edge, pair, temperatures.cpu(), seed)
    return found.to(states.device)


def anneal_cover(
    states: Tensor,
    adjacency: CsrAdjacency | DenseAdjacency,
    *,
    penalty: float,
    temperatures: Tensor,
    seed: int,
    costs: CoverCosts | None,
) -> Tensor:
    """Simulated annealing of a cover energy from given states. Reference: `torch_anneal.anneal_cover`."""
    if isinstance(adjacency, DenseAdjacency) and _decoder(states.device) != "numba":
        made = _made_for(states.device, torch_anneal, "triton_anneal")
        annealed: Tensor = made.anneal_cover(states, adjacency, penalty, temperatures, seed, costs)
        return annealed
    are_large = len(states) >= COVER_ROWS * len(adjacency.sizes)
    if isinstance(adjacency, CsrAdjacency) and are_large and _stays_on_gpu(states):
        made = _made_for(states.device, torch_cover_anneal, "triton_cover_anneal")
        annealed = made.anneal_cover(states, adjacency, penalty, temperatures, seed, costs)
        return annealed
    from diffuco.ops import numba_anneal

    csr, costs = _csr(adjacency), costs and costs.cpu()
    found = numba_anneal.anneal_cover(states.cpu(), csr, penalty, temperatures.cpu(), seed, costs)
    return found.to(states.device)


def bifurcate_quadratic(
    positions: Tensor,
    momenta: Tensor,
    adjacency: CsrAdjacency | DenseAdjacency,
    *,
    linear: Tensor,
    edge: float,
    pair: float,
    strengths: Tensor,
    pumps: Tensor,
) -> tuple[Tensor, Tensor]:
    """Discrete simulated bifurcation of a quadratic energy. Reference: `torch_bifurcation.bifurcate_quadratic`."""
    if positions.device.type == "cpu":
        from diffuco.ops import numba_bifurcation

        csr = _csr(adjacency)
        return numba_bifurcation.bifurcate_quadratic(positions, momenta, csr, linear, edge, pair, strengths, pumps)
    if isinstance(adjacency, CsrAdjacency) and not pair and triton_works():
        from diffuco.ops import triton_bifurcation

        return triton_bifurcation.bifurcate_quadratic(positions, momenta, adjacency, linear, edge, strengths, pumps)
    return torch_bifurcation.bifurcate_quadratic(positions, momenta, adjacency, linear, edge, pair, strengths, pumps)


def implementations(device: torch.device) -> dict[str, str]:
    """Which implementation serves each operation that has several, for `diffuco doctor`."""
    dense = _decoder(device)
    return {
        "decode dense": dense,
        "decode sparse": "numba" if dense == "numba" else "torch",
        "anneal dense": dense,
        "anneal sparse": dense,
    }


def _decoder(device: torch.device) -> Decoder:
    if decoder_override:
        return decoder_override
    if device.type != "cuda":
        return "numba"
    return "triton" if triton_works() else "torch"


@cache
def triton_works() -> bool:
    """Whether kernels can be compiled and launched, which needs Triton, a GPU and a C compiler."""
    try:
        from triton.runtime import driver

        driver.active.get_current_target()
    except (ImportError, OSError, RuntimeError, CalledProcessError) as error:
        _log.debug("Triton does not work: %s", error)
        return False
    return True


def _made_for(device: torch.device, in_torch: ModuleType, in_triton: str) -> ModuleType:
    """The module that serves a device itself."""
    return in_torch if _decoder(device) == "torch" else _triton_module(in_triton)


def _stays_on_gpu(values: Tensor) -> bool:
    """Whether compressed rows may be worked on where they are."""
    return values.device.type == "cuda" and _decoder(values.device) != "numba"


def _colors_pay(states: Tensor, adjacency: CsrAdjacency) -> bool:
    """Whether states are on a GPU, and few colours leave enough to ask at the same time."""
    if not _stays_on_gpu(states):
        return False
    num_colors = torch_color_anneal.color_classes(adjacency).most
    if num_colors * ASKED_AT_ONCE <= states.numel():
        return True
    _log.debug("%d rows in %d colours: annealed on the CPU", len(states), num_colors)
    return False


def _in_parts(probs: Tensor, adjacency: CsrAdjacency, decode: Callable[[Tensor], Tensor | None]) -> Tensor | None:
    """Decode as many samples at a time as memory was planned for, or none. [N, S] -> [N, S]."""
    at_once = max(1, torch_wave_decode.ENTRIES_AT_ONCE // max(1, len(adjacency.indices) + len(probs)))
    parts = []
    for some in probs.split(at_once, dim=1):  # type: ignore[no-untyped-call]
        states = decode(some)
        if states is None:
            return None
        parts.append(states)
    return torch.cat(parts, dim=1)


def _triton_module(name: str) -> ModuleType:
    try:
        # Imported here: not every platform has Triton, and importing it takes time.
        return import_module(f"diffuco.ops.{name}")
    except ImportError as error:
        raise InputError(
            f'the decoder "triton" needs Triton, which cannot be imported ({error}); '
            'install it with `pip install triton` (Linux only), or use the decoder "torch"'
        ) from error


def _csr(adjacency: CsrAdjacency | DenseAdjacency) -> CsrAdjacency:
    # Where a GPU has no faster way, compressed rows are decoded and annealed on the CPU.
    return (adjacency.to_csr() if isinstance(adjacency, DenseAdjacency) else adjacency).cpu()


def _symmetric_sum(values: Tensor, neighbor_sum: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a sum over neighbours to columns; its gradient is the same sum. [N, ...] -> [N, ...]."""
    columns = values.flatten(1)
    rows = columns.contiguous().view(-1).view(columns.shape)  # so that a single column has the stride of fast loops
    summed: Tensor = _SymmetricSum.apply(rows, neighbor_sum)  # type: ignore[no-untyped-call]
    return summed.view(values.shape)


class _SymmetricSum(torch.autograd.Function):
    """A symmetric matrix is its own transpose, so the backward pass is the forward pass on the gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, neighbor_sum: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.neighbor_sum = neighbor_sum
        return neighbor_sum(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.neighbor_sum(gradient.contiguous()), None
