"""The gradient of the network's row-wise chains as Triton kernels; the reference is `model.gnn` with autograd.

Each program keeps the gradient of the weights in registers until its last tile. At the end, the gradients of all
programs are summed in a fixed order, so that a run can be repeated exactly.

Types, packed weights and the legend are explained in `triton_gnn_pieces`.
"""

import triton
import triton.language as tl

from diffuco.ops.triton_gnn_pieces import (
    FIRST_A,
    FIRST_BIAS,
    FIRST_H,
    HEAD_MATRICES,
    HEAD_VECTORS,
    LAYER_MATRICES,
    LAYER_VECTORS,
    MEAN_SHARE,
    MESSAGE,
    MESSAGE_BIAS,
    SECOND,
    SECOND_BIAS,
    SKIP,
    SKIP_BIAS,
    add_product,
    add_sum,
    graph_moments,
    last_bit,
    load_inputs,
    load_matrix,
    load_normal_sum,
    load_vector,
    narrowed,
    product,
    standardise,
    standardise_backward,
    store_matrix,
    store_vector,
    sum_line,
    tile_of,
    with_bit,
)


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
    first = load_matrix(packed, 0, F, dtype)
    second = load_matrix(packed, 1, F, dtype)
    g_first = tl.zeros([F, F], tl.float32)
    g_second = tl.zeros([F, F], tl.float32)
    g_lines = tl.zeros([16, F], tl.float32)
    g_bias = tl.zeros([ROWS], tl.float32)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = tile_of(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = rows * num_samples + sample
        given = tl.load(h + at[:, None] * F + cols, mask=real[:, None], other=0.0)
        d_logit = tl.load(d_logits + at, mask=real, other=0.0) * factor
        # Compute again what the forward pass computed.
        hidden = product(given, first) + load_vector(packed, HEAD_MATRICES, 0, F)
        first_standard, first_inverse, first_zero = standardise(tl.maximum(hidden, 0.0), F)
        middle = first_standard.to(dtype)
        hidden = product(middle, second) + load_vector(packed, HEAD_MATRICES, 1, F)
        standard, inverse, zero = standardise(tl.maximum(hidden, 0.0), F)
        # Compute the gradients.
        g_bias += d_logit
        g_lines = add_sum(narrowed(standard * d_logit[:, None], dtype), 2, g_lines, ROWS)
        d_standard = d_logit[:, None] * load_vector(packed, HEAD_MATRICES, 2, F)
        d_hidden = standardise_backward(d_standard, standard, inverse, F)
        d_narrow = narrowed(tl.where(standard > zero, d_hidden, 0.0), dtype)
        g_lines = add_sum(d_narrow, 1, g_lines, ROWS)
        g_second = add_product(tl.trans(middle), d_narrow, g_second)
        d_hidden = standardise_backward(product(d_narrow, tl.trans(second)), first_standard, first_inverse, F)
        d_narrow = narrowed(tl.where(first_standard > first_zero, d_hidden, 0.0), dtype)
        g_lines = add_sum(d_narrow, 0, g_lines, ROWS)
        g_first = add_product(tl.trans(given), d_narrow, g_first)
        d_given = narrowed(product(d_narrow, tl.trans(first)), dtype)
        tl.store(d_h + at[:, None] * F + cols, d_given, mask=inside[:, None])
    grads += tl.program_id(0).to(tl.int64) * num_packed
    store_matrix(grads, 0, g_first, F)
    store_matrix(grads, 1, g_second, F)
    for index in tl.static_range(3):
        store_vector(grads, HEAD_MATRICES, index, sum_line(g_lines, index), F)
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
    """Compute the gradients inside a layer; `d_h` turns from that of its result to that of its input without messages.

    Of the weights, only the second matrix and its bias get their gradient here. The gradients of the others need only
    what is stored here, and all of them together would not fit in the registers: see `products_kernel`.
    """
    dtype = d_h.dtype.element_ty
    cols = tl.arange(0, F)[None, :]
    skip = tl.trans(load_matrix(packed, SKIP, F, dtype))
    first_h = tl.trans(load_matrix(packed, FIRST_H, F, dtype))
    first_a = tl.trans(load_matrix(packed, FIRST_A, F, dtype))
    second = tl.trans(load_matrix(packed, SECOND, F, dtype))
    if HAS_NEXT:
        message = tl.trans(load_matrix(packed + (LAYER_MATRICES * F + LAYER_VECTORS) * F, MESSAGE, F, dtype))
    g_second = tl.zeros([F, F], tl.float32)
    g_lines = tl.zeros([16, F], tl.float32)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = tile_of(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = (rows * num_samples + sample)[:, None] * F + cols
        line = (rows * num_samples + sample) * 3
        d_result = tl.load(d_h + at, mask=real[:, None], other=0.0).to(tl.float32)
        if HAS_NEXT:
            d_message = tl.load(d_messages + at, mask=real[:, None], other=0.0)
            d_result = add_product(d_message, message, d_result)
        standard = tl.load(h_next + at, mask=real[:, None], other=0.0).to(tl.float32)
        inverse = tl.load(lines_kept + line + 2, mask=real, other=0.0)[:, None]
        d_narrow = narrowed(standardise_backward(d_result, standard, inverse, F), dtype)
        tl.store(d_sum + at, d_narrow, mask=inside[:, None])
        d_given = product(d_narrow, skip)
        narrow = tl.load(first_kept + at, mask=real[:, None], other=0.0)
        d_narrow = tl.where(last_bit(narrow) > 0, d_narrow, 0.0)
        g_lines = add_sum(d_narrow, 0, g_lines, ROWS)
        g_second = add_product(tl.trans(narrow), d_narrow, g_second)
        d_standard = product(d_narrow, second)
        standard = with_bit(narrow, narrow != narrow).to(tl.float32)
        inverse = tl.load(lines_kept + line, mask=real, other=0.0)[:, None]
        zero = tl.load(lines_kept + line + 1, mask=real, other=0.0).to(dtype)
        zero = with_bit(zero, zero != zero).to(tl.float32)[:, None]
        d_hidden = standardise_backward(d_standard, standard, inverse, F)
        d_narrow = narrowed(tl.where(standard > zero, d_hidden, 0.0), dtype)
        tl.store(d_first + at, d_narrow, mask=inside[:, None])
        d_given = add_product(d_narrow, first_h, d_given)
        tl.store(d_h + at, narrowed(d_given, dtype), mask=inside[:, None])
        tl.store(d_normal + at, narrowed(product(d_narrow, first_a), dtype), mask=inside[:, None])
    grads += tl.program_id(0).to(tl.int64) * num_packed
    store_matrix(grads, SECOND, g_second, F)
    store_vector(grads, LAYER_MATRICES, SECOND_BIAS, sum_line(g_lines, 0), F)


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
        graph, sample, rows, real, inside = tile_of(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = (rows * num_samples + sample)[:, None] * F + cols
        given = tl.trans(tl.load(h + at, mask=real[:, None], other=0.0))
        gradient = tl.load(d_sum + at, mask=real[:, None], other=0.0)
        g_skip = add_product(given, gradient, g_skip)
        g_lines = add_sum(gradient, 0, g_lines, ROWS)
        gradient = tl.load(d_messages + at, mask=real[:, None], other=0.0)
        g_message = add_product(given, gradient, g_message)
        g_lines = add_sum(gradient, 1, g_lines, ROWS)
        gradient = tl.load(d_first + at, mask=real[:, None], other=0.0)
        g_first_h = add_product(given, gradient, g_first_h)
        g_lines = add_sum(gradient, 2, g_lines, ROWS)
        normal = load_normal_sum(summed, row_scale, sums, packed, graph, sample, rows, real, sizes, num_samples, F)
        g_first_a = add_product(tl.trans(normal.to(dtype)), gradient, g_first_a)
    grads += tl.program_id(0).to(tl.int64) * num_packed
    store_matrix(grads, SKIP, g_skip, F)
    store_matrix(grads, MESSAGE, g_message, F)
    store_matrix(grads, FIRST_H, g_first_h, F)
    store_matrix(grads, FIRST_A, g_first_a, F)
    store_vector(grads, LAYER_MATRICES, SKIP_BIAS, sum_line(g_lines, 0), F)
    store_vector(grads, LAYER_MATRICES, MESSAGE_BIAS, sum_line(g_lines, 1), F)
    store_vector(grads, LAYER_MATRICES, FIRST_BIAS, sum_line(g_lines, 2), F)


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
    """GraphNorm: turn one item's gradient of the normalised sums into that of the neighbour sums, in place."""
    item = tl.program_id(0)
    graph = item // num_samples
    size = tl.load(sizes + graph)
    start = tl.load(starts + graph)
    extent = tl.load(extents + graph)
    cols = tl.arange(0, F)
    share = load_vector(packed, LAYER_MATRICES, MEAN_SHARE, F)
    mean, inverse = graph_moments(sums, item, size, share, F)
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
        result = narrowed(tl.where(real, result, 0.0), d_values.dtype.element_ty)
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
    message = tl.trans(load_matrix(packed + num_inputs * F, MESSAGE, F, dtype))
    g_encoder = tl.zeros([K, F], tl.float32)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = tile_of(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = (rows * num_samples + sample)[:, None] * F + cols
        d_message = tl.load(d_messages + at, mask=real[:, None], other=0.0)
        d_encoded = tl.load(d_h + at, mask=real[:, None], other=0.0).to(tl.float32)
        d_encoded = add_product(d_message, message, d_encoded)
        inputs = load_inputs(
            x, features, node_inputs, step, graph, rows, real, sample, num_samples, R, WEIGHTED, K, dtype
        )
        g_encoder = add_product(tl.trans(inputs), narrowed(d_encoded, dtype), g_encoder)
    grads += tl.program_id(0).to(tl.int64) * num_packed
    lines = tl.arange(0, K)[:, None]
    tl.store(grads + lines * F + cols, g_encoder, mask=lines < num_inputs)
