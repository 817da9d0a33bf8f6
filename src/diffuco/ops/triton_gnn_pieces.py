"""Parts of the network's kernels: tiles, packed weights, norms and products; the reference is `model.gnn`.

Activations and their gradients are float16, which has three more bits of precision than bfloat16. Activations are well
within its range after a norm, and gradients are scaled by a power of two that brings the largest gradient of a logit to
a fixed size. Sums, norms and the gradient of the weights are float32. A kernel takes the type of its buffers, so
float32 buffers give float32 arithmetic.

Scales and shifts of norms are folded into the matrices and biases that follow them (`model.engine.layout`), so that a
norm is only "mean 0, variance 1" here.

Legend: B graphs, S samples per graph, F features, tile rows are nodes; node tensors are [N, S, F]. A packed layer is 5
matrices [in, out], then 5 vectors; a packed head is 2 matrices, 3 vectors and one number.
"""

from typing import Any

import triton
import triton.language as tl

MESSAGE, SKIP, FIRST_H, FIRST_A, SECOND = (tl.constexpr(index) for index in range(5))
"""Matrices of a packed layer: messages, skip connection, the MLP's first product (two halves) and its second."""
MESSAGE_BIAS, SKIP_BIAS, FIRST_BIAS, SECOND_BIAS, MEAN_SHARE = (tl.constexpr(index) for index in range(5))
"""Vectors of a packed layer: biases, and the share of the mean that GraphNorm removes."""
LAYER_MATRICES, LAYER_VECTORS = tl.constexpr(5), tl.constexpr(5)
HEAD_MATRICES, HEAD_VECTORS = tl.constexpr(2), tl.constexpr(3)
EPSILON = tl.constexpr(1e-5)


