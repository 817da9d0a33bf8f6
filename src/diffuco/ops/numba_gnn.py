"""The layers of the network on a CPU: compiled loops over tiles of rows that stay in the cache.

A layer in torch writes every intermediate result of all nodes to memory and reads it again. Here a tile passes through
the whole layer at once, with one small matrix product after the other. The parameters are packed as for the kernels of
a GPU (`model.engine.layout`): norms are folded into the matrix after them, so rows are only standardised here.

Rows have a fixed width, so that the compiler knows how long its loops are. Features beyond those of the network are
zeros in all matrices and biases, so they change nothing.

A message is read from memory as often as its node has neighbours, so its features are whole numbers of 16 bits, in
units that the caller knows.

Legend: N nodes, S samples, W features with padding, R rows: row i S + s is sample s of node i, and tile t holds the
rows from t TILE on.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from diffuco.ops.numba_prefetch import prefetch

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int16]

TILE = 64
"""Rows of a tile. Products of 64 x 64 x 64 are small enough for BLAS not to start threads of its own."""
WIDTH = 64
"""Features of a row, with padding."""
SHORTS_PER_LINE = 32
"""Of a line of the cache, which has 64 bytes."""
AHEAD = 16
"""Neighbours whose messages are fetched into the cache before they are added."""
EPSILON = np.float32(1e-5)
ZERO, ONE = np.float32(0), np.float32(1)

_fast = numba.njit(cache=True, nogil=True, fastmath=True)
_inline = numba.njit(inline="always")


@_inline
def scale_row(scale: float, units: Floats, row: Floats, sums: Floats) -> None:
    """Scale a row [W] from units [W], and add it and its squares to `sums` [2, W]."""
    for column in range(WIDTH):
        value = scale * units[column] * row[column]
        row[column] = value
        sums[0, column] += value
        sums[1, column] += value * value


@_fast
def scale_rows(first: int, last: int, scale: Floats, units: Floats, summed: Floats, sums: Floats) -> None:
    """Scale the rows of each node from units [W]; add up rows and squares. `scale` [N], [R, W], sums [S, 2, W]."""
    sums[:] = 0
    for node in range(first, last):
        for sample in range(len(sums)):
            scale_row(scale[node], units, summed[node * len(sums) + sample], sums[sample])


@_fast
def neighbor_rows(
    first: int,
    last: int,
    indptr: Ints,
    indices: Ints,
    weights: Floats,
    messages: Shorts,
    scale: Floats,
    units: Floats,
    summed: Floats,
    sums: Floats,
) -> None:
    """The same for the sums of the messages of each node's neighbours; without weights, `weights` is empty."""
    num_samples, last_edge = len(sums), indptr[last]
    sums[:] = 0
    for node in range(first, last):
        for sample in range(num_samples):
            summed[node * num_samples + sample, :] = 0
        for edge in range(indptr[node], indptr[node + 1]):
            weight = weights[edge] if len(weights) else ONE
            for sample in range(num_samples):
                if edge + AHEAD < last_edge:
                    coming = indices[edge + AHEAD] * num_samples + sample
                    for column in range(0, WIDTH, SHORTS_PER_LINE):
                        prefetch(messages, coming, column)
                row, message = summed[node * num_samples + sample], messages[indices[edge] * num_samples + sample]
                for column in range(WIDTH):
                    row[column] += weight * np.float32(message[column])
        for sample in range(num_samples):
            scale_row(scale[node], units, summed[node * num_samples + sample], sums[sample])


@_inline
def standardise(row: Floats, num_features: int) -> None:
    """Give a row [W] mean 0 and variance 1 over its features; what the padding then holds is multiplied by zeros."""
    total, squares = ZERO, ZERO
    for column in range(WIDTH):
        total += row[column]
        squares += row[column] * row[column]
    mean = total / np.float32(num_features)
    variance = max(squares / np.float32(num_features) - mean * mean, ZERO)
    factor = ONE / np.sqrt(variance + EPSILON)
    for column in range(WIDTH):
        row[column] = (row[column] - mean) * factor


