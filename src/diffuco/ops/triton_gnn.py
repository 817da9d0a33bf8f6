"""Launches of the network's kernels: how the work is divided, and what each call reads and writes.

Legend: B graphs, N rows, S samples per graph, F features; node tensors are [N, S, F].
"""

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from diffuco.ops.adjacency import NeighborLists
from diffuco.ops.triton_gnn_backward import (
    encode_backward_kernel,
    head_backward_kernel,
    layer_backward_kernel,
    norm_backward_kernel,
    products_kernel,
)
from diffuco.ops.triton_gnn_forward import encode_kernel, head_kernel, layer_kernel, neighbor_sum_kernel, sums_kernel

LARGEST_GRADIENT = 32.0
"""Largest gradient of a scaled logit; it grows at most a hundredfold inside the network, and float16 ends at 65,504."""


class Launch(NamedTuple):
    """How a kernel is divided into programs."""

    rows: int
    """Nodes per tile."""
    num_warps: int
    num_programs: int
    """Persistent programs."""
    num_stages: int = 3
    """Most tiles that are loaded ahead."""

    def grid(self, tiles: "Tiles") -> tuple[int]:
        """No more programs than tiles."""
        return (min(self.num_programs, tiles.num_items * tiles.num_blocks(self.rows)),)


# The H200 has 132 processors.
FORWARD = Launch(rows=64, num_warps=4, num_programs=132 * 3)
ENCODE = FORWARD._replace(num_stages=1)
SUMS = Launch(rows=64, num_warps=4, num_programs=132 * 4)
"""For kernels that walk over whole graphs: one program per graph and sample, or more if there are few graphs."""
NORM_ROWS = 32
"""Nodes that the backward pass of GraphNorm processes at a time."""
BACKWARD = Launch(rows=64, num_warps=4, num_programs=132 * 2, num_stages=2)
ENCODE_BACKWARD = BACKWARD._replace(rows=128, num_stages=1)
"""Each program of a backward kernel fills one line of `partial_gradients`, so all kernels have the same number."""
NEIGHBOR_COLUMNS = 2048
"""Columns that one program of the sparse neighbour sum covers."""


