"""The network on a GPU: the kernels of `ops.triton_gnn` between neighbour sums, with their own backward pass.

It computes the same as `Gnn`, up to rounding. Its backward pass gives the gradient of the flat parameters.

Legend: B graphs, N rows, P padded nodes per graph, S samples, F hidden features, L layers.
"""

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.model.engine.layout import Layout
from diffuco.model.engine.neighborhood import Neighborhood, neighborhood
from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.gnn import Gnn
from diffuco.ops import triton_gnn as kernels


class FusedGnn:
    """A denoiser with the parameters of a `Gnn`.

    Calls made with gradients are differentiated together, so their results must go into the same backward pass. The
    first call allocates memory for `calls_at_once` of them. The parameters of a network that `is_trained` are packed
    once.
    """

    def __init__(
        self,
        model: Gnn,
        parameters: FlatParameters,
        *,
        calls_at_once: int = 1,
        is_trained: bool = False,
        dtype: torch.dtype = torch.float16,
    ) -> None:
        self.config, self.num_random_features = model.config, model.num_random_features
        self.parameters = parameters
        self.calls_at_once = calls_at_once
        self.dtype = dtype
        self.tape: Tape | None = None
        self.layout = Layout(model)
        self.packed = self.layout.pack(parameters.vector.detach()) if is_trained else None
        self._last: tuple[weakref.ref[Batch], Neighborhood] | None = None

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits [N, S] of states [N, S] at steps [S], given random features [N, S, R]."""
        if not x.numel():
            return torch.zeros_like(x)
        call = Call(x.contiguous(), step, features.contiguous(), self._neighborhood(batch))
        if not torch.is_grad_enabled():
            return forward(self, self.layout.pack(self.parameters.vector) if self.packed is None else self.packed, call)
        if self.tape is None or not self.tape.takes(call):
            self.tape = Tape(self, self.layout.pack(self.parameters.vector), call)
        logits: Tensor = _TapedCall.apply(self.tape.packed, self.tape, call)  # type: ignore[no-untyped-call]
        return logits

    def _neighborhood(self, batch: Batch) -> "Neighborhood":
        # The steps of a process share one batch, so its neighbourhood is kept until the next batch comes.
        if self._last is None or self._last[0]() is not batch:
            self._last = weakref.ref(batch), neighborhood(batch, self.config, self.dtype)
        return self._last[1]


class Call(NamedTuple):
    """The inputs of one call of the network."""

    x: Tensor
    step: Tensor
    features: Tensor
    near: Neighborhood


class Tape:
    """Activations of several calls side by side, so that one backward pass serves them all.

    Each call fills one of C slots. The backward kernels treat the graphs of all slots as one batch.
    """

    def __init__(self, network: FusedGnn, packed: Tensor, first: Call) -> None:
        config, capacity, near = network.config, network.calls_at_once, first.near
        num_rows, num_samples = first.x.shape
        shape = (config.num_layers, capacity, num_rows, num_samples, config.num_hidden)
        options: dict[str, Any] = {"dtype": network.dtype, "device": first.x.device}
        self.network, self.packed, self.near = network, packed, near
        self.h = torch.empty(shape[0] + 1, *shape[1:], **options)
        self.summed = torch.empty(shape, **options)
        self.kept = kernels.Kept(torch.empty(shape, **options), torch.empty(*shape[:-1], 3, device=first.x.device))
        sums_shape = (near.tiles(num_samples).num_items, 2, config.num_hidden)
        self.sums = torch.empty(*shape[:2], *sums_shape, device=first.x.device)
        self.d_logits = torch.zeros(capacity, num_rows, num_samples, device=first.x.device)
        self.calls: list[Call] = []
        self.num_returned = 0

    def takes(self, call: Call) -> bool:
        """Whether another call fits on this tape."""
        if 0 < self.num_returned < len(self.calls):
            raise RuntimeError(
                "some calls of the network were differentiated without the others; differentiate them together"
            )
        is_open = not self.num_returned and len(self.calls) < len(self.d_logits)
        return is_open and call.near is self.near and call.x.shape == self.d_logits.shape[1:]

    def backward(self) -> Tensor:
        """Gradient of the packed parameters from the gradients of all calls' logits."""
        network, layout, near = self.network, self.network.layout, self.near.repeated(len(self.calls))
        tiles = near.tiles(self.d_logits.shape[2])
        packed = self.packed.detach()
        grads = kernels.partial_gradients(packed)
        d_logits = self._used(self.d_logits)
        scale = kernels.gradient_scale(d_logits)
        h_next = self._used(self.h[-1])
        d_h = torch.empty_like(h_next)
        kernels.head_backward(tiles, h_next, d_logits, scale, packed[layout.head :], d_h, grads[:, layout.head :])
        d_messages = None
        d_shares = []
        for layer in reversed(range(network.config.num_layers)):
            h, summed, sums = self._used(self.h[layer]), self._used(self.summed[layer]), self._used(self.sums[layer])
            kept = kernels.Kept(*(self._used(values[layer]) for values in self.kept))
            first = layout.first_layer + layer * layout.layer_size
            own, own_grads = packed[first:], grads[:, first:]
            inside = kernels.layer_backward(tiles, h_next, kept, d_h, d_messages, own, own_grads)
            d_shares += [
                kernels.norm_backward(tiles, summed, near.row_scale, sums, own, inside.d_normal, near.gradient_scale)
            ]
            d_messages = torch.empty_like(d_h)
            slots = zip(inside.d_normal.chunk(len(self.calls)), d_messages.chunk(len(self.calls)), strict=True)
            for values, out in slots:
                near.sum_gradient(values, out)
            kernels.products(tiles, h, summed, near.row_scale, sums, own, inside, d_messages, own_grads)
            h_next = h
        assert d_messages is not None
        inputs = encoder_inputs(network, near, self.calls)
        kernels.encode_backward(tiles, *inputs, d_h, d_messages, packed, grads)
        gradient = grads.sum(0)
        layout.mean_shares(gradient).copy_(torch.stack(d_shares[::-1]))
        gradient = gradient / scale
        # A gradient out of range is discarded; in such a step only the optimiser's momentum moves the parameters.
        return torch.where(gradient.isfinite().all(), gradient, 0.0)

    def _used(self, values: Tensor) -> Tensor:
        """The slots of all calls as one batch. [C, N, ...] -> [calls * N, ...]."""
        return values[: len(self.calls)].flatten(0, 1)