@_fast
def send_tiles(first: int, last: int, h: Floats, matrix: Floats, bias: Floats, sent: Floats, largest: Floats) -> None:
    """What the first layer sends [R, W], and its largest features [W] without their signs."""
    largest[:] = 0
    for start in range(first * TILE, last * TILE, TILE):
        out = sent[start : start + TILE]
        np.dot(h[start : start + TILE], matrix, out)
        for row in range(TILE):
            for column in range(WIDTH):
                out[row, column] += bias[column]
                largest[column] = max(largest[column], abs(out[row, column]))


@_fast
def round_tiles(first: int, last: int, sent: Floats, units: Floats, messages: Shorts) -> None:
    """Messages [R, W] in units [W]."""
    for row in range(first * TILE, last * TILE):
        for column in range(WIDTH):
            messages[row, column] = np.int16(np.rint(sent[row, column] / units[column]))


@_fast
def layer_tiles(
    first: int,
    last: int,
    num_features: int,
    h: Floats,
    summed: Floats,
    group: Ints,
    offset: Floats,
    factor: Floats,
    matrices: Floats,
    biases: Floats,
    following: Floats,
    bias: Floats,
    messages: Shorts,
) -> None:
    """One layer for tiles of h [R, W], in place; messages [R, W] of the next if `following` [0 or 1, W, W] has one.

    The sum over neighbours of a row in group g is standardised by `offset[g]` and `factor[g]`. `matrices` [4, W, W] are
    skip, first, first of the sum, second; `biases` [3, W] those of skip, first and second.
    """
    hidden, extra = np.empty((TILE, WIDTH), dtype=np.float32), np.empty((TILE, WIDTH), dtype=np.float32)
    near = np.empty_like(extra)
    for start in range(first * TILE, last * TILE, TILE):
        own = h[start : start + TILE]
        for row in range(TILE):
            given, own_offset, own_factor = summed[start + row], offset[group[start + row]], factor[group[start + row]]
            for column in range(WIDTH):
                near[row, column] = (given[column] - own_offset[column]) * own_factor[column]
        np.dot(near, matrices[2], extra)
        np.dot(own, matrices[1], hidden)
        for row in range(TILE):
            for column in range(WIDTH):
                hidden[row, column] = max(hidden[row, column] + extra[row, column] + biases[1, column], ZERO)
            standardise(hidden[row], num_features)
        np.dot(hidden, matrices[3], extra)
        np.dot(own, matrices[0], hidden)
        for row in range(TILE):
            for column in range(WIDTH):
                value = max(extra[row, column] + biases[2, column], ZERO)
                own[row, column] = hidden[row, column] + value + biases[0, column]
            standardise(own[row], num_features)
        if len(following):
            np.dot(own, following[0], extra)
            for row in range(TILE):
                message = messages[start + row]
                for column in range(WIDTH):
                    message[column] = np.int16(np.rint(extra[row, column] + bias[column]))


@_fast
def head_tiles(
    first: int, last: int, num_features: int, h: Floats, matrices: Floats, vectors: Floats, bias: float, out: Floats
) -> None:
    """The head: two hidden layers [2, W, W]; `vectors` [3, W] are their biases and the last column. Logits [R]."""
    before, hidden = np.empty((TILE, WIDTH), dtype=np.float32), np.empty((TILE, WIDTH), dtype=np.float32)
    for start in range(first * TILE, last * TILE, TILE):
        np.dot(h[start : start + TILE], matrices[0], before)
        for row in range(TILE):
            for column in range(WIDTH):
                before[row, column] = max(before[row, column] + vectors[0, column], ZERO)
            standardise(before[row], num_features)
        np.dot(before, matrices[1], hidden)
        for row in range(TILE):
            for column in range(WIDTH):
                hidden[row, column] = max(hidden[row, column] + vectors[1, column], ZERO)
            standardise(hidden[row], num_features)
            logit = ZERO
            for column in range(WIDTH):
                logit += hidden[row, column] * vectors[2, column]
            out[start + row] = logit + bias
