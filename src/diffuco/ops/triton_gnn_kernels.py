"""The network's row-wise chains as Triton kernels, forward and backward; the reference is `model.gnn`.

Between two neighbour sums a layer only needs the rows of one tile, so everything there is one kernel: normalise the
sum, node MLP, skip, layer norm, and the message product of the next layer. A tile is `ROWS` nodes of one graph and one
sample. Programs are persistent: they read the weights once and walk over tiles. In the backward kernels each program
keeps the gradient of the weights in registers until its last tile; the programs' gradients are summed at the end, in a
fixed order, so that a run can be repeated exactly.

Activations and their gradients are float16: it keeps three bits more than bfloat16, activations have range to spare
after a norm, and gradients are scaled by a power of two that brings the largest of the logits to a fixed size.
Sums, norms and the gradient of the weights are float32. A kernel takes the type of its buffers, so float32 buffers give
float32 arithmetic.

Scales and shifts of norms are folded into the matrices and biases that follow them (`model.fused`), so that a norm is
nothing but "mean 0, variance 1" here.

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


# ---------------------------------------------------------------------------------------------------------- pieces


@triton.jit
def _tile(
    unit: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    ROWS: tl.constexpr,
) -> Any:
    """Graph, sample, rows, and which rows are nodes or at least exist. Neighbouring units are neighbours in memory."""
    sample = unit % num_samples
    graph = unit // (num_samples * num_blocks)
    local = (unit // num_samples) % num_blocks * ROWS + tl.arange(0, ROWS)
    rows = tl.load(starts + graph) + local
    return graph, sample, rows, local < tl.load(sizes + graph), local < tl.load(extents + graph)


@triton.jit
def _matrix(packed: tl.tensor, index: tl.constexpr, F: tl.constexpr, dtype: tl.constexpr) -> Any:
    lines = tl.arange(0, F)
    return tl.load(packed + index * F * F + lines[:, None] * F + lines[None, :]).to(dtype)


@triton.jit
def _vector(packed: tl.tensor, num_matrices: tl.constexpr, index: tl.constexpr, F: tl.constexpr) -> Any:
    return tl.load(packed + (num_matrices * F + index) * F + tl.arange(0, F))[None, :]


@triton.jit
def _store_matrix(grads: tl.tensor, index: tl.constexpr, values: tl.tensor, F: tl.constexpr) -> None:
    lines = tl.arange(0, F)
    tl.store(grads + index * F * F + lines[:, None] * F + lines[None, :], values)


@triton.jit
def _store_vector(
    grads: tl.tensor, num_matrices: tl.constexpr, index: tl.constexpr, values: tl.tensor, F: tl.constexpr
) -> None:
    tl.store(grads + (num_matrices * F + index) * F + tl.arange(0, F), values)


@triton.jit
def _standardise(values: tl.tensor, F: tl.constexpr) -> Any:
    """Rows with mean 0 and variance 1, what they were multiplied with, and what a 0 has become."""
    mean = (tl.sum(values, 1) / F)[:, None]
    centred = values - mean
    inverse = tl.rsqrt(tl.sum(centred * centred, 1) / F + EPSILON)[:, None]
    return centred * inverse, inverse, (0.0 - mean) * inverse


@triton.jit
def _standardise_backward(gradient: tl.tensor, standard: tl.tensor, inverse: tl.tensor, F: tl.constexpr) -> Any:
    mean = (tl.sum(gradient, 1) / F)[:, None]
    along = (tl.sum(gradient * standard, 1) / F)[:, None]
    return inverse * (gradient - mean - standard * along)


@triton.jit
def _narrow(values: tl.tensor, dtype: tl.constexpr) -> Any:
    """To the type of a buffer; what is out of float16's range becomes its largest value, never infinite."""
    if dtype == tl.float16:
        values = tl.minimum(tl.maximum(values, -65504.0), 65504.0)
    return values.to(dtype)


@triton.jit
def _with_bit(values: tl.tensor, bit: tl.tensor) -> Any:
    """The values with their last bit replaced."""
    integer: tl.constexpr = tl.int16 if values.dtype == tl.float16 else tl.int32
    bits = (values.to(integer, bitcast=True) & -2) | bit.to(integer)
    return bits.to(values.dtype, bitcast=True)