def forward(network: FusedGnn, packed: Tensor, call: Call, tape: Tape | None = None) -> Tensor:
    """Logits [N, S]; if a tape is given, its next slot stores what the backward pass needs."""
    near, layout = call.near, network.layout
    tiles = near.tiles(call.x.shape[1])
    slot = 0 if tape is None else len(tape.calls)
    shape = (*call.x.shape, network.config.num_hidden)

    def empty() -> Tensor:
        return torch.empty(shape, dtype=network.dtype, device=packed.device)

    h = empty() if tape is None else tape.h[0, slot]
    messages = empty()
    kernels.encode(tiles, *encoder_inputs(network, near, [call]), packed, h, messages)
    for layer in range(network.config.num_layers):
        if tape is None:
            summed, h_next, kept = empty(), empty(), None
            sums = torch.empty(tiles.num_items, 2, shape[2], device=packed.device)
        else:
            summed, h_next, sums = (
                tape.summed[layer, slot],
                tape.h[layer + 1, slot],
                tape.sums[layer, slot],
            )
            kept = kernels.Kept(*(values[layer, slot] for values in tape.kept))
        near.sum(messages, summed)
        kernels.graph_sums(tiles, summed, near.row_scale, sums)
        next_messages = empty() if layer + 1 < network.config.num_layers else None
        own = packed[layout.first_layer + layer * layout.layer_size :]
        kernels.layer(tiles, h, summed, near.row_scale, sums, own, h_next, next_messages, kept)
        h = h_next
        if next_messages is not None:
            messages = next_messages
    if tape is not None:
        tape.calls.append(call)
    return kernels.head(tiles, h, packed[layout.head :])


def encoder_inputs(
    network: FusedGnn, near: Neighborhood, calls: list[Call]
) -> tuple[kernels.EncoderShape, Tensor, Tensor, Tensor, Tensor]:
    """Inputs of the encoder's kernels, for one call or for several side by side."""
    config = network.config
    shape = kernels.EncoderShape(
        network.layout.num_inputs, config.num_random_features, config.weighted or config.node_weighted
    )
    step = torch.cat([call.step.expand(len(call.near.starts), -1) for call in calls])
    x, features = calls[0].x, calls[0].features
    if len(calls) > 1:
        x, features = torch.cat([call.x for call in calls]), torch.cat([call.features for call in calls])
    return shape, x, features, near.node_inputs, step


class _TapedCall(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, packed: Tensor, tape: Tape, call: Call) -> Tensor:
        ctx.tape, ctx.slot = tape, len(tape.calls)
        return forward(tape.network, packed.detach(), call, tape)

    @staticmethod
    def backward(ctx: Any, d_logits: Tensor) -> tuple[Tensor | None, None, None]:
        tape: Tape = ctx.tape
        ctx.tape = None  # the loss may outlive its backward pass, but the activations must not
        tape.d_logits[ctx.slot] = d_logits
        tape.num_returned += 1
        if tape.num_returned < len(tape.calls):
            return None, None, None
        tape.network.tape = None
        return tape.backward(), None, None
