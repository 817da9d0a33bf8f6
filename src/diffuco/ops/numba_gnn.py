"""The layers of the network on a CPU: compiled loops over tiles of rows that stay in the cache.

A layer in torch writes every intermediate result of all nodes to memory and reads it again. Here a tile passes through
the whole layer at once, with one small matrix product after the other. The parameters are packed as for the kernels of
a GPU (`model.engine.layout`): norms are folded into the matrix after them, so rows are only standardised here.

The length of rows is part of their type (`ops.numba_vectors`), so each length has loops of its own. Features beyond
those of the network are zeros in all matrices and biases, so they change nothing.

Legend: N nodes, S samples, W features with padding, R rows: row i S + s is sample s of node i, and tile t holds the
rows from t TILE on. Of arrays of rows, the last size is W. Messages have numbers of 16 bits, because their sums wait
for the memory. `spare` [2, TILE, W] is for what comes between.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from diffuco.ops.numba_products import BLOCK, add_product, keep
from diffuco.ops.numba_vectors import load, positive, prefetch, store, total, zeros

Rows = NDArray[Any]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

TILE = 8 * BLOCK
"""Rows of a tile: few enough for all that belongs to them to stay in the cache."""
AHEAD = 16
"""Neighbours whose messages are fetched into the cache before they are added."""
EPSILON = np.float32(1e-5)
ONE = np.float32(1)

_fast = numba.njit(cache=True, nogil=True, fastmath=True)
_inline = numba.njit(inline="always")


@_inline
def scale_row(value: Any, scale: float, summed: Rows, row: int, sums: Rows) -> None:
    """Write a scaled row, and add it and its squares to `sums` [2, W]."""
    value = value * scale
    store(value, summed, row)
    store(load(sums, 0) + value, sums, 0)
    store(load(sums, 1) + value * value, sums, 1)


@_fast
def scale_rows(first: int, last: int, scale: Floats, summed: Rows, sums: Rows) -> None:
    """Scale the rows of each node by `scale` [N]; add up rows and squares. [R, W], sums [S, 2, W]."""
    num_samples = len(sums)
    for node in range(first, last):
        for sample in range(num_samples):
            row = node * num_samples + sample
            scale_row(load(summed, row), scale[node], summed, row, sums[sample])


@_fast
def neighbor_rows(
    first: int,
    last: int,
    indptr: Ints,
    indices: Ints,
    weights: Floats,
    messages: Rows,
    scale: Floats,
    summed: Rows,
    sums: Rows,
) -> None:
    """The same for the sums of the messages of each node's neighbours; without weights, `weights` is empty."""
    num_samples, last_edge = len(sums), indptr[last]
    for node in range(first, last):
        for sample in range(num_samples):
            value = zeros(messages)
            for edge in range(indptr[node], indptr[node + 1]):
                prefetch(messages, indices[min(edge + AHEAD, last_edge - 1)] * num_samples + sample)
                weight = weights[edge] if len(weights) else ONE
                value = value + load(messages, indices[edge] * num_samples + sample) * weight
            scale_row(value, scale[node], summed, node * num_samples + sample, sums[sample])


@_inline
def product(tile: Rows, biases: Rows, bias: int, given: Rows, matrix: Rows) -> None:
    """Fill a tile [TILE, W] with rows times a matrix [W, W], plus one of the biases."""
    for row in range(TILE):
        store(load(biases, bias), tile, row)
    for row in range(0, TILE, BLOCK):
        add_product(tile, given, matrix, row)


@_inline
def standard(row: Any, num_features: int) -> Any:
    """A row with mean 0 and variance 1 over its features; what the padding then holds is multiplied by zeros."""
    share = ONE / np.float32(num_features)
    mean = total(row) * share
    variance = max(total(row * row) * share - mean * mean, np.float32(0))
    return (row - mean) * (ONE / np.sqrt(variance + EPSILON))


@_inline
def encoded(inputs: Floats, row: int, columns: Rows, steps: Rows) -> Any:
    """A row of the inputs times columns, plus the line of its step."""
    value = load(steps, row % len(steps))
    for number in range(len(columns)):
        value = value + load(columns, number) * inputs[row, number]
    return value


@_fast
def encode_rows(
    first: int,
    last: int,
    inputs: Floats,
    columns: Rows,
    steps: Rows,
    h: Rows,
    messages: Rows,
    tile: Rows,
    factors: Rows,
) -> None:
    """Of `inputs` [R, I], the features and the messages of the first layer; `columns` [2, I], `steps` [2, S].

    Nothing comes between, so `tile` and `factors` are not used.
    """
    for row in range(first * TILE, min(last * TILE, len(inputs))):
        keep(encoded(inputs, row, columns[0], steps[0]), h, row)
        store(encoded(inputs, row, columns[1], steps[1]), messages, row)


@_fast
def layer_tiles(
    first: int,
    last: int,
    num_features: int,
    h: Rows,
    summed: Rows,
    group: Ints,
    offset: Rows,
    factor: Rows,
    matrices: Rows,
    biases: Rows,
    following: Rows,
    bias: Rows,
    messages: Rows,
    tile: Rows,
    factors: Rows,
) -> None:
    """One layer for tiles of h [R, W], in place; messages [R, W] of the next if `following` [0 or 1, W, W] has one.

    The sum over neighbours of a row in group g is standardised by `offset[g]` and `factor[g]`. `matrices` [4, W, W] are
    skip, first, first of the sum, second; `biases` [3, W] those of skip, first and second.
    """
    for start in range(first * TILE, last * TILE, TILE):
        own = h[start : start + TILE]
        for row in range(TILE):
            own_group = group[start + row]
            keep((load(summed, start + row) - load(offset, own_group)) * load(factor, own_group), factors, row)
        product(tile, biases, 1, factors, matrices[2])
        for row in range(0, TILE, BLOCK):
            add_product(tile, own, matrices[1], row)
        for row in range(TILE):
            keep(standard(positive(load(tile, row)), num_features), factors, row)
        product(tile, biases, 2, factors, matrices[3])
        for row in range(TILE):
            store(positive(load(tile, row)) + load(biases, 0), tile, row)
        for row in range(0, TILE, BLOCK):
            add_product(tile, own, matrices[0], row)
        for row in range(TILE):
            keep(standard(load(tile, row), num_features), own, row)
        if len(following):
            product(tile, bias, 0, own, following[0])
            for row in range(TILE):
                store(load(tile, row), messages, start + row)


@_fast
def head_tiles(
    first: int,
    last: int,
    num_features: int,
    h: Rows,
    matrices: Rows,
    vectors: Rows,
    bias: float,
    out: Floats,
    tile: Rows,
    factors: Rows,
) -> None:
    """The head: two hidden layers [2, W, W]; `vectors` [3, W] are their biases and the last column. Logits [R]."""
    for start in range(first * TILE, last * TILE, TILE):
        product(tile, vectors, 0, h[start : start + TILE], matrices[0])
        for row in range(TILE):
            keep(standard(positive(load(tile, row)), num_features), factors, row)
        product(tile, vectors, 1, factors, matrices[1])
        for row in range(TILE):
            value = standard(positive(load(tile, row)), num_features)
            out[start + row] = total(value * load(vectors, 2)) + bias