class Tiles(NamedTuple):
    """Where the rows of each graph are."""

    starts: Tensor
    """[B] first row of each graph."""
    sizes: Tensor
    """[B] nodes of each graph."""
    extents: Tensor
    """[B] rows of each graph, padding included; padding is written as 0."""
    largest: int
    """Rows of the largest graph, padding included."""
    num_samples: int

    @property
    def num_items(self) -> int:
        """Pairs of a graph and a sample."""
        return len(self.starts) * self.num_samples

    def num_blocks(self, rows: int) -> int:
        """Tiles of the largest graph."""
        return -(-self.largest // rows)

    def arguments(self, launch: Launch) -> dict[str, Any]:
        """Arguments of every kernel that walks over tiles."""
        num_blocks = self.num_blocks(launch.rows)
        return {
            "starts": self.starts,
            "sizes": self.sizes,
            "extents": self.extents,
            "num_samples": self.num_samples,
            "num_blocks": num_blocks,
            "num_units": self.num_items * num_blocks,
            "ROWS": launch.rows,
            "num_warps": launch.num_warps,
            "num_stages": launch.num_stages,
        }


class EncoderShape(NamedTuple):
    """Columns of the encoder's input."""

    num_inputs: int
    """State, random features, node weight if it is used, bias, one-hot step."""
    num_random_features: int
    weighted: bool


def encode(
    tiles: Tiles,
    shape: EncoderShape,
    x: Tensor,
    features: Tensor,
    node_inputs: Tensor,
    step: Tensor,
    packed: Tensor,
    h: Tensor,
    messages: Tensor,
) -> None:
    """Write the first features and messages. [N, S, F]."""
    encode_kernel[ENCODE.grid(tiles)](
        *(x, features, node_inputs, step, packed, h, messages),
        **tiles.arguments(ENCODE),
        **_encoder_arguments(shape),
        F=h.shape[2],
    )


def graph_sums(tiles: Tiles, summed: Tensor, row_scale: Tensor, sums: Tensor) -> None:
    """Write the sum and the sum of squares of each graph and sample. [N, S, F] -> [B * S, 2, F]."""
    # Graphs are summed in parts if there are too few graphs and samples to keep the device busy.
    num_parts = max(1, min(tiles.num_blocks(SUMS.rows), SUMS.num_programs // tiles.num_items))
    parts = sums if num_parts == 1 else torch.empty(len(sums), num_parts, *sums.shape[1:], device=sums.device)
    sums_kernel[(tiles.num_items, num_parts)](
        *(summed, row_scale, parts, tiles.starts, tiles.sizes, tiles.num_samples, num_parts),
        F=summed.shape[2],
        ROWS=SUMS.rows,
        num_warps=SUMS.num_warps,
    )
    if num_parts > 1:
        torch.sum(parts, 1, out=sums)


class Kept(NamedTuple):
    """Values from inside a layer that the backward pass needs."""

    first: Tensor
    """[N, S, F] values after the MLP's norm; the last bit says whether the MLP's second product was positive."""
    lines: Tensor
    """[N, S, 3] the factor of the MLP's norm, the value that norm maps 0 to, and the factor of the layer's norm."""


def layer(
    tiles: Tiles,
    h: Tensor,
    summed: Tensor,
    row_scale: Tensor,
    sums: Tensor,
    packed: Tensor,
    h_next: Tensor,
    messages: Tensor | None,
    kept: Kept | None,
) -> None:
    """Write a layer's result, the messages of the next layer if there is one, and `kept` if given. [N, S, F]."""
    layer_kernel[FORWARD.grid(tiles)](
        *(h, summed, row_scale, sums, packed, h_next, h if messages is None else messages),
        *((h, h) if kept is None else kept),
        **tiles.arguments(FORWARD),
        HAS_NEXT=messages is not None,
        KEEP=kept is not None,
        F=h.shape[2],
    )


def head(tiles: Tiles, h: Tensor, packed: Tensor) -> Tensor:
    """Logits. [N, S, F] -> [N, S]."""
    logits = torch.empty(h.shape[:2], dtype=torch.float32, device=h.device)
    head_kernel[FORWARD.grid(tiles)](h, packed, logits, **tiles.arguments(FORWARD), F=h.shape[2])
    return logits


def partial_gradients(packed: Tensor) -> Tensor:
    """Memory for the gradient of the packed weights from each program of the backward kernels. [programs, weights]."""
    return torch.empty(BACKWARD.num_programs, len(packed), device=packed.device)


def gradient_scale(d_logits: Tensor) -> Tensor:
    """The power of two that scales the largest gradient of a logit to at most `LARGEST_GRADIENT`. [N, S] -> []."""
    largest = d_logits.abs().amax().clamp(min=torch.finfo(torch.float32).tiny)
    return (LARGEST_GRADIENT / largest).log2().floor().clamp(max=100).exp2()


def head_backward(
    tiles: Tiles, h: Tensor, d_logits: Tensor, scale: Tensor, packed: Tensor, d_h: Tensor, grads: Tensor
) -> None:
    """Write the scaled gradient of the last features and of the head. [N, S] -> [N, S, F]."""
    head_backward_kernel[(BACKWARD.num_programs,)](
        *(h, d_logits, scale, packed, d_h, grads),
        **tiles.arguments(BACKWARD),
        num_packed=grads.stride(0),
        F=h.shape[2],
    )


class Inside(NamedTuple):
    """Gradients inside a layer. [N, S, F] each."""

    d_sum: Tensor
    """Gradient of the input of the layer's norm."""
    d_first: Tensor
    """Gradient of the MLP's first product."""
    d_normal: Tensor
    """Gradient of the normalised neighbour sums."""


def layer_backward(
    tiles: Tiles, h_next: Tensor, kept: Kept, d_h: Tensor, d_messages: Tensor | None, packed: Tensor, grads: Tensor
) -> Inside:
    """Turn `d_h` in place, from the gradient of a layer's result to that of its input without its messages.

    `d_messages` is the gradient of the messages computed from the result `h_next`. [N, S, F].
    """
    inside = Inside(torch.empty_like(d_h), torch.empty_like(d_h), torch.empty_like(d_h))
    layer_backward_kernel[(BACKWARD.num_programs,)](
        *(h_next, *kept, d_h if d_messages is None else d_messages, packed, d_h, *inside, grads),
        **tiles.arguments(BACKWARD),
        num_packed=grads.stride(0),
        HAS_NEXT=d_messages is not None,
        F=d_h.shape[2],
    )
    return inside


def norm_backward(
    tiles: Tiles,
    summed: Tensor,
    row_scale: Tensor,
    sums: Tensor,
    packed: Tensor,
    d_values: Tensor,
    gradient_scale: Tensor,
) -> Tensor:
    """Turn the gradient of the normalised sums into that of the neighbour sums, in place.

    The result is the gradient of the mean's share. [N, S, F] -> [F].
    """
    d_shares = torch.empty(tiles.num_items, summed.shape[2], dtype=torch.float32, device=summed.device)
    norm_backward_kernel[(tiles.num_items,)](
        *(summed, row_scale, sums, packed, d_values, gradient_scale, d_shares),
        *(tiles.starts, tiles.sizes, tiles.extents, tiles.num_samples),
        F=summed.shape[2],
        ROWS=NORM_ROWS,
        num_warps=SUMS.num_warps,
    )
    return d_shares.sum(0)


def products(
    tiles: Tiles,
    h: Tensor,
    summed: Tensor,
    row_scale: Tensor,
    sums: Tensor,
    packed: Tensor,
    inside: Inside,
    d_messages: Tensor,
    grads: Tensor,
) -> None:
    """Write the gradients of a layer's other weights; `d_messages` is the gradient of its own messages. [N, S, F]."""
    products_kernel[(BACKWARD.num_programs,)](
        *(h, summed, row_scale, sums, packed, inside.d_sum, inside.d_first, d_messages, grads),
        **tiles.arguments(BACKWARD),
        num_packed=grads.stride(0),
        F=h.shape[2],
    )


def encode_backward(
    tiles: Tiles,
    shape: EncoderShape,
    x: Tensor,
    features: Tensor,
    node_inputs: Tensor,
    step: Tensor,
    d_h: Tensor,
    d_messages: Tensor,
    packed: Tensor,
    grads: Tensor,
) -> None:
    """Write the gradient of the encoder."""
    encode_backward_kernel[(ENCODE_BACKWARD.num_programs,)](
        *(x, features, node_inputs, step, d_h, d_messages, packed, grads),
        **tiles.arguments(ENCODE_BACKWARD),
        num_packed=grads.stride(0),
        **_encoder_arguments(shape),
        F=d_h.shape[2],
    )


def neighbor_sum(lists: NeighborLists, values: Tensor, out: Tensor, row_scale: Tensor | None = None) -> None:
    """Write the sum over each node's neighbours, scaled by row if given. Reference: `csr_neighbor_sum`. [N, ...]."""
    num_rows, num_columns = len(values), values[0].numel()
    columns = min(NEIGHBOR_COLUMNS, triton.next_power_of_2(num_columns))
    neighbor_sum_kernel[(num_rows, triton.cdiv(num_columns, columns))](
        *(values, lists.graph_ids, lists.pointers, lists.neighbors),
        *(lists.neighbors if lists.weights is None else lists.weights, values if row_scale is None else row_scale),
        *(out, lists.rows_per_graph, lists.pointers.shape[1], num_columns),
        HAS_WEIGHTS=lists.weights is not None,
        HAS_SCALE=row_scale is not None,
        NEIGHBORS=4,
        COLUMNS=columns,
        # A warp loads 512 columns of four neighbours at once; twice as many warps took up to ten times as long.
        num_warps=max(1, columns // 512),
    )


def _encoder_arguments(shape: EncoderShape) -> dict[str, Any]:
    return {
        "num_inputs": shape.num_inputs,
        "R": shape.num_random_features,
        "WEIGHTED": shape.weighted,
        "K": max(16, triton.next_power_of_2(shape.num_inputs)),
    }
