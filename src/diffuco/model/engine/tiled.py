"""The network on a CPU: the loops of `ops.numba_gnn` between neighbour sums, for drawing samples.

It computes the same as `Gnn`, up to rounding, without gradients.

Legend: B graphs, N rows, S samples, F hidden features.
"""

from typing import NamedTuple

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
CHUNK_ROWS = 2**12
"""Rows that a thread takes at a time."""


class TiledGnn:
    """A denoiser with the parameters of a `Gnn`, for a CPU."""

    def __init__(self, model: Gnn, parameters: FlatParameters) -> None:
        self.model, self.parameters, self.layout = model, parameters, Layout(model)

    @property
    def num_random_features(self) -> int:
        """R: random numbers that each node gets at every step."""
        return self.model.num_random_features

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits [N, S] of states [N, S] at steps [S], given random features [N, S, R]."""
        if x.numel() < MIN_ROWS or torch.is_grad_enabled():
            logits: Tensor = self.model(batch, x, step, features)
            return logits
        # Imported here: importing numba takes a third of a second.
        from diffuco.ops import numba_gnn as loops

        packed = self._unpacked()
        graphs = _Graphs(batch, self.model, x.shape[1])
        num_tiles, size = -(-x.numel() // loops.TILE), packed.matrices.shape[-1]
        tiles = [(first, min(first + 16, num_tiles)) for first in range(0, num_tiles, 16)]
        rows = torch.zeros(num_tiles * loops.TILE, size)
        rows[: x.numel()] = self.model.encode(batch, x, step, features).flatten(0, 1)
        sent = rows.numpy() @ packed.messages[0] + packed.biases[0, 0]
        units = _units(np.abs(sent).max(0))
        messages = np.rint(sent / units).astype(np.int16)
        h = rows.view(num_tiles, loops.TILE, size).transpose(1, 2).contiguous().numpy()  # [tiles, F, TILE]
        group = np.zeros(num_tiles * loops.TILE, dtype=np.int64)
        group[: x.numel()] = graphs.group
        summed = sent  # needed no longer
        for layer in range(len(packed.matrices)):
            offset, factor = graphs.sum_neighbors(messages, units, summed, packed.biases[layer, -1])
            following = packed.messages[layer + 1 : layer + 2].reshape(-1, size)  # empty after the last layer
            bias = packed.biases[min(layer + 1, len(packed.biases) - 1), 0]
            # What a layer gives is standardised: its length is at most the root of F.
            units = _units(np.sqrt(size * np.square(following).sum(0)) + np.abs(bias))
            given = (h, summed, group, offset, factor, packed.matrices[layer], packed.biases[layer, 1:4])
            sending = (following / units, bias / units, messages)
            on_all_threads(loops.layer_tiles, [(*ends, *given, *sending) for ends in tiles])
        out = np.empty(num_tiles * loops.TILE, dtype=np.float32)
        on_all_threads(loops.head_tiles, [(*ends, h, *packed.head, out) for ends in tiles])
        return torch.from_numpy(out[: x.numel()]).view(x.shape)

    def _unpacked(self) -> "_Parameters":
        layout, size = self.layout, self.layout.num_hidden
        packed = layout.pack(self.parameters.vector).numpy()
        layers = packed[layout.first_layer : layout.head].reshape(layout.num_layers, layout.layer_size)
        square = LAYER_MATRICES * size**2
        matrices = layers[:, :square].reshape(-1, LAYER_MATRICES, size, size)
        head = packed[layout.head :]
        head_matrices = head[: 2 * size**2].reshape(2, size, size)
        return _Parameters(
            messages=np.ascontiguousarray(matrices[:, 0]),
            matrices=np.ascontiguousarray(matrices[:, 1:].swapaxes(2, 3)),
            biases=np.ascontiguousarray(layers[:, square:].reshape(layout.num_layers, -1, size)),
            head=(
                np.ascontiguousarray(head_matrices.swapaxes(1, 2)),
                head[2 * size**2 : -1].reshape(3, size),
                head[-1],
            ),
        )


def _units(largest: Floats) -> Floats:
    """Units in which features up to `largest` [F] are whole numbers of 16 bits."""
    units: Floats = np.maximum(largest / np.iinfo(np.int16).max, np.finfo(np.float32).tiny)
    return units


class _Parameters(NamedTuple):
    """The packed parameters in the shapes that the loops take."""

    messages: Floats
    """[L, F, F], as [in, out]."""
    matrices: Floats
    """[L, 4, F, F], as [out, in]: skip, first, first of the sum, second."""
    biases: Floats
    """[L, 5, F]: message, skip, first, second, and the share of the mean that GraphNorm removes."""
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

        batch, size = self.batch, messages.shape[1]
        num_rows = batch.num_rows * self.num_samples
        columns, out = messages[:num_rows].reshape(batch.num_rows, -1), summed[:num_rows].reshape(batch.num_rows, -1)
        every_unit = np.tile(units, self.num_samples)
        sums = np.empty((len(self.chunks), 2, columns.shape[1]), dtype=np.float32)
        if isinstance(batch, SparseBatch):
            given = batch.weights if self.weighted else None
            weights = np.empty(0, dtype=np.float32) if given is None else given.numpy()
            near = (batch.indptr.numpy(), batch.indices.numpy(), weights)
        else:
            near = None
            out[:] = batch.neighbor_sum(torch.from_numpy(columns).float(), weighted=self.weighted).numpy()

        def sum_chunk(number: int) -> None:
            _, first, last = self.chunks[number]
            if near is not None:
                loops.neighbor_rows(first, last, *near, columns, out)
            loops.scale_rows(first, last, self.row_scale, every_unit, out, sums[number])

        on_all_threads(sum_chunk, [(number,) for number in range(len(self.chunks))])
        totals = np.zeros((batch.num_graphs, *sums.shape[1:]))
        np.add.at(totals, [graph for graph, _, _ in self.chunks], sums)
        mean, square = totals.reshape(batch.num_graphs, 2, -1, size).swapaxes(0, 1) / self.counts
        variance = np.maximum(square - (2 - share) * share * mean**2, 0)
        offset, factor = share * mean, 1 / np.sqrt(variance + loops.EPSILON)
        return offset.reshape(-1, size).astype(np.float32), factor.reshape(-1, size).astype(np.float32)
