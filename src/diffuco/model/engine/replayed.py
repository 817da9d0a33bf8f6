"""The fused network on a large graph: each call is recorded once and then replayed.

Python takes longer to launch the kernels of a step than a GPU to run them, up to about a million rows. A recording
holds for one batch and one number of samples, and goes with the batch.

Legend: N rows, S samples, R random features per node.
"""

from weakref import WeakKeyDictionary

from torch import Tensor

from diffuco.graphs.batch import Batch, SparseBatch
from diffuco.model.engine.fused import Call, FusedGnn, forward
from diffuco.model.engine.neighborhood import neighborhood
from diffuco.ops.capture import CapturedCalls

REPLAYED_ROWS = 2**20
"""Nodes times samples up to which a GPU waits for the host."""


class ReplayedGnn:
    """A denoiser that computes what a trained `FusedGnn` does."""

    def __init__(self, network: FusedGnn) -> None:
        assert network.packed is not None
        self.network, self.packed = network, network.packed
        self.num_random_features = network.num_random_features
        self._calls: WeakKeyDictionary[Batch, CapturedCalls] = WeakKeyDictionary()

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits [N, S] of states [N, S] at steps [S], given random features [N, S, R]."""
        if not isinstance(batch, SparseBatch) or not 0 < x.numel() <= REPLAYED_ROWS:
            return self.network(batch, x, step, features)
        if batch not in self._calls:
            self._calls[batch] = self._calls_on(batch)
        inputs = x.contiguous(), step, features.contiguous()
        logits: Tensor = self._calls[batch](x.shape[1], *inputs, seed=0)
        return logits.clone()

    def _calls_on(self, batch: Batch) -> CapturedCalls:
        network, near = self.network, neighborhood(batch, self.network.config, self.network.dtype)

        def logits(num_samples: int, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
            return forward(network, self.packed, Call(x, step, features, near))

        return CapturedCalls(logits, batch.device)
