"""The paper's measures: relative error, best relative error and AR* (App. C.1), their means, and n_Query (App. B.5).

Energies are arrays [graphs, samples], and lower is better; references are [graphs].
"""

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray


def relative_error(energies: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """(mean over samples - E_ref) / |E_ref| of every graph, and 0 if both are 0. [G, S], [G] -> [G].

    If the reference is optimal, this is the paper's |E_opt - mean| / |E_opt|. A reference that is only the best known
    can be beaten, and then the error is negative.

    >>> relative_error([[-18, -20], [-10, -10], [-6, -6]], [-20, -10, -5]).tolist()
    [0.05, 0.0, -0.2]
    """
    return _relative_excess(np.asarray(energies, dtype=np.float64).mean(axis=1), reference)


def best_relative_error(energies: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """The same for the sample of lowest energy. [G, S], [G] -> [G]."""
    return _relative_excess(best_of(energies), reference)


def best_approximation_ratio(energies: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """AR*: lowest energy of the samples over the optimal energy. [G, S], [G] -> [G].

    >>> best_approximation_ratio([[11, 10]], [10]).tolist()
    [1.0]
    """
    return best_of(energies) / np.asarray(reference, dtype=np.float64)


def best_of(energies: ArrayLike) -> NDArray[np.float64]:
    """Lowest energy among the samples of every graph. [G, S] -> [G]."""
    best: NDArray[np.float64] = np.asarray(energies, dtype=np.float64).min(axis=1)
    return best


Part = TypeVar("Part", bound=Hashable)


class Mean(NamedTuple):
    """A mean with its standard error, which is NaN (unknown) if there is only one value."""

    mean: float
    standard_error: float
    num_values: int


def mean_with_error(values: ArrayLike) -> Mean:
    """Mean and standard error of one figure per graph, or per training seed.

    >>> mean_with_error([1.0, 3.0])
    Mean(mean=2.0, standard_error=1.0, num_values=2)
    """
    given = np.asarray(values, dtype=np.float64)
    error = float(given.std(ddof=1) / np.sqrt(len(given))) if len(given) > 1 else float("nan")
    return Mean(float(given.mean()), error, len(given))


def mean_by(values: ArrayLike, parts: Sequence[Part]) -> dict[Part, Mean]:
    """Mean and standard error for each part of the graphs, such as AR* by the tightness p of RB graphs.

    >>> ratios = best_approximation_ratio([[11], [10], [10]], [10, 10, 10])
    >>> {p: ratio.mean for p, ratio in mean_by(ratios, [0.25, 0.25, 1.0]).items()}
    {0.25: 1.05, 1.0: 1.0}
    """
    given: dict[Part, list[float]] = {}
    for part, value in zip(parts, np.asarray(values, dtype=np.float64), strict=True):
        given.setdefault(part, []).append(float(value))
    return {part: mean_with_error(own) for part, own in given.items()}


def n_query(training_s: float, solving_s: float, other_s: float) -> float:
    """Graphs after which training has paid off: the smallest n with training + n * solving < n * other.

    `training_s` is the time of one training. `solving_s` and `other_s` are the times per graph of the model and of
    another solver that is as good. The paper prints the right-hand side without n, but can only mean this. The result
    is infinite if the other solver is not slower.

    >>> n_query(training_s=3600, solving_s=0.5, other_s=2.5)
    1801
    """
    if other_s <= solving_s:
        return math.inf
    return math.floor(training_s / (other_s - solving_s)) + 1


def _relative_excess(energies: NDArray[np.float64], reference: ArrayLike) -> NDArray[np.float64]:
    known = np.asarray(reference, dtype=np.float64)
    excess = energies - known
    without_scale = np.where(excess == 0, 0.0, np.copysign(np.inf, excess))
    return np.divide(excess, np.abs(known), out=without_scale, where=known != 0)
