"""The network on a CPU: the loops of `ops.numba_gnn` between neighbour sums, for drawing samples.

It computes the same as `Gnn`, up to rounding, without gradients.

Legend: B graphs, N rows, S samples, L layers, F hidden features, W with padding.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diffuco.graphs.batch import Batch, SparseBatch
from diffuco.model.engine.layout import LAYER_MATRICES, Layout
from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.gnn import Gnn, weight_scale
from diffuco.ops.threads import on_all_threads

Floats = NDArray[np.float32]
Shorts = NDArray[np.int16]

MIN_ROWS = 2**14
"""Nodes times samples below which the network itself is used: compiling the loops takes longer than all its steps."""
CHUNK_ROWS, CHUNK_TILES = 2**12, 16
"""Rows and tiles that a thread takes at a time."""


class TiledGnn:
    """A denoiser with the parameters of a `Gnn`, for a CPU."""

    def __init__(self, model: Gnn, parameters: FlatParameters) -> None:
        self.model, self.parameters, self.layout = model, parameters, Layout(model)
        self.num_random_features = model.num_random_features

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits [N, S] of states [N, S] at steps [S], given random features [N, S, R]."""
        if x.numel() < MIN_ROWS or torch.is_grad_enabled():
            logits: Tensor = self.model(batch, x, step, features)
            return logits
        # Imported here: importing numba takes a third of a second.
        from diffuco.ops import numba_gnn as loops

        packed = self._unpacked(loops.WIDTH)
        graphs = _Graphs(batch, self.model, x.shape[1])
        num_rows, num_features = x.numel(), self.layout.num_hidden
        num_tiles = -(-num_rows // loops.TILE)
        tiles = [(first, min(first + CHUNK_TILES, num_tiles)) for first in range(0, num_tiles, CHUNK_TILES)]
        h = np.zeros((num_tiles * loops.TILE, loops.WIDTH), dtype=np.float32)
        h[:num_rows, :num_features] = self.model.encode(batch, x, step, features).flatten(0, 1).numpy()
        sent, largest = np.empty_like(h), np.empty((len(tiles), loops.WIDTH), dtype=np.float32)
        sending = (h, packed.messages[0], packed.message_biases[0], sent)
        on_all_threads(loops.send_tiles, [(*ends, *sending, most) for ends, most in zip(tiles, largest, strict=True)])
        units = _units(largest.max(0))
        messages = np.empty(h.shape, dtype=np.int16)
        on_all_threads(loops.round_tiles, [(*ends, sent, units, messages) for ends in tiles])
        summed = sent  # needed no longer
        group = np.zeros(len(h), dtype=np.int64)
        group[:num_rows] = graphs.group
        for layer in range(self.layout.num_layers):
            offset, factor = graphs.sum_neighbors(messages, units, summed, packed.shares[layer])
            given = (h, summed, group, offset, factor, packed.matrices[layer], packed.biases[layer])
            following = min(layer + 1, self.layout.num_layers - 1)
            units = packed.units[following]
            told = (packed.messages[layer + 1 : layer + 2], packed.message_biases[following], messages)
            on_all_threads(loops.layer_tiles, [(*ends, num_features, *given, *told) for ends in tiles])
        out = np.empty(len(h), dtype=np.float32)
        on_all_threads(loops.head_tiles, [(*ends, num_features, h, *packed.head, out) for ends in tiles])
        return torch.from_numpy(out[:num_rows]).view(x.shape)

    def _unpacked(self, width: int) -> "_Parameters":
        layout, size = self.layout, self.layout.num_hidden
        padding = (0, width - size)
        flat: Floats = layout.pack(self.parameters.vector).numpy()
        layers = flat[layout.first_layer : layout.head].reshape(layout.num_layers, layout.layer_size)
        square = LAYER_MATRICES * size**2
        matrices = layers[:, :square].reshape(-1, LAYER_MATRICES, size, size)
        matrices = np.pad(matrices, ((0, 0), (0, 0), padding, padding))
        biases = np.pad(layers[:, square:].reshape(layout.num_layers, -1, size), ((0, 0), (0, 0), padding))
        head = flat[layout.head :]
        head_matrices = np.pad(head[: 2 * size**2].reshape(2, size, size), ((0, 0), padding, padding))
        # What a layer gives is standardised: its length is at most the root of F. The first layer gets anything.
        sent = matrices[:, 0]
        units = _units(np.sqrt(size * np.square(sent).sum(1)) + np.abs(biases[:, 0]))
        units[0] = 1
        return _Parameters(
            messages=sent / units[:, None],
            message_biases=biases[:, 0] / units,
            units=units,
            matrices=matrices[:, 1:],
            biases=biases[:, 1:4],
            shares=biases[:, 4],
            head=(head_matrices, np.pad(head[2 * size**2 : -1].reshape(3, size), ((0, 0), padding)), head[-1]),
        )


def _units(largest: Floats) -> Floats:
    """Units in which features up to `largest` [F] are whole numbers of 16 bits."""
    units: Floats = np.maximum(largest / np.iinfo(np.int16).max, np.finfo(np.float32).tiny)
    return units


class _Parameters(NamedTuple):
    """The packed parameters in the shapes that the loops take."""

    messages: Floats
    """[L, W, W], as [in, out], in the units that messages have."""
    message_biases: Floats
    """[L, W], in those units."""
    units: Floats
    """[L, W]; 1 for the first layer, whose units are not known before."""
    matrices: Floats
    """[L, 4, W, W], as [in, out]: skip, first, first of the sum, second."""
    biases: Floats
    """[L, 3, W]: skip, first, second."""
    shares: Floats
    """[L, W]: the share of the mean that GraphNorm removes."""
    head: tuple[Floats, Floats, float]


class _Graphs:
    """Sums over neighbours in the graphs of a batch, and the statistics that GraphNorm takes of them."""

    def __init__(self, batch: Batch, model: Gnn, num_samples: int) -> None:
        self.batch, self.num_samples = batch, num_samples
        scale = weight_scale(batch) if model.config.weighted else 1.0
        self.row_scale = (1 / (batch.degrees.clamp(min=1).sqrt() * scale)).numpy()
        self.weighted = model.config.weighted
        self.counts = batch.sizes.clamp(min=1).numpy()[:, None, None]
        self.group = (
            (batch.spread(torch.arange(batch.num_graphs)[:, None]) * num_samples + torch.arange(num_samples))
            .flatten()
            .numpy()
        )
        """[N S] position of each row's statistics in [B S, F]."""
        num_nodes = max(1, CHUNK_ROWS // num_samples)
        self.chunks = [  # of one graph each, without padding
            (graph, first, min(first + num_nodes, start + size))
            for graph, (start, size) in enumerate(zip(batch.row_starts.tolist(), batch.sizes.tolist(), strict=True))
            for first in range(start, start + size, num_nodes)
        ]

    def sum_neighbors(self, messages: Shorts, units: Floats, summed: Floats, share: Floats) -> tuple[Floats, Floats]:
        """Write the scaled sums over neighbours [R, F]; what GraphNorm subtracts and multiplies by [B S, F]."""
        from diffuco.ops import numba_gnn as loops

        batch, num_rows = self.batch, self.batch.num_rows * self.num_samples
        near: tuple[NDArray[Any], ...]
        sums = np.empty((len(self.chunks), self.num_samples, 2, messages.shape[1]), dtype=np.float32)
        if isinstance(batch, SparseBatch):
            given = batch.weights if self.weighted else None
            weights = np.empty(0, dtype=np.float32) if given is None else given.numpy()
            near = (batch.indptr.numpy(), batch.indices.numpy(), weights, messages)
        else:
            columns = torch.from_numpy(messages[:num_rows]).view(batch.num_rows, -1).float()
            columns = batch.neighbor_sum(columns, weighted=self.weighted).view(num_rows, -1)
            summed[:num_rows], near = columns.numpy(), ()
        scaling = (self.row_scale, units, summed)
        chunks = zip(self.chunks, sums, strict=True)
        sum_rows: Callable[..., None] = loops.neighbor_rows if near else loops.scale_rows
        on_all_threads(sum_rows, [(first, last, *near, *scaling, some) for (_, first, last), some in chunks])
        totals = np.zeros((batch.num_graphs, *sums.shape[1:]))
        np.add.at(totals, [graph for graph, _, _ in self.chunks], sums)
        mean, square = totals.swapaxes(0, 2).swapaxes(1, 2) / self.counts
        variance = np.maximum(square - (2 - share) * share * mean**2, 0)
        offset, factor = share * mean, 1 / np.sqrt(variance + loops.EPSILON)
        shape = (-1, messages.shape[1])
        return offset.reshape(shape).astype(np.float32), factor.reshape(shape).astype(np.float32)
