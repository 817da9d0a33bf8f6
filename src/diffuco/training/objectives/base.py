"""What an objective is: it turns a batch of graphs into gradients, and says what to log."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from diffuco.diffusion.noise import Noise, Temperature
from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser
from diffuco.graphs.batch import Batch
from diffuco.problems import Problem


@dataclass(frozen=True)
class Objective(ABC):
    """What training minimises; its fields are settings, and one named as in `TrainConfig` has the value from there."""

    name: ClassVar[str]
    """What training configurations call it."""
    needs_flips: ClassVar[bool] = False
    """Whether the noise must be one that flips the variables of a solution, a `CategoricalNoise`."""

    @property
    def calls_at_once(self) -> int:
        """Calls of the network that are differentiated together; the fused engine reserves memory for them."""
        return 1

    @property
    def num_examples(self) -> int:
        """Solutions of every training graph that it learns from; annealing finds them before training starts."""
        return 0

    @abstractmethod
    def backward(
        self,
        denoiser: Denoiser,
        problem: Problem,
        noise: Noise,
        batch: Batch,
        *,
        temperature: Temperature,
        random: RandomSource,
        num_graphs: int,
        examples: Tensor | None = None,
    ) -> Mapping[str, Tensor | float]:
        """Add the gradient to the denoiser's parameters; return the numbers to log, as tensors [] or floats.

        The batch may be one process's share: sums over its graphs are divided by `num_graphs`, those of the whole
        batch, and gradients and numbers are then summed over the processes. The first number is shown while training.
        On a GPU all this is recorded as a CUDA graph and replayed, so it must not read tensors back, and shapes must
        not depend on their values. All random numbers come from `random`, so that a run can be resumed exactly.
        `examples` [N, K] are given to an objective that asks for K of them.
        """