@triton.jit
def _last_bit(values: tl.tensor) -> Any:
    integer: tl.constexpr = tl.int16 if values.dtype == tl.float16 else tl.int32
    return values.to(integer, bitcast=True) & 1


@triton.jit
def _dot(a: tl.tensor, b: tl.tensor) -> Any:
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _add_dot(a: tl.tensor, b: tl.tensor, total: tl.tensor) -> Any:
    return tl.dot(a, b, acc=total, input_precision="ieee")


@triton.jit
def _add_sum(values: tl.tensor, index: tl.constexpr, sums: tl.tensor, ROWS: tl.constexpr) -> Any:
    """Add the sum of a tile's rows to line `index` of 16 sums: a product with ones, which needs no barrier."""
    ones = tl.where(tl.arange(0, 16)[:, None] == index, 1.0, 0.0) + tl.zeros([16, ROWS], tl.float32)
    return tl.dot(ones.to(values.dtype), values, acc=sums, input_precision="ieee")


@triton.jit
def _line(sums: tl.tensor, index: tl.constexpr) -> Any:
    return tl.sum(tl.where(tl.arange(0, 16)[:, None] == index, sums, 0.0), 0)


@triton.jit
def _graph_moments(sums: tl.tensor, item: tl.tensor, size: tl.tensor, share: tl.tensor, F: tl.constexpr) -> Any:
    """GraphNorm's mean and inverse deviation of one graph and sample from its sums."""
    at = item * 2 * F + tl.arange(0, F)
    count = tl.maximum(size, 1).to(tl.float32)
    mean = (tl.load(sums + at) / count)[None, :]
    variance = (tl.load(sums + at + F) / count)[None, :] - share * (2 - share) * mean * mean
    return mean, tl.rsqrt(tl.maximum(variance, 0.0) + EPSILON)


# --------------------------------------------------------------------------------------------------------- forward


