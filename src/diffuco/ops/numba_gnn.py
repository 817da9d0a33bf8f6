"""The layers of the network on a CPU: compiled loops over tiles of rows that stay in the cache.

A layer in torch writes every intermediate result of all nodes to memory and reads it again. Here a tile passes through
the whole layer at once, with one small matrix product after the other. The parameters are packed as for the kernels of
a GPU (`model.engine.layout`): norms are folded into the matrix after them, so rows are only standardised here.

Tiles are stored as [F, TILE], with a feature's values side by side: a norm over features then adds whole vectors. Only
messages and their sums are rows [F], because neighbours are read one by one. A message is read from memory as often as
its node has neighbours, so its features are whole numbers of 16 bits, in units that the caller knows.

Legend: N nodes, S samples, F hidden features, C = S F columns, R rows: row i S + s is sample s of node i, and tile t
holds the rows from t TILE on.
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
SHORTS_PER_LINE = 32
"""Of a line of the cache, which has 64 bytes."""
AHEAD = 8
"""Neighbours whose messages are fetched into the cache before they are added."""
EPSILON = np.float32(1e-5)
ZERO = np.float32(0)

_fast = numba.njit(cache=True, nogil=True, fastmath=True)


@_fast
def neighbor_rows(
    first: int, last: int, indptr: Ints, indices: Ints, weights: Floats, messages: Shorts, summed: Floats
) -> None:
    """Sum the messages of each node's neighbours; without weights, `weights` is empty. [N, C] -> [N, C]."""
    num_columns, end = messages.shape[1], indptr[last]
    for node in range(first, last):
        row = summed[node]
        row[:] = 0
        for edge in range(indptr[node], indptr[node + 1]):
            if edge + AHEAD < end:
                for column in range(0, num_columns, SHORTS_PER_LINE):
                    prefetch(messages, indices[edge + AHEAD], column)
            message = messages[indices[edge]]
            weight = weights[edge] if len(weights) else np.float32(1)
            for column in range(num_columns):
                row[column] += weight * np.float32(message[column])


@_fast
def scale_rows(first: int, last: int, scale: Floats, units: Floats, summed: Floats, sums: Floats) -> None:
    """Scale each node's row from units [C], and add up the rows and their squares. [N, C], sums [2, C]."""
    sums[:] = 0
    for node in range(first, last):
        row = summed[node]
        for column in range(len(row)):
            value = scale[node] * units[column] * row[column]
            row[column] = value
            sums[0, column] += value
            sums[1, column] += value * value


@_fast
def layer_tiles(
    first: int,
    last: int,
    h: Floats,
    summed: Floats,
    group: Ints,
    offset: Floats,
    factor: Floats,
    matrices: Floats,
    biases: Floats,
    message: Floats,
    message_bias: Floats,
    messages: Shorts,
) -> None:
    """One layer for tiles of h [tiles, F, TILE], in place; messages [R, F] of the next if `message` is not empty.

    The sum over neighbours of a row in group g is standardised by `offset[g]` and `factor[g]`, in place. `matrices`
    [4, F, F], as [out, in], are skip, first, first of the sum, second; `biases` [3, F] those of skip, first and second.
    """
    num_features = h.shape[1]
    skip, sent = np.empty((num_features, TILE), dtype=np.float32), np.empty((TILE, num_features), dtype=np.float32)
    hidden, extra, moments = np.empty_like(skip), np.empty_like(skip), np.empty((2, TILE), dtype=np.float32)
    for tile in range(first, last):
        start, own = tile * TILE, h[tile]
        near = summed[start : start + TILE]
        for row in range(TILE):
            own_offset, own_factor = offset[group[start + row]], factor[group[start + row]]
            for column in range(num_features):
                near[row, column] = (near[row, column] - own_offset[column]) * own_factor[column]
        np.dot(matrices[2], near.T, extra)
        np.dot(matrices[1], own, hidden)
        for column in range(num_features):
            for row in range(TILE):
                hidden[column, row] = max(hidden[column, row] + extra[column, row] + biases[1, column], ZERO)
        standardise(hidden, moments)
        np.dot(matrices[3], hidden, extra)
        np.dot(matrices[0], own, skip)
        for column in range(num_features):
            for row in range(TILE):
                value = max(extra[column, row] + biases[2, column], ZERO)
                own[column, row] = skip[column, row] + value + biases[0, column]
        standardise(own, moments)
        if len(message):
            np.dot(own.T, message, sent)
            for row in range(TILE):
                for column in range(num_features):
                    messages[start + row, column] = np.int16(np.rint(sent[row, column] + message_bias[column]))


@_fast
def head_tiles(first: int, last: int, h: Floats, matrices: Floats, vectors: Floats, bias: float, out: Floats) -> None:
    """The head: two hidden layers [2, F, F], [out, in]; `vectors` are their biases and the last column. Logits [R]."""
    num_features = h.shape[1]
    before = np.empty((num_features, TILE), dtype=np.float32)
    hidden, moments = np.empty_like(before), np.empty((2, TILE), dtype=np.float32)
    for tile in range(first, last):
        np.dot(matrices[0], h[tile], before)
        for column in range(num_features):
            for row in range(TILE):
                before[column, row] = max(before[column, row] + vectors[0, column], ZERO)
        standardise(before, moments)
        np.dot(matrices[1], before, hidden)
        for column in range(num_features):
            for row in range(TILE):
                hidden[column, row] = max(hidden[column, row] + vectors[1, column], ZERO)
        standardise(hidden, moments)
        logits = out[tile * TILE : (tile + 1) * TILE]
        logits[:] = bias
        for column in range(num_features):
            for row in range(TILE):
                logits[row] += hidden[column, row] * vectors[2, column]


@_fast
def standardise(values: Floats, moments: Floats) -> None:
    """Give each row of a tile mean 0 and variance 1 over its features. [F, TILE], `moments` [2, TILE] is scratch."""
    num_features = len(values)
    mean, scale = moments[0], moments[1]
    mean[:] = 0
    scale[:] = 0
    for column in range(num_features):
        for row in range(TILE):
            mean[row] += values[column, row]
    for row in range(TILE):
        mean[row] /= np.float32(num_features)
    for column in range(num_features):
        for row in range(TILE):
            values[column, row] -= mean[row]
            scale[row] += values[column, row] * values[column, row]
    for row in range(TILE):
        scale[row] = np.float32(1) / np.sqrt(scale[row] / np.float32(num_features) + EPSILON)
    for column in range(num_features):
        for row in range(TILE):
            values[column, row] *= scale[row]
