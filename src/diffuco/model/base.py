"""The base class of networks: a torch module that denoises states, built from one frozen dataclass of settings."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch


@dataclass(frozen=True)
class NetworkConfig:
    """The settings that rebuild a network; a network of your own adds fields with defaults."""

    num_steps: int
    """T: diffusion steps that the network is trained for."""


class Network(nn.Module):
    """A denoiser with parameters (`diffusion.reverse.Denoiser`).

    A subclass sets `name`, `Config`, and `num_random_features` if it reads any, and defines `forward`. Checkpoints hold
    the name, the fields of `config` and the state dict, so these three must be enough to rebuild it.
    """

    name: ClassVar[str]
    """Its name in checkpoints and training configurations."""
    Config: ClassVar[type[NetworkConfig]] = NetworkConfig
    """Frozen dataclass of its settings, derived from `NetworkConfig`."""
    is_recordable: ClassVar[bool] = False
    """Whether a GPU may record and replay its calls: they copy no tensor to the CPU, and no shape depends on values."""
    config: NetworkConfig

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config

    @property
    def num_random_features(self) -> int:
        """R: random numbers that each node gets at every step."""
        return 0

    def forward(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits of X_{t-1}: states [N, S], steps t in 1..T [S], random features [N, S, R] -> [N, S]."""
        raise NotImplementedError

    def stretched(self, factor: int) -> "Network":
        """The same network for `factor` times as many steps, if its parameters allow that."""
        if factor == 1:
            return self
        raise InputError(
            f"network '{self.name}' cannot change its number of steps; start from one with the same number"
        )
