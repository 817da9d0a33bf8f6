"""The network on a GPU: the kernels of `ops.triton_gnn` between neighbour sums, with their own backward pass.

It computes what `Gnn` computes, within the rounding of its types, and gives the gradient to the flat weights.

Legend: B graphs, N rows, P padded nodes per graph, S samples, F hidden features, L layers.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from diffuco import ops
from diffuco.graphs.batch import Batch, DenseBatch
from diffuco.model.gnn import Gnn, weight_scale
from diffuco.model.weights import FlatWeights
from diffuco.ops import triton_gnn as kernels


class FusedGnn:
    """A denoiser with the weights of a `Gnn`."""

    def __init__(self, model: Gnn, weights: FlatWeights, dtype: torch.dtype = torch.float16) -> None:
        self.config = model.config
        self.weights = weights
        self.dtype = dtype
        self.layout = Layout(model)
        self._last: tuple[weakref.ref[Batch], Neighborhood] | None = None

    @property
    def num_random_features(self) -> int:
        """R: random numbers each node gets at every step."""
        return self.config.num_random_features

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits [N, S] of states [N, S] at steps [S], given random features [N, S, R]."""
        if not x.numel():
            return torch.zeros_like(x)
        inputs = Inputs(x.contiguous(), step, features.contiguous(), self._neighborhood(batch))
        vector = self.weights.vector
        if torch.is_grad_enabled() and vector.requires_grad:
            logits: Tensor = _FusedNetwork.apply(vector, self, inputs)  # type: ignore[no-untyped-call]
            return logits
        return Pass(self, inputs).forward(keep=False)

    def _neighborhood(self, batch: Batch) -> "Neighborhood":
        # The steps of a process share one batch: what is made of it is kept until the next one comes.
        if self._last is None or self._last[0]() is not batch:
            self._last = weakref.ref(batch), neighborhood(batch, self.config.weighted, self.dtype)
        return self._last[1]


class Layout:
    """Where the kernels want each parameter: as vector and matrices [in, out] in the order they read them."""

    def __init__(self, model: Gnn) -> None:
        at = FlatWeights.positions(model)
        features = model.config.num_hidden
        self.num_inputs = at["encode_node.weight"].shape[1] + 1 + model.config.num_steps
        parts = [at["encode_node.weight"].T, at["encode_node.bias"], at["encode_step.weight"].T]
        for layer in range(model.config.num_layers):
            own = {name: at[f"layers.{layer}.{name}"] for name in _LAYER_NAMES}
            first = own["node_mlp.0.weight"]
            parts += [own["message.weight"].T, own["skip.weight"].T, first[:, :features].T, first[:, features:].T]
            parts += [own["node_mlp.3.weight"].T, *(own[name] for name in _LAYER_VECTORS)]
        parts += [at["head.0.weight"].T, at["head.3.weight"].T, *(at[f"head.{name}"] for name in _HEAD_VECTORS)]
        self.order = torch.cat([part.reshape(-1) for part in parts]).to(next(model.parameters()).device)
        self.inverse = self.order.argsort()
        self.first_layer = self.num_inputs * features
        self.layer_size = (kernels.LAYER_MATRICES.value * features + kernels.LAYER_VECTORS.value) * features
        self.head = self.first_layer + model.config.num_layers * self.layer_size


_LAYER_VECTORS = (
    *("node_mlp.0.bias", "node_mlp.2.weight", "node_mlp.2.bias", "node_mlp.3.bias", "norm.weight", "norm.bias"),
    *("message_norm.mean_scale", "message_norm.scale", "message_norm.shift"),
)
_LAYER_NAMES = (*_LAYER_VECTORS, "message.weight", "skip.weight", "node_mlp.0.weight", "node_mlp.3.weight")
_HEAD_VECTORS = ("0.bias", "2.weight", "2.bias", "3.bias", "5.weight", "5.bias", "6.weight", "6.bias")


@dataclass(frozen=True)
class Neighborhood:
    """What a batch's graphs are to the kernels."""

    starts: Tensor
    """[B] first row of each graph."""
    sizes: Tensor
    """[B] nodes of each graph."""
    extents: Tensor
    """[B] rows of each graph, padding included."""
    largest: int
    """Most rows of a graph."""
    node_inputs: Tensor
    """[N] node weights as the encoder sees them."""
    sum: Callable[[Tensor], Tensor]
    """Sum over each node's neighbours. [N, S, F] -> [N, S, F]."""
    row_scale: Tensor
    """[N] what such a sum still has to be multiplied with: 1 / sqrt(degree), or 1 where that was done."""
    sum_gradient: Callable[[Tensor], Tensor]
    """The transpose of `sum` but for the scale, for the gradient times `gradient_scale`. [N, S, F] -> [N, S, F]."""
    gradient_scale: Tensor
    """[N] the scale of the whole sum."""


