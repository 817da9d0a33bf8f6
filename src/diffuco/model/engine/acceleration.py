"""Engines: the same network, computed faster. The algorithm never asks which one it has.

All engines but the reference know the layers of `Gnn`; any other network runs as it is written.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch
from diffuco.model.base import Network
from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.gnn import Gnn
from diffuco.ops import triton_works

if TYPE_CHECKING:
    from diffuco.model.engine.fused import FusedGnn

ENGINES = ("reference", "compiled", "fused")
"""Plain float32; torch.compile with bfloat16 products; Triton kernels in float16."""
FUSED_HIDDEN = (16, 32, 64, 128)
"""Widths whose tiles fit the tensor cores."""
MAX_VARIANTS = 32
"""Variants of a layer that torch.compile may make before it gives up and runs the layer uncompiled."""


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


def pick_engine(name: str, network: Network, device: torch.device) -> str:
    """The engine that `auto` stands for, or the named one if it can run here."""
    if type(network) is not Gnn:  # a subclass may compute something else
        if name not in ("auto", "reference"):
            raise InputError(f"engine '{name}' computes the network 'gnn' only; take 'auto' or 'reference'")
        return "reference"
    obstacle = None
    if device.type != "cuda":
        obstacle = "needs a CUDA GPU"
    elif not triton_works():
        obstacle = "needs Triton and a C compiler"
    elif network.config.num_hidden not in FUSED_HIDDEN:
        obstacle = f"needs a hidden size of {', '.join(map(str, FUSED_HIDDEN))}"
    if name == "auto":
        can_compile = device.type == "cuda" and triton_works()  # torch.compile needs it there as well
        return "fused" if obstacle is None else "compiled" if can_compile else "reference"
    if name == "fused" and obstacle:
        raise InputError(f"engine 'fused' {obstacle}; take 'auto', 'compiled' or 'reference'")
    return name


def accelerate(
    network: Network, parameters: FlatParameters, engine: str, *, calls_at_once: int = 1
) -> "Network | MixedPrecisionDenoiser | FusedGnn":
    """A network on its device, with its flat parameters, as an engine computes it.

    `calls_at_once` of its calls will be differentiated together.
    """
    if engine == "reference":
        return network
    assert isinstance(network, Gnn), "pick_engine gives other networks the reference"
    if engine == "fused":
        # Imported here: not every platform has Triton, and importing it takes time.
        from diffuco.model.engine.fused import FusedGnn

        return FusedGnn(network, parameters, calls_at_once=calls_at_once)
    # The layers share their code, and each of its variants (types, sizes, with and without gradient) counts.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MAX_VARIANTS)
    for part in (*network.layers, network.head):
        part.compile()
    return MixedPrecisionDenoiser(network, parameters.vector.device.type)
