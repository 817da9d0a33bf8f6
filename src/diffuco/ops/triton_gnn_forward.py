"""The network's row-wise chains as Triton kernels, and sums over neighbour lists; the reference is `model.gnn`.

Between two neighbour sums a layer only needs the rows of one tile, so one kernel does all of it: normalise the sum,
node MLP, skip, layer norm, and the message product of the next layer. A tile is `ROWS` nodes of one graph and one
sample. Programs are persistent: they read the weights once and walk over tiles.

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
    MESSAGE,
    MESSAGE_BIAS,
    SECOND,
    SECOND_BIAS,
    SKIP,
    SKIP_BIAS,
    add_product,
    load_encoder,
    load_inputs,
    load_matrix,
    load_normal_sum,
    load_vector,
    product,
    standardise,
    tile_of,
    with_bit,
)


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
    encoder = load_encoder(packed, num_inputs, K, F, dtype)
    message = load_matrix(packed + num_inputs * F, MESSAGE, F, dtype)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = tile_of(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        inputs = load_inputs(
            x, features, node_inputs, step, graph, rows, real, sample, num_samples, R, WEIGHTED, K, dtype
        )
        encoded = product(inputs, encoder).to(dtype)
        at = (rows * num_samples + sample)[:, None] * F + cols
        tl.store(h + at, encoded, mask=inside[:, None])
        sent = product(encoded, message) + load_vector(packed + num_inputs * F, LAYER_MATRICES, MESSAGE_BIAS, F)
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
    """One layer after its neighbour sum, and the messages of the next; `KEEP` also stores what its gradient needs."""
    dtype = h.dtype.element_ty
    cols = tl.arange(0, F)[None, :]
    skip = load_matrix(packed, SKIP, F, dtype)
    first_h = load_matrix(packed, FIRST_H, F, dtype)
    first_a = load_matrix(packed, FIRST_A, F, dtype)
    second = load_matrix(packed, SECOND, F, dtype)
    if HAS_NEXT:
        next_packed = packed + (LAYER_MATRICES * F + LAYER_VECTORS) * F
        message = load_matrix(next_packed, MESSAGE, F, dtype)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = tile_of(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = (rows * num_samples + sample)[:, None] * F + cols
        line = (rows * num_samples + sample)[:, None] * 3
        given = tl.load(h + at, mask=real[:, None], other=0.0)
        normal = load_normal_sum(summed, row_scale, sums, packed, graph, sample, rows, real, sizes, num_samples, F)
        # Vectors are read where they are needed, because they would fill the registers over the whole loop.
        hidden = add_product(normal.to(dtype), first_a, product(given, first_h))
        hidden += load_vector(packed, LAYER_MATRICES, FIRST_BIAS, F)
        standard, inverse, zero = standardise(tl.maximum(hidden, 0.0), F)
        narrow = standard.to(dtype)
        if KEEP:
            tl.store(lines_kept + line, inverse, mask=inside[:, None])
            tl.store(lines_kept + line + 1, zero, mask=inside[:, None])
        hidden = product(narrow, second) + load_vector(packed, LAYER_MATRICES, SECOND_BIAS, F)
        if KEEP:
            tl.store(first_kept + at, with_bit(narrow, hidden > 0), mask=inside[:, None])
        hidden = tl.maximum(hidden, 0.0) + load_vector(packed, LAYER_MATRICES, SKIP_BIAS, F)
        standard, inverse, zero = standardise(add_product(given, skip, hidden), F)
        if KEEP:
            tl.store(lines_kept + line + 2, inverse, mask=inside[:, None])
        result = tl.where(real[:, None], standard, 0.0).to(dtype)
        tl.store(h_next + at, result, mask=inside[:, None])
        if HAS_NEXT:
            sent = product(result, message) + load_vector(next_packed, LAYER_MATRICES, MESSAGE_BIAS, F)
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
    first = load_matrix(packed, 0, F, dtype)
    second = load_matrix(packed, 1, F, dtype)
    bias = tl.load(packed + (HEAD_MATRICES * F + HEAD_VECTORS) * F)
    for unit in range(tl.program_id(0), num_units, tl.num_programs(0)):
        graph, sample, rows, real, inside = tile_of(unit, starts, sizes, extents, num_samples, num_blocks, ROWS)
        at = rows * num_samples + sample
        given = tl.load(h + at[:, None] * F + cols, mask=real[:, None], other=0.0)
        hidden = product(given, first) + load_vector(packed, HEAD_MATRICES, 0, F)
        standard, inverse, zero = standardise(tl.maximum(hidden, 0.0), F)
        hidden = product(standard.to(dtype), second) + load_vector(packed, HEAD_MATRICES, 1, F)
        standard, inverse, zero = standardise(tl.maximum(hidden, 0.0), F)
        logit = tl.sum(standard * load_vector(packed, HEAD_MATRICES, 2, F), 1) + bias
        tl.store(logits + at, tl.where(real, logit, 0.0), mask=inside)


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