@triton.jit
def _inputs(
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
    """What the encoder multiplies: state as -1 or 1, random features, node weight, 1, one-hot step; K columns."""
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
def _encoder_matrix(
    packed: tl.tensor, num_inputs: tl.constexpr, K: tl.constexpr, F: tl.constexpr, dtype: tl.constexpr
) -> Any:
    lines = tl.arange(0, K)[:, None]
    return tl.load(packed + lines * F + tl.arange(0, F)[None, :], mask=lines < num_inputs, other=0.0).to(dtype)


@triton.jit
def encode_kernel(
    x: tl.tensor,
    features: tl.tensor,
    node_inputs: tl.tensor,
    step: tl.tensor,
    packed: tl.tensor,
    h: tl.tensor,
    messages: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    num_units: tl.tensor,
    num_inputs: tl.constexpr,
    R: tl.constexpr,
    WEIGHTED: tl.constexpr,
    K: tl.constexpr,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """First features and the first layer's messages."""
    dtype = h.dtype.element_ty
    cols = tl.arange(0, F)[None, :]
    encoder = _encoder_matrix(packed, num_inputs, K, F, dtype)
    message = _matrix(packed + num_inputs * F, MESSAGE, F, dtype)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = _tile(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        inputs = _inputs(x, features, node_inputs, step, graph, rows, real, sample, num_samples, R, WEIGHTED, K, dtype)
        encoded = _dot(inputs, encoder).to(dtype)
        at = (rows * num_samples + sample)[:, None] * F + cols
        tl.store(h + at, encoded, mask=inside[:, None])
        sent = _dot(encoded, message) + _vector(packed + num_inputs * F, LAYER_MATRICES, MESSAGE_BIAS, F)
        tl.store(messages + at, tl.where(real[:, None], sent, 0.0).to(dtype), mask=inside[:, None])


@triton.jit
def sums_kernel(
    summed: tl.tensor,
    row_scale: tl.tensor,
    sums: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    num_samples: tl.tensor,
    num_splits: tl.tensor,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Sum and sum of squares over the nodes of one graph and sample, or of one of its parts."""
    item = tl.program_id(0)
    split = tl.program_id(1)
    graph = item // num_samples
    size = tl.load(sizes + graph)
    start = tl.load(starts + graph)
    cols = tl.arange(0, F)
    total = tl.zeros([ROWS, F], tl.float32)
    squares = tl.zeros([ROWS, F], tl.float32)
    for first in range(split * ROWS, size, num_splits * ROWS):
        local = first + tl.arange(0, ROWS)
        rows = start + local
        at = (rows * num_samples + item % num_samples)[:, None] * F + cols[None, :]
        scale = tl.load(row_scale + rows, mask=local < size, other=0.0)[:, None]
        values = tl.load(summed + at, mask=(local < size)[:, None], other=0.0).to(tl.float32) * scale
        total += values
        squares += values * values
    at = (item * num_splits + split) * 2 * F + cols
    tl.store(sums + at, tl.sum(total, 0))
    tl.store(sums + at + F, tl.sum(squares, 0))


@triton.jit
def _normal_sum(
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
    share = _vector(packed, LAYER_MATRICES, MEAN_SHARE, F)
    item = graph * num_samples + sample
    mean, inverse = _graph_moments(sums, item, tl.load(sizes + graph), share, F)
    at = (rows * num_samples + sample)[:, None] * F + tl.arange(0, F)[None, :]
    total = tl.load(summed + at, mask=real[:, None], other=0.0).to(tl.float32)
    total = total * tl.load(row_scale + rows, mask=real, other=0.0)[:, None]
    return (total - share * mean) * inverse


@triton.jit
def layer_kernel(
    h: tl.tensor,
    summed: tl.tensor,
    row_scale: tl.tensor,
    sums: tl.tensor,
    packed: tl.tensor,
    h_next: tl.tensor,
    messages: tl.tensor,
    first_kept: tl.tensor,
    lines_kept: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    num_units: tl.tensor,
    HAS_NEXT: tl.constexpr,
    KEEP: tl.constexpr,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """One layer after its neighbour sum, and the messages of the next; kept, if asked, what its gradient needs."""
    dtype = h.dtype.element_ty
    cols = tl.arange(0, F)[None, :]
    skip = _matrix(packed, SKIP, F, dtype)
    first_h = _matrix(packed, FIRST_H, F, dtype)
    first_a = _matrix(packed, FIRST_A, F, dtype)
    second = _matrix(packed, SECOND, F, dtype)
    if HAS_NEXT:
        next_packed = packed + (LAYER_MATRICES * F + LAYER_VECTORS) * F
        message = _matrix(next_packed, MESSAGE, F, dtype)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = _tile(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = (rows * num_samples + sample)[:, None] * F + cols
        line = (rows * num_samples + sample)[:, None] * 3
        given = tl.load(h + at, mask=real[:, None], other=0.0)
        normal = _normal_sum(summed, row_scale, sums, packed, graph, sample, rows, real, sizes, num_samples, F)
        # Vectors are read where they are needed: over the whole loop they would fill the registers.
        hidden = _add_dot(normal.to(dtype), first_a, _dot(given, first_h))
        hidden += _vector(packed, LAYER_MATRICES, FIRST_BIAS, F)
        standard, inverse, zero = _standardise(tl.maximum(hidden, 0.0), F)
        narrow = standard.to(dtype)
        if KEEP:
            tl.store(lines_kept + line, inverse, mask=inside[:, None])
            tl.store(lines_kept + line + 1, zero, mask=inside[:, None])
        hidden = _dot(narrow, second) + _vector(packed, LAYER_MATRICES, SECOND_BIAS, F)
        if KEEP:
            tl.store(first_kept + at, _with_bit(narrow, hidden > 0), mask=inside[:, None])
        hidden = tl.maximum(hidden, 0.0) + _vector(packed, LAYER_MATRICES, SKIP_BIAS, F)
        standard, inverse, zero = _standardise(_add_dot(given, skip, hidden), F)
        if KEEP:
            tl.store(lines_kept + line + 2, inverse, mask=inside[:, None])
        result = tl.where(real[:, None], standard, 0.0).to(dtype)
        tl.store(h_next + at, result, mask=inside[:, None])
        if HAS_NEXT:
            sent = _dot(result, message) + _vector(next_packed, LAYER_MATRICES, MESSAGE_BIAS, F)
            tl.store(messages + at, tl.where(real[:, None], sent, 0.0).to(dtype), mask=inside[:, None])


@triton.jit
def head_kernel(
    h: tl.tensor,
    packed: tl.tensor,
    logits: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    num_units: tl.tensor,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """One logit per row; 0 in the padding."""
    dtype = h.dtype.element_ty
    cols = tl.arange(0, F)[None, :]
    first = _matrix(packed, 0, F, dtype)
    second = _matrix(packed, 1, F, dtype)
    bias = tl.load(packed + (HEAD_MATRICES * F + HEAD_VECTORS) * F)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = _tile(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = rows * num_samples + sample
        given = tl.load(h + at[:, None] * F + cols, mask=real[:, None], other=0.0)
        hidden = _dot(given, first) + _vector(packed, HEAD_MATRICES, 0, F)
        standard, inverse, zero = _standardise(tl.maximum(hidden, 0.0), F)
        hidden = _dot(standard.to(dtype), second) + _vector(packed, HEAD_MATRICES, 1, F)
        standard, inverse, zero = _standardise(tl.maximum(hidden, 0.0), F)
        logit = tl.sum(standard * _vector(packed, HEAD_MATRICES, 2, F), 1) + bias
        tl.store(logits + at, tl.where(real, logit, 0.0), mask=inside)


# -------------------------------------------------------------------------------------------------------- backward


@triton.jit
def head_backward_kernel(
    h: tl.tensor,
    d_logits: tl.tensor,
    gradient_scale: tl.tensor,
    packed: tl.tensor,
    d_h: tl.tensor,
    grads: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    num_units: tl.tensor,
    num_packed: tl.tensor,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of the last features, and of the head's weights over the program's tiles."""
    dtype = h.dtype.element_ty
    factor = tl.load(gradient_scale)
    cols = tl.arange(0, F)[None, :]
    first = _matrix(packed, 0, F, dtype)
    second = _matrix(packed, 1, F, dtype)
    g_first = tl.zeros([F, F], tl.float32)
    g_second = tl.zeros([F, F], tl.float32)
    g_lines = tl.zeros([16, F], tl.float32)
    g_bias = tl.zeros([ROWS], tl.float32)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = _tile(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = rows * num_samples + sample
        given = tl.load(h + at[:, None] * F + cols, mask=real[:, None], other=0.0)
        d_logit = tl.load(d_logits + at, mask=real, other=0.0) * factor
        # Again what the forward pass computed.
        hidden = _dot(given, first) + _vector(packed, HEAD_MATRICES, 0, F)
        first_standard, first_inverse, first_zero = _standardise(tl.maximum(hidden, 0.0), F)
        middle = first_standard.to(dtype)
        hidden = _dot(middle, second) + _vector(packed, HEAD_MATRICES, 1, F)
        standard, inverse, zero = _standardise(tl.maximum(hidden, 0.0), F)
        # And back.
        g_bias += d_logit
        g_lines = _add_sum(_narrow(standard * d_logit[:, None], dtype), 2, g_lines, ROWS)
        d_standard = d_logit[:, None] * _vector(packed, HEAD_MATRICES, 2, F)
        d_hidden = _standardise_backward(d_standard, standard, inverse, F)
        d_narrow = _narrow(tl.where(standard > zero, d_hidden, 0.0), dtype)
        g_lines = _add_sum(d_narrow, 1, g_lines, ROWS)
        g_second = _add_dot(tl.trans(middle), d_narrow, g_second)
        d_hidden = _standardise_backward(_dot(d_narrow, tl.trans(second)), first_standard, first_inverse, F)
        d_narrow = _narrow(tl.where(first_standard > first_zero, d_hidden, 0.0), dtype)
        g_lines = _add_sum(d_narrow, 0, g_lines, ROWS)
        g_first = _add_dot(tl.trans(given), d_narrow, g_first)
        d_given = _narrow(_dot(d_narrow, tl.trans(first)), dtype)
        tl.store(d_h + at[:, None] * F + cols, d_given, mask=inside[:, None])
    grads += tl.program_id(0).to(tl.int64) * num_packed
    _store_matrix(grads, 0, g_first, F)
    _store_matrix(grads, 1, g_second, F)
    for index in tl.static_range(3):
        _store_vector(grads, HEAD_MATRICES, index, _line(g_lines, index), F)
    tl.store(grads + (HEAD_MATRICES * F + HEAD_VECTORS) * F, tl.sum(g_bias, 0))


@triton.jit
def layer_backward_kernel(
    h_next: tl.tensor,
    first_kept: tl.tensor,
    lines_kept: tl.tensor,
    d_messages: tl.tensor,
    packed: tl.tensor,
    d_h: tl.tensor,
    d_sum: tl.tensor,
    d_first: tl.tensor,
    d_normal: tl.tensor,
    grads: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    num_units: tl.tensor,
    num_packed: tl.tensor,
    HAS_NEXT: tl.constexpr,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """From the gradient of a layer's result to those inside it and, in place, that of its input but for the messages.

    Of the weights' gradients only the second matrix's is here. Those of the others need nothing but what is stored
    here, and all at once they would not fit in the registers: see `products_kernel`.
    """
    dtype = d_h.dtype.element_ty
    cols = tl.arange(0, F)[None, :]
    skip = tl.trans(_matrix(packed, SKIP, F, dtype))
    first_h = tl.trans(_matrix(packed, FIRST_H, F, dtype))
    first_a = tl.trans(_matrix(packed, FIRST_A, F, dtype))
    second = tl.trans(_matrix(packed, SECOND, F, dtype))
    if HAS_NEXT:
        message = tl.trans(_matrix(packed + (LAYER_MATRICES * F + LAYER_VECTORS) * F, MESSAGE, F, dtype))
    g_second = tl.zeros([F, F], tl.float32)
    g_lines = tl.zeros([16, F], tl.float32)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = _tile(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = (rows * num_samples + sample)[:, None] * F + cols
        line = (rows * num_samples + sample) * 3
        d_result = tl.load(d_h + at, mask=real[:, None], other=0.0).to(tl.float32)
        if HAS_NEXT:
            d_message = tl.load(d_messages + at, mask=real[:, None], other=0.0)
            d_result = _add_dot(d_message, message, d_result)
        standard = tl.load(h_next + at, mask=real[:, None], other=0.0).to(tl.float32)
        inverse = tl.load(lines_kept + line + 2, mask=real, other=0.0)[:, None]
        d_narrow = _narrow(_standardise_backward(d_result, standard, inverse, F), dtype)
        tl.store(d_sum + at, d_narrow, mask=inside[:, None])
        d_given = _dot(d_narrow, skip)
        narrow = tl.load(first_kept + at, mask=real[:, None], other=0.0)
        d_narrow = tl.where(_last_bit(narrow) > 0, d_narrow, 0.0)
        g_lines = _add_sum(d_narrow, 0, g_lines, ROWS)
        g_second = _add_dot(tl.trans(narrow), d_narrow, g_second)
        d_standard = _dot(d_narrow, second)
        standard = _with_bit(narrow, narrow != narrow).to(tl.float32)
        inverse = tl.load(lines_kept + line, mask=real, other=0.0)[:, None]
        zero = tl.load(lines_kept + line + 1, mask=real, other=0.0).to(dtype)
        zero = _with_bit(zero, zero != zero).to(tl.float32)[:, None]
        d_hidden = _standardise_backward(d_standard, standard, inverse, F)
        d_narrow = _narrow(tl.where(standard > zero, d_hidden, 0.0), dtype)
        tl.store(d_first + at, d_narrow, mask=inside[:, None])
        d_given = _add_dot(d_narrow, first_h, d_given)
        tl.store(d_h + at, _narrow(d_given, dtype), mask=inside[:, None])
        tl.store(d_normal + at, _narrow(_dot(d_narrow, first_a), dtype), mask=inside[:, None])
    grads += tl.program_id(0).to(tl.int64) * num_packed
    _store_matrix(grads, SECOND, g_second, F)
    _store_vector(grads, LAYER_MATRICES, SECOND_BIAS, _line(g_lines, 0), F)


@triton.jit
def products_kernel(
    h: tl.tensor,
    summed: tl.tensor,
    row_scale: tl.tensor,
    sums: tl.tensor,
    packed: tl.tensor,
    d_sum: tl.tensor,
    d_first: tl.tensor,
    d_messages: tl.tensor,
    grads: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    num_units: tl.tensor,
    num_packed: tl.tensor,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradients of a layer's weights that are products of its input and gradients stored by other kernels."""
    dtype = h.dtype.element_ty
    cols = tl.arange(0, F)[None, :]
    g_skip = tl.zeros([F, F], tl.float32)
    g_first_h = tl.zeros([F, F], tl.float32)
    g_first_a = tl.zeros([F, F], tl.float32)
    g_message = tl.zeros([F, F], tl.float32)
    g_lines = tl.zeros([16, F], tl.float32)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = _tile(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = (rows * num_samples + sample)[:, None] * F + cols
        given = tl.trans(tl.load(h + at, mask=real[:, None], other=0.0))
        gradient = tl.load(d_sum + at, mask=real[:, None], other=0.0)
        g_skip = _add_dot(given, gradient, g_skip)
        g_lines = _add_sum(gradient, 0, g_lines, ROWS)
        gradient = tl.load(d_messages + at, mask=real[:, None], other=0.0)
        g_message = _add_dot(given, gradient, g_message)
        g_lines = _add_sum(gradient, 1, g_lines, ROWS)
        gradient = tl.load(d_first + at, mask=real[:, None], other=0.0)
        g_first_h = _add_dot(given, gradient, g_first_h)
        g_lines = _add_sum(gradient, 2, g_lines, ROWS)
        normal = _normal_sum(summed, row_scale, sums, packed, graph, sample, rows, real, sizes, num_samples, F)
        g_first_a = _add_dot(tl.trans(normal.to(dtype)), gradient, g_first_a)
    grads += tl.program_id(0).to(tl.int64) * num_packed
    _store_matrix(grads, SKIP, g_skip, F)
    _store_matrix(grads, MESSAGE, g_message, F)
    _store_matrix(grads, FIRST_H, g_first_h, F)
    _store_matrix(grads, FIRST_A, g_first_a, F)
    _store_vector(grads, LAYER_MATRICES, SKIP_BIAS, _line(g_lines, 0), F)
    _store_vector(grads, LAYER_MATRICES, MESSAGE_BIAS, _line(g_lines, 1), F)
    _store_vector(grads, LAYER_MATRICES, FIRST_BIAS, _line(g_lines, 2), F)


@triton.jit
def norm_backward_kernel(
    summed: tl.tensor,
    row_scale: tl.tensor,
    sums: tl.tensor,
    packed: tl.tensor,
    d_values: tl.tensor,
    grad_scale: tl.tensor,
    d_shares: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Through GraphNorm, in place: gradient of the normalised sums -> gradient of the neighbour sums, of one item."""
    item = tl.program_id(0)
    graph = item // num_samples
    size = tl.load(sizes + graph)
    start = tl.load(starts + graph)
    extent = tl.load(extents + graph)
    cols = tl.arange(0, F)
    share = _vector(packed, LAYER_MATRICES, MEAN_SHARE, F)
    mean, inverse = _graph_moments(sums, item, size, share, F)
    straight = tl.zeros([ROWS, F], tl.float32)
    along = tl.zeros([ROWS, F], tl.float32)
    for first in range(0, size, ROWS):
        local = first + tl.arange(0, ROWS)
        real = (local < size)[:, None]
        at = ((start + local) * num_samples + item % num_samples)[:, None] * F + cols[None, :]
        gradient = tl.load(d_values + at, mask=real, other=0.0).to(tl.float32)
        given_scale = tl.load(row_scale + start + local, mask=local < size, other=0.0)[:, None]
        centred = tl.load(summed + at, mask=real, other=0.0).to(tl.float32) * given_scale - share * mean
        straight += gradient
        along += gradient * centred
    # With c = x - share * mean, v = mean(c^2) and y = c / sqrt(v + eps).
    count = tl.maximum(size, 1).to(tl.float32)
    sum_straight = tl.sum(straight, 0)[None, :]
    sum_along = tl.sum(along, 0)[None, :]
    d_variance = -0.5 * inverse * inverse * inverse * sum_along
    d_centred = inverse * sum_straight + 2 * d_variance * mean * (1 - share)
    tl.store(d_shares + item * F + cols, tl.reshape(-mean * d_centred, [F]))
    for first in range(0, extent, ROWS):
        local = first + tl.arange(0, ROWS)
        real = (local < size)[:, None]
        at = ((start + local) * num_samples + item % num_samples)[:, None] * F + cols[None, :]
        gradient = tl.load(d_values + at, mask=real, other=0.0).to(tl.float32)
        given_scale = tl.load(row_scale + start + local, mask=local < size, other=0.0)[:, None]
        centred = tl.load(summed + at, mask=real, other=0.0).to(tl.float32) * given_scale - share * mean
        result = inverse * gradient + (2 * d_variance * centred - share * d_centred) / count
        result *= tl.load(grad_scale + start + local, mask=local < size, other=0.0)[:, None]
        result = _narrow(tl.where(real, result, 0.0), d_values.dtype.element_ty)
        tl.store(d_values + at, result, mask=(local < extent)[:, None])


@triton.jit
def encode_backward_kernel(
    x: tl.tensor,
    features: tl.tensor,
    node_inputs: tl.tensor,
    step: tl.tensor,
    d_h: tl.tensor,
    d_messages: tl.tensor,
    packed: tl.tensor,
    grads: tl.tensor,
    starts: tl.tensor,
    sizes: tl.tensor,
    extents: tl.tensor,
    num_samples: tl.tensor,
    num_blocks: tl.tensor,
    num_units: tl.tensor,
    num_packed: tl.tensor,
    num_inputs: tl.constexpr,
    R: tl.constexpr,
    WEIGHTED: tl.constexpr,
    K: tl.constexpr,
    F: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of the encoder over the program's tiles."""
    dtype = d_h.dtype.element_ty
    cols = tl.arange(0, F)[None, :]
    message = tl.trans(_matrix(packed + num_inputs * F, MESSAGE, F, dtype))
    g_encoder = tl.zeros([K, F], tl.float32)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = _tile(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = (rows * num_samples + sample)[:, None] * F + cols
        d_message = tl.load(d_messages + at, mask=real[:, None], other=0.0)
        d_encoded = tl.load(d_h + at, mask=real[:, None], other=0.0).to(tl.float32)
        d_encoded = _add_dot(d_message, message, d_encoded)
        inputs = _inputs(x, features, node_inputs, step, graph, rows, real, sample, num_samples, R, WEIGHTED, K, dtype)
        g_encoder = _add_dot(tl.trans(inputs), _narrow(d_encoded, dtype), g_encoder)
    grads += tl.program_id(0).to(tl.int64) * num_packed
    lines = tl.arange(0, K)[:, None]
    tl.store(grads + lines * F + cols, g_encoder, mask=lines < num_inputs)


# --------------------------------------------------------------------------------------------- sparse neighbour sum


@triton.jit
def neighbor_sum_kernel(
    values: tl.tensor,
    graph_ids: tl.tensor,
    pointers: tl.tensor,
    neighbors: tl.tensor,
    weights: tl.tensor,
    row_scale: tl.tensor,
    result: tl.tensor,
    num_rows_per_graph: tl.tensor,
    num_pointers: tl.tensor,
    num_columns: tl.tensor,
    HAS_WEIGHTS: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    NEIGHBORS: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    """Sum of the neighbours' rows, `NEIGHBORS` of them at a time, for one row and `COLUMNS` of its columns."""
    row = tl.program_id(0).to(tl.int64)
    graph = row // num_rows_per_graph
    at = tl.load(graph_ids + graph) * num_pointers + row % num_rows_per_graph
    first = tl.load(pointers + at)
    last = tl.load(pointers + at + 1)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([COLUMNS], tl.float32)
    for start in range(first, last, NEIGHBORS):
        slots = start + tl.arange(0, NEIGHBORS)
        there = slots < last
        node = graph * num_rows_per_graph + tl.load(neighbors + slots, mask=there, other=0)
        mask = there[:, None] & (cols < num_columns)[None, :]
        part = tl.load(values + node[:, None] * num_columns + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        if HAS_WEIGHTS:
            part *= tl.load(weights + slots, mask=there, other=0.0)[:, None]
        total += tl.sum(part, 0)
    if HAS_SCALE:
        total *= tl.load(row_scale + row)
    tl.store(result + row * num_columns + cols, total, mask=cols < num_columns)