@triton.jit
def tile_of(
    unit: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    ROWS: tl.constexpr,
) -> Any:
    """Graph, sample, rows, which rows are nodes, and which rows exist. Consecutive units are neighbours in memory."""
    sample = unit % num_samples
    graph = unit // (num_samples * num_blocks)
    local = (unit // num_samples) % num_blocks * ROWS + tl.arange(0, ROWS)
    rows = tl.load(starts + graph) + local
    return graph, sample, rows, local < tl.load(sizes + graph), local < tl.load(extents + graph)


@triton.jit
def load_matrix(packed: tl.tensor, index: tl.constexpr, F: tl.constexpr, dtype: tl.constexpr) -> Any:
    """A packed matrix [in, out]."""
    lines = tl.arange(0, F)
    return tl.load(packed + index * F * F + lines[:, None] * F + lines[None, :]).to(dtype)


@triton.jit
def load_vector(packed: tl.tensor, num_matrices: tl.constexpr, index: tl.constexpr, F: tl.constexpr) -> Any:
    """A packed vector as a row."""
    return tl.load(packed + (num_matrices * F + index) * F + tl.arange(0, F))[None, :]


@triton.jit
def store_matrix(grads: tl.tensor, index: tl.constexpr, values: tl.tensor, F: tl.constexpr) -> None:
    """Store a matrix where `load_matrix` would read it."""
    lines = tl.arange(0, F)
    tl.store(grads + index * F * F + lines[:, None] * F + lines[None, :], values)


@triton.jit
def store_vector(
    grads: tl.tensor, num_matrices: tl.constexpr, index: tl.constexpr, values: tl.tensor, F: tl.constexpr
) -> None:
    """Store a vector where `load_vector` would read it."""
    tl.store(grads + (num_matrices * F + index) * F + tl.arange(0, F), values)


@triton.jit
def standardise(values: tl.tensor, F: tl.constexpr) -> Any:
    """Rows scaled to mean 0 and variance 1, the factor they were multiplied by, and the value that 0 is mapped to."""
    mean = (tl.sum(values, 1) / F)[:, None]
    centred = values - mean
    inverse = tl.rsqrt(tl.sum(centred * centred, 1) / F + EPSILON)[:, None]
    return centred * inverse, inverse, (0.0 - mean) * inverse


@triton.jit
def standardise_backward(gradient: tl.tensor, standard: tl.tensor, inverse: tl.tensor, F: tl.constexpr) -> Any:
    """The gradient of the values, given the gradient of the standardised values."""
    mean = (tl.sum(gradient, 1) / F)[:, None]
    along = (tl.sum(gradient * standard, 1) / F)[:, None]
    return inverse * (gradient - mean - standard * along)


@triton.jit
def narrowed(values: tl.tensor, dtype: tl.constexpr) -> Any:
    """Convert to the type of a buffer; values beyond the range of float16 become its largest value, never infinite."""
    if dtype == tl.float16:
        values = tl.minimum(tl.maximum(values, -65504.0), 65504.0)
    return values.to(dtype)


@triton.jit
def with_bit(values: tl.tensor, bit: tl.tensor) -> Any:
    """The values with their last bit replaced."""
    integer: tl.constexpr = tl.int16 if values.dtype == tl.float16 else tl.int32
    bits = (values.to(integer, bitcast=True) & -2) | bit.to(integer)
    return bits.to(values.dtype, bitcast=True)


@triton.jit
def last_bit(values: tl.tensor) -> Any:
    """The bit that `with_bit` has stored."""
    integer: tl.constexpr = tl.int16 if values.dtype == tl.float16 else tl.int32
    return values.to(integer, bitcast=True) & 1


@triton.jit
def product(a: tl.tensor, b: tl.tensor) -> Any:
    """A matrix product that keeps the full precision of float32."""
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def add_product(a: tl.tensor, b: tl.tensor, total: tl.tensor) -> Any:
    """Add a `product` to a total."""
    return tl.dot(a, b, acc=total, input_precision="ieee")


@triton.jit
def add_sum(values: tl.tensor, index: tl.constexpr, sums: tl.tensor, ROWS: tl.constexpr) -> Any:
    """Add the sum of a tile's rows to line `index` of 16 sums, as a product with ones, which needs no barrier."""
    ones = tl.where(tl.arange(0, 16)[:, None] == index, 1.0, 0.0) + tl.zeros([16, ROWS], tl.float32)
    return tl.dot(ones.to(values.dtype), values, acc=sums, input_precision="ieee")


@triton.jit
def sum_line(sums: tl.tensor, index: tl.constexpr) -> Any:
    """Line `index` of 16 sums."""
    return tl.sum(tl.where(tl.arange(0, 16)[:, None] == index, sums, 0.0), 0)


@triton.jit
def graph_moments(sums: tl.tensor, item: tl.tensor, size: tl.tensor, share: tl.tensor, F: tl.constexpr) -> Any:
    """GraphNorm's mean and inverse deviation of one graph and sample, computed from its sums."""
    at = item * 2 * F + tl.arange(0, F)
    count = tl.maximum(size, 1).to(tl.float32)
    mean = (tl.load(sums + at) / count)[None, :]
    variance = (tl.load(sums + at + F) / count)[None, :] - share * (2 - share) * mean * mean
    return mean, tl.rsqrt(tl.maximum(variance, 0.0) + EPSILON)


@triton.jit
def load_inputs(
    x: tl.tensor,
    features: tl.tensor,
    node_inputs: tl.tensor,
    step: tl.tensor,
    graph: tl.tensor,
    rows: tl.tensor,
    real: tl.tensor,
    sample: tl.tensor,
    num_samples: tl.tensor,
    R: tl.constexpr,
    WEIGHTED: tl.constexpr,
    K: tl.constexpr,
    dtype: tl.constexpr,
) -> Any:
    """Inputs of the encoder: state as -1 or 1, random features, node weight, 1, one-hot step; K columns."""
    k = tl.arange(0, K)[None, :]
    at = rows * num_samples + sample
    state = 2 * tl.load(x + at, mask=real, other=0).to(tl.float32) - 1
    values = tl.where(k == 0, state[:, None], 0.0)
    if R > 0:
        drawn = (k >= 1) & (k <= R)
        values += tl.load(features + at[:, None] * R + (k - 1), mask=drawn & real[:, None], other=0.0)
    if WEIGHTED:
        weight = tl.load(node_inputs + rows, mask=real, other=0.0)
        values += tl.where(k == R + 1, weight[:, None], 0.0)
    one = R + 1 + WEIGHTED
    values += tl.where((k == one) | (k == one + tl.load(step + graph * num_samples + sample)), 1.0, 0.0)
    return tl.where(real[:, None], values, 0.0).to(dtype)


@triton.jit
def load_encoder(
    packed: tl.tensor, num_inputs: tl.constexpr, K: tl.constexpr, F: tl.constexpr, dtype: tl.constexpr
) -> Any:
    """The encoder's matrix, padded to K lines."""
    lines = tl.arange(0, K)[:, None]
    return tl.load(packed + lines * F + tl.arange(0, F)[None, :], mask=lines < num_inputs, other=0.0).to(dtype)


@triton.jit
def load_normal_sum(
    summed: tl.tensor,
    row_scale: tl.tensor,
    sums: tl.tensor,
    packed: tl.tensor,
    graph: tl.tensor,
    sample: tl.tensor,
    rows: tl.tensor,
    real: tl.tensor,
    sizes: tl.tensor,
    num_samples: tl.tensor,
    F: tl.constexpr,
) -> Any:
    """A tile of neighbour sums after GraphNorm."""
    share = load_vector(packed, LAYER_MATRICES, MEAN_SHARE, F)
    item = graph * num_samples + sample
    mean, inverse = graph_moments(sums, item, tl.load(sizes + graph), share, F)
    at = (rows * num_samples + sample)[:, None] * F + tl.arange(0, F)[None, :]
    total = tl.load(summed + at, mask=real[:, None], other=0.0).to(tl.float32)
    total = total * tl.load(row_scale + rows, mask=real, other=0.0)[:, None]
    return (total - share * mean) * inverse
