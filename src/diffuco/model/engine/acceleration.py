"""Engines: faster ways to compute the same network. The algorithm does not depend on the engine.

All engines except the reference know only the layers of `Gnn`; any other network runs with the reference.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch
from diffuco.model.base import Network
from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.engine.rowwise import RowwiseGnn
from diffuco.model.engine.tiled import TiledGnn
from diffuco.model.gnn import Gnn
from diffuco.ops import triton_works

if TYPE_CHECKING:
    from diffuco.model.engine.fused import FusedGnn
    from diffuco.model.engine.replayed import ReplayedGnn

ENGINES = ("reference", "compiled", "fused")
"""Engines that also train, in this order: plain float32, torch.compile with bfloat16 products, Triton kernels in
float16. `sampling_engine` knows two more."""
FUSED_HIDDEN = (16, 32, 64, 128)
"""Widths whose tiles fit the tensor cores."""
TILED_HIDDEN = 64
"""The widest network for the compiled loops of a CPU, whose rows are kept in registers."""
MAX_VARIANTS = 32
"""Variants of a layer that torch.compile may make before it gives up and runs the layer uncompiled."""


@dataclass(frozen=True)
class MixedPrecisionDenoiser:
    """A network whose matrix products run in bfloat16 under autocast; its logits are float32."""

    model: Gnn
    device_type: str

    @property
    def num_random_features(self) -> int:
        """R: random numbers that each node gets at every step."""
        return self.model.num_random_features

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits of the network [N, S]."""
        with torch.autocast(self.device_type, dtype=torch.bfloat16):
            logits: Tensor = self.model(batch, x, step, features)
        return logits.float()


def pick_engine(name: str, network: Network, device: torch.device) -> str:
    """The engine that `auto` picks here, or the named engine if it can run here."""
    if type(network) is not Gnn:  # a subclass may compute something else
        if name not in ("auto", "reference"):
            raise InputError(f"engine '{name}' computes only the network 'gnn'; use 'auto' or 'reference'")
        return "reference"
    obstacle = None
    if device.type != "cuda":
        obstacle = "needs a CUDA GPU"
    elif not triton_works():
        obstacle = "needs Triton and a C compiler"
    elif network.config.num_hidden not in FUSED_HIDDEN:
        obstacle = f"needs a hidden size of {', '.join(map(str, FUSED_HIDDEN))}"
    if name == "auto":
        can_compile = device.type == "cuda" and triton_works()  # torch.compile needs Triton too
        return "fused" if obstacle is None else "compiled" if can_compile else "reference"
    if name == "fused" and obstacle:
        raise InputError(f"engine 'fused' {obstacle}; use 'auto', 'compiled' or 'reference'")
    return name


def sampling_engine(network: Network, device: torch.device, *, in_parts: bool = False) -> str:
    """The fastest engine for drawing samples; compiling does not pay, as every batch has a shape of its own.

    Where several processes have a part of the rows each, only two engines ask the batch for all sums over graphs.
    """
    if in_parts:
        return "rowwise" if type(network) is Gnn else "reference"
    if pick_engine("auto", network, device) == "fused":
        return "fused"
    is_narrow = type(network) is Gnn and network.config.num_hidden <= TILED_HIDDEN
    return "tiled" if is_narrow and device.type == "cpu" else "reference"


def accelerate(
    network: Network, parameters: FlatParameters, engine: str, *, calls_at_once: int = 1, is_trained: bool = False
) -> "Network | MixedPrecisionDenoiser | FusedGnn | ReplayedGnn | TiledGnn | RowwiseGnn":
    """The network with the given engine; `network` is on its device and `parameters` are its flat parameters.

    `calls_at_once` is the number of calls that will be differentiated together. A network that `is_trained` keeps its
    parameters from now on.
    """
    if engine == "reference":
        return network
    assert isinstance(network, Gnn), "pick_engine gives other networks the reference"
    if engine == "fused":
        # Imported here: not every platform has Triton, and importing it takes time.
        from diffuco.model.engine.fused import FusedGnn
        from diffuco.model.engine.replayed import ReplayedGnn

        fused = FusedGnn(network, parameters, calls_at_once=calls_at_once, is_trained=is_trained)
        return ReplayedGnn(fused) if is_trained else fused
    if engine == "tiled":
        return TiledGnn(network, parameters, is_trained=is_trained)
    if engine == "rowwise":
        return RowwiseGnn(network)
    # All layers share their code, and every variant of it (types, sizes, with and without gradient) counts.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MAX_VARIANTS)
    for part in (*network.layers, network.head):
        part.compile()
    return MixedPrecisionDenoiser(network, parameters.vector.device.type)
