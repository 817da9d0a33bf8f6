"""Connected components of a graph that is given by the ends of its edges: a compiled union-find."""

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

Ints = NDArray[np.int64]


@compiled
def smallest_connected(num_vertices: int, first: Ints, second: Ints) -> Ints:
    """The smallest vertex of each vertex's component. Trees of labels point down, and every walk shortens its path."""
    label = np.arange(num_vertices)
    for e in range(len(first)):
        one, other = first[e], second[e]
        while label[one] != one:
            label[one] = label[label[one]]
            one = label[one]
        while label[other] != other:
            label[other] = label[label[other]]
            other = label[other]
        label[max(one, other)] = min(one, other)
    for vertex in range(num_vertices):
        label[vertex] = label[label[vertex]]
    return label
