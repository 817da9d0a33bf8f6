"""Speed applied to a finished network: compiled layers and bfloat16 products. The algorithm never asks."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.model.gnn import Gnn


@dataclass(frozen=True)
class MixedPrecisionDenoiser:
    """A network whose matrix products run in bfloat16 under autocast; logits come back in float32."""

    model: Gnn
    device_type: str

    @property
    def num_random_features(self) -> int:
        """R: random numbers each node gets at every step."""
        return self.model.num_random_features

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits [N, S], as the network gives them."""
        with torch.autocast(self.device_type, dtype=torch.bfloat16):
            logits: Tensor = self.model(batch, x, step, features)
        return logits.float()


def accelerate(model: Gnn, device: torch.device, *, precision: str, compile: bool) -> Gnn | MixedPrecisionDenoiser:
    """The same function, faster: equal layers share one compiled program, products run in the given precision."""
    if compile:
        for part in (*model.layers, model.head):
            part.compile(dynamic=False)
    return MixedPrecisionDenoiser(model, device.type) if precision == "bfloat16" else model
