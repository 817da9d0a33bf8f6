"""The paper's measures of quality (App. C.1): relative error, best relative error, AR* and mean over seeds.

Arrays are [graphs, samples] of energies or objectives; references are [graphs].
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


def relative_error(values: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """|E_opt - mean over samples| / |E_opt| of every graph, where 0 of 0 is no error. [G, S], [G] -> [G].

    >>> relative_error([[18, 20], [10, 10]], [20, 10]).tolist()
    [0.05, 0.0]
    """
    return _relative_distance(np.asarray(values, dtype=np.float64).mean(axis=1), reference)


def best_relative_error(energies: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """The same for the sample of lowest energy. [G, S], [G] -> [G]."""
    return _relative_distance(best_of(energies), reference)


def best_approximation_ratio(energies: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """AR*: lowest energy of the samples over the optimal energy. [G, S], [G] -> [G].

    >>> best_approximation_ratio([[11, 10]], [10]).tolist()
    [1.0]
    """
    return best_of(energies) / np.asarray(reference, dtype=np.float64)


def best_of(energies: ArrayLike, count: int | None = None) -> NDArray[np.float64]:
    """Lowest energy among the first `count` samples (all by default) of every graph. [G, S] -> [G]."""
    best: NDArray[np.float64] = np.asarray(energies, dtype=np.float64)[:, :count].min(axis=1)
    return best


class SeedMean(NamedTuple):
    """A mean with its spread over seeds; the standard error where there is one seed is unknown and NaN."""

    mean: float
    standard_error: float
    num_seeds: int


def over_seeds(values: ArrayLike) -> SeedMean:
    """Mean and standard error over training seeds of a figure that is already a mean over graphs and samples.

    >>> over_seeds([1.0, 3.0])
    SeedMean(mean=2.0, standard_error=1.0, num_seeds=2)
    """
    given = np.asarray(values, dtype=np.float64)
    error = float(given.std(ddof=1) / np.sqrt(len(given))) if len(given) > 1 else float("nan")
    return SeedMean(float(given.mean()), error, len(given))


def _relative_distance(values: NDArray[np.float64], reference: ArrayLike) -> NDArray[np.float64]:
    optimum = np.asarray(reference, dtype=np.float64)
    distance = np.abs(optimum - values)
    return np.divide(distance, np.abs(optimum), out=np.where(distance > 0, np.inf, 0.0), where=optimum != 0)
