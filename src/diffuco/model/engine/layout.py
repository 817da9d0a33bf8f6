"""The layout in which the kernels read the parameters of the network.

Legend: L layers, F hidden features.
"""

import torch
from torch import Tensor

from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.gnn import Gnn

LAYER_MATRICES, LAYER_VECTORS = 5, 5
"""Of a packed layer, as `ops.triton_gnn_pieces` has them."""


class Layout:
    """Parameters in the order in which the kernels read them, with matrices as [in, out] and norms folded in."""

    def __init__(self, model: Gnn) -> None:
        at = FlatParameters.positions(model)
        self.num_layers, self.num_hidden = model.config.num_layers, model.config.num_hidden
        self.num_inputs = at["encode_node.weight"].shape[1] + 1 + model.config.num_steps
        parts = [at["encode_node.weight"].T, at["encode_node.bias"], at["encode_step.weight"].T]
        for layer in range(self.num_layers):
            own = {name: at[f"layers.{layer}.{name}"] for name in _LAYER_NAMES}
            first = own["node_mlp.0.weight"]
            halves = first[:, : self.num_hidden].T, first[:, self.num_hidden :].T
            parts += [own["message.weight"].T, own["skip.weight"].T, *halves, own["node_mlp.3.weight"].T]
            parts += [own[name] for name in _LAYER_VECTORS]
        parts += [at["head.0.weight"].T, at["head.3.weight"].T, *(at[f"head.{name}"] for name in _HEAD_VECTORS)]
        self.order = torch.cat([part.reshape(-1) for part in parts]).to(next(model.parameters()).device)
        self.first_layer = self.num_inputs * self.num_hidden
        lines = LAYER_MATRICES * self.num_hidden + LAYER_VECTORS
        self.layer_size = lines * self.num_hidden
        self.head = self.first_layer + self.num_layers * self.layer_size

    def mean_shares(self, packed: Tensor) -> Tensor:
        """The last vector of every packed layer: the share of the mean that GraphNorm removes. [L, F]."""
        layers = packed[self.first_layer : self.head].view(self.num_layers, self.layer_size)
        return layers[:, -self.num_hidden :]

    def pack(self, vector: Tensor) -> Tensor:
        """Arrange the flat parameters, and fold the scale and shift of every norm into the matrix and bias after it.

        For y = (standard * scale + shift) W + bias, the matrix becomes scale * W and the bias becomes shift W + bias.
        These are plain torch operations, so autograd carries the gradient of the packed parameters back to the flat
        ones.
        """
        size = self.num_hidden
        ordered = vector.index_select(0, self.order)
        sizes = [self.first_layer, self.num_layers * (5 * size + len(_LAYER_VECTORS)) * size]
        encoder, layers, head = torch.split(ordered, [*sizes, len(ordered) - sum(sizes)])
        layers = layers.view(self.num_layers, -1)
        matrices = layers[:, : 5 * size**2].view(-1, 5, size, size)
        first_bias, first_scale, first_shift, second_bias, scale, shift, mean_share, sum_scale, sum_shift = (
            layers[:, 5 * size**2 :].view(-1, len(_LAYER_VECTORS), size).unbind(1)
        )
        # A layer's input has passed through the norm of the layer before. We use split and unbind instead of indexing,
        # because the backward pass of an index fills a tensor with zeros.
        scales_before, last_scale = torch.split(scale, [self.num_layers - 1, 1])
        shifts_before, last_shift = torch.split(shift, [self.num_layers - 1, 1])
        scale_before = torch.cat([torch.ones_like(last_scale), scales_before])
        shift_before = torch.cat([torch.zeros_like(last_shift), shifts_before])
        matrices, moved = _fold(
            matrices,
            torch.cat([_thrice(scale_before), torch.stack([sum_scale, first_scale], 1)], 1),
            torch.cat([_thrice(shift_before), torch.stack([sum_shift, first_shift], 1)], 1),
        )
        message, skip, first, first_of_sum, second = moved.unbind(1)
        biases = [message, skip, first_bias + first + first_of_sum, second_bias + second]
        layers = torch.cat([matrices.flatten(1), torch.stack([*biases, mean_share], 1).flatten(1)], 1)
        head_matrices, vectors, bias = torch.split(head, [2 * size**2, len(head) - 2 * size**2 - 1, 1])
        first_bias, first_scale, first_shift, second_bias, second_scale, second_shift, column = vectors.view(
            -1, size
        ).unbind()
        matrices, moved = _fold(
            head_matrices.view(2, size, size),
            torch.cat([last_scale, first_scale[None]]),
            torch.cat([last_shift, first_shift[None]]),
        )
        first, second = moved.unbind()
        head_vectors = [first_bias + first, second_bias + second, second_scale * column]
        head_bias = bias + (second_shift * column).sum()
        return torch.cat([encoder, layers.flatten(), matrices.flatten(), *head_vectors, head_bias])


def _thrice(rows: Tensor) -> Tensor:
    """Repeat for a layer's first three matrices, which all read its input. [L, F] -> [L, 3, F]."""
    return rows[:, None].expand(-1, 3, -1)


def _fold(matrices: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """The scaled matrices, and what a shift before them adds to the bias after. [..., F, F], [..., F], [..., F]."""
    return scale[..., None] * matrices, (shift[..., None, :] @ matrices)[..., 0, :]


_LAYER_VECTORS = (
    *("node_mlp.0.bias", "node_mlp.2.weight", "node_mlp.2.bias", "node_mlp.3.bias", "norm.weight", "norm.bias"),
    *("message_norm.mean_scale", "message_norm.scale", "message_norm.shift"),
)
_LAYER_NAMES = (*_LAYER_VECTORS, "message.weight", "skip.weight", "node_mlp.0.weight", "node_mlp.3.weight")
_HEAD_VECTORS = ("0.bias", "2.weight", "2.bias", "3.bias", "5.weight", "5.bias", "6.weight", "6.bias")
