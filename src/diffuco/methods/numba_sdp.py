"""The compiled loop of `sdp`; imported when first needed, as numba takes a third of a second."""

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled


@compiled
def mix(
    vectors: NDArray[np.float64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> float:
    """One round of the mixing method, in place: v_i = -g_i / |g_i| with g_i = sum_j w_ij v_j; by how much it gained."""
    gained = 0.0
    for node in range(len(vectors)):
        pull = np.zeros(vectors.shape[1])
        for entry in range(indptr[node], indptr[node + 1]):
            pull += weights[entry] * vectors[indices[entry]]
        length = np.sqrt((pull * pull).sum())
        if length > 1e-12:
            gained += length + (pull * vectors[node]).sum()
            vectors[node] = -pull / length
    return gained / 2