def neighborhood(batch: Batch, weighted: bool, dtype: torch.dtype) -> Neighborhood:
    """Prepare a batch: dense matrices for the tensor cores, or neighbour lists where the batch has them."""
    scale = weight_scale(batch) if weighted else torch.ones_like(batch.degrees)
    per_degree = 1 / batch.degrees.clamp(min=1).sqrt()
    node_inputs = batch.node_weights / scale
    if batch.lists is not None:
        lists = batch.lists if weighted else batch.lists._replace(weights=None)
        whole_scale = per_degree / scale
        # Scaled before it is rounded: a hub's sum may be out of float16's range.
        return Neighborhood(
            *(batch.row_starts, batch.sizes, batch.extents, batch.largest, node_inputs),
            sum=lambda values: kernels.neighbor_sum(lists, values, whole_scale),
            row_scale=torch.ones_like(whole_scale),
            sum_gradient=lambda values: kernels.neighbor_sum(lists, values),
            gradient_scale=whole_scale,
        )
    assert isinstance(batch, DenseBatch)
    if weighted and batch.weights is not None:
        # Scaled before it is rounded: weights may be of any size.
        matrix = (batch.weights / scale.view(batch.num_graphs, -1)[:, :1, None]).to(dtype)
    else:
        matrix, per_degree = batch.matrix(dtype), per_degree / scale
    return Neighborhood(
        *(batch.row_starts, batch.sizes, batch.extents, batch.largest, node_inputs),
        sum=lambda values: ops.dense_neighbor_sum(values, matrix),
        row_scale=per_degree,
        sum_gradient=lambda values: ops.dense_neighbor_sum(values, matrix),
        gradient_scale=per_degree,
    )


class Inputs(NamedTuple):
    """What one call of the network sees."""

    x: Tensor
    step: Tensor
    features: Tensor
    near: Neighborhood


class Saved(NamedTuple):
    """What the backward pass of one layer needs."""

    h: Tensor
    summed: Tensor
    sums: Tensor


class Pass:
    """One forward pass and, if it kept what is needed, the backward pass to it."""

    def __init__(self, network: FusedGnn, inputs: Inputs) -> None:
        self.network, self.inputs = network, inputs
        self.layout, self.near = network.layout, inputs.near
        self.packed = network.weights.vector.detach()[self.layout.order]
        self.tiles = kernels.Tiles(
            self.near.starts, self.near.sizes, self.near.extents, self.near.largest, inputs.x.shape[1]
        )
        self.saved: list[Saved] = []

    def forward(self, *, keep: bool) -> Tensor:
        """Logits [N, S]."""
        network, tiles = self.network, self.tiles
        shape = (*self.inputs.x.shape, network.config.num_hidden)
        h, messages = self._empty(shape), self._empty(shape)
        kernels.encode(tiles, *self._encoder_inputs(), self._params(0), h, messages)
        for layer in range(network.config.num_layers):
            summed = self.near.sum(messages)
            sums = kernels.graph_sums(tiles, summed, self.near.row_scale)
            if keep:
                self.saved.append(Saved(h, summed, sums))
            is_last = layer == network.config.num_layers - 1
            h_next, messages = self._empty(shape), h if is_last else self._empty(shape)
            kernels.layer(
                tiles, h, summed, self.near.row_scale, sums, self._layer(layer), h_next, messages, has_next=not is_last
            )
            h = h_next
        if keep:
            self.result = h
        return kernels.head(tiles, h, self._params(self.layout.head))

    def backward(self, d_logits: Tensor) -> Tensor:
        """Gradient of the flat weights."""
        network, tiles, near = self.network, self.tiles, self.near
        layout = self.layout
        grads = kernels.partial_gradients(self.packed)
        scale = kernels.gradient_scale(d_logits)
        d_h = torch.empty_like(self.result)
        head_grads = grads[:, layout.head :]
        kernels.head_backward(tiles, self.result, d_logits, scale, self._params(layout.head), d_h, head_grads)
        h_next, d_messages = self.result, None
        for layer in reversed(range(network.config.num_layers)):
            h, summed, sums = self.saved.pop()
            own_grads = grads[:, layout.first_layer + layer * layout.layer_size :]
            d_normal = kernels.layer_backward(
                *(tiles, h, summed, near.row_scale, sums, h_next, d_h, d_messages, self._layer(layer), own_grads)
            )
            kernels.norm_backward(
                *(tiles, summed, near.row_scale, sums, self._layer(layer), d_normal, near.gradient_scale, own_grads)
            )
            d_messages = near.sum_gradient(d_normal)
            h_next = h
        assert d_messages is not None
        kernels.encode_backward(*(tiles, *self._encoder_inputs(), h_next, d_h, d_messages, self._params(0), grads))
        gradient = grads.sum(0)[layout.inverse] / scale
        # A gradient out of range is no gradient: such a step leaves the weights to the optimiser's momentum.
        return torch.where(gradient.isfinite().all(), gradient, 0.0)

    def _empty(self, shape: tuple[int, ...]) -> Tensor:
        return torch.empty(shape, dtype=self.network.dtype, device=self.packed.device)

    def _params(self, first: int) -> Tensor:
        return self.packed[first:]

    def _layer(self, index: int) -> Tensor:
        return self._params(self.layout.first_layer + index * self.layout.layer_size)

    def _encoder_inputs(self) -> tuple[kernels.EncoderShape, Tensor, Tensor, Tensor, Tensor]:
        config = self.network.config
        shape = kernels.EncoderShape(self.layout.num_inputs, config.num_random_features, config.weighted)
        return shape, self.inputs.x, self.inputs.features, self.near.node_inputs, self.inputs.step


class _FusedNetwork(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vector: Tensor, network: FusedGnn, inputs: Inputs) -> Tensor:
        ctx.run = Pass(network, inputs)
        return ctx.run.forward(keep=True)

    @staticmethod
    def backward(ctx: Any, d_logits: Tensor) -> tuple[Tensor, None, None]:
        return ctx.run.backward(d_logits.contiguous()), None, None
