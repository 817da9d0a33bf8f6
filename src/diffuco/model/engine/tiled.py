"""The network on a CPU: the loops of `ops.numba_gnn` between neighbour sums, for drawing samples.

It computes the same as `Gnn`, up to rounding, without gradients.

Legend: B graphs, N rows, S samples, I inputs, T steps, L layers, F hidden features, W with padding.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

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
Rows = NDArray[Any]
"""Rows as the loops take them: the last size is part of the type."""

MIN_ROWS = 2**14
"""Nodes times samples below which the network itself is used: compiling the loops takes longer than all its steps."""
CHUNK_ROWS = 2**11
"""Rows that a thread takes at a time, about."""


class TiledGnn:
    """A denoiser with the parameters of a `Gnn`, for a CPU; those of a network that `is_trained` are packed once."""

    def __init__(self, model: Gnn, parameters: FlatParameters, *, is_trained: bool = False) -> None:
        self.model, self.parameters, self.layout = model, parameters, Layout(model)
        self.num_random_features = model.num_random_features
        self.is_trained = is_trained
        self._packed: _Parameters | None = None
        self._known: WeakKeyDictionary[Batch, _Graphs] = WeakKeyDictionary()

    def __call__(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits [N, S] of states [N, S] at steps [S], given random features [N, S, R]."""
        if x.numel() < MIN_ROWS or torch.is_grad_enabled():
            logits: Tensor = self.model(batch, x, step, features)
            return logits
        # Imported here: importing numba takes a third of a second.
        from diffuco.ops import numba_gnn as loops

        packed, graphs = self._parameters(), self._graphs(batch, x.shape[1])
        num_rows, num_features = x.numel(), self.layout.num_hidden
        num_tiles, per_chunk = len(graphs.group) // loops.TILE, CHUNK_ROWS // loops.TILE
        tiles = [(first, min(first + per_chunk, num_tiles)) for first in range(0, num_tiles, per_chunk)]

        def on_tiles(loop: Callable[..., None], *given: Any) -> None:
            between = (np.empty((len(tiles), loops.TILE), dtype=kind) for kind in packed.kinds[:2])
            on_all_threads(loop, [(*ends, *given, *own) for ends, *own in zip(tiles, *between, strict=True)])

        h, summed, messages = memory = graphs.memory.pop() if graphs.memory else _memory(len(graphs.group), packed)
        inputs = self.model.inputs(batch, x, features).flatten(0, 1).numpy()
        steps = packed.steps.take(step.numpy() - 1, axis=1)
        on_tiles(loops.encode_rows, inputs, packed.columns, steps, h, messages)
        for layer in range(self.layout.num_layers):
            offset, factor = graphs.sum_neighbors(batch, messages, summed, packed.shares[layer])
            given = (h, summed, graphs.group, offset, factor, packed.matrices[layer], packed.biases[layer])
            following = slice(layer + 1, layer + 2)
            told = (packed.messages[following], packed.message_biases[following], messages)
            on_tiles(loops.layer_tiles, num_features, *given, *told)
        out = np.empty(len(h), dtype=np.float32)
        on_tiles(loops.head_tiles, num_features, h, *packed.head, out)
        graphs.memory.append(memory)
        return torch.from_numpy(out[:num_rows]).view(x.shape)

    def _parameters(self) -> "_Parameters":
        if self._packed is None or not self.is_trained:
            self._packed = self._unpacked()
        return self._packed

    def _graphs(self, batch: Batch, num_samples: int) -> "_Graphs":
        # The steps of a process share one batch, so what is known of it is kept as long as the batch itself.
        known = self._known.get(batch)
        if known is None or known.num_samples != num_samples:
            known = self._known[batch] = _Graphs(batch, self.model, num_samples)
        return known

    def _unpacked(self) -> "_Parameters":
        from diffuco.ops.numba_products import packed
        from diffuco.ops.numba_vectors import LANES

        layout, size = self.layout, self.layout.num_hidden
        padding = (0, -size % LANES)
        flat: Floats = layout.pack(self.parameters.vector).numpy()
        encoder = np.pad(flat[: layout.first_layer].reshape(-1, size), ((0, 0), padding))
        layers = flat[layout.first_layer : layout.head].reshape(layout.num_layers, layout.layer_size)
        square = LAYER_MATRICES * size**2
        matrices = layers[:, :square].reshape(-1, LAYER_MATRICES, size, size)
        matrices = np.pad(matrices, ((0, 0), (0, 0), padding, padding))
        biases = np.pad(layers[:, square:].reshape(layout.num_layers, -1, size), ((0, 0), (0, 0), padding))
        # The message of a state is a product of matrices with its inputs, as well as its features.
        encoders = np.stack([encoder, encoder @ matrices[0, 0]])
        columns, bias, steps = np.split(encoders, [self.model.config.num_inputs, self.model.config.num_inputs + 1], 1)
        bias[1] += biases[0, 0]
        head = flat[layout.head :]
        head_matrices = np.pad(head[: 2 * size**2].reshape(2, size, size), ((0, 0), padding, padding))
        head_vectors = np.pad(head[2 * size**2 : -1].reshape(3, size), ((0, 0), padding))
        return _Parameters(
            columns=_rows(columns),
            steps=_rows(bias + steps),
            messages=packed(matrices[:, 0]),
            message_biases=_rows(biases[:, 0]),
            matrices=packed(matrices[:, 1:]),
            biases=_rows(biases[:, 1:4]),
            shares=biases[:, 4],
            head=(packed(head_matrices), _rows(head_vectors), head[-1]),
        )


def _rows(array: NDArray[Any]) -> Rows:
    """An array [..., W] as rows [...], without copying where that is possible."""
    from diffuco.ops.numba_vectors import row_type

    return np.ascontiguousarray(array).view(row_type(array.shape[-1], array.dtype.type))[..., 0]


def _memory(num_rows: int, packed: "_Parameters") -> tuple[Rows, Rows, Rows]:
    """For the features, the sums and the messages of all rows."""
    from diffuco.ops.numba_vectors import LINE

    def in_lines(kind: np.dtype[Any]) -> Rows:
        # It begins with a line of the cache, and is of numpy, which asks for large pages, as torch does not. With small
        # pages, sums over neighbours wait for the table of pages half of the time.
        size = num_rows * kind.itemsize
        memory = np.zeros(size + LINE, dtype=np.uint8)
        start = -memory.ctypes.data % LINE
        return memory[start : start + size].view(kind)

    summed, h, messages = map(in_lines, packed.kinds)
    return h, summed, messages


class _Parameters(NamedTuple):
    """The packed parameters in the shapes that the loops take."""

    columns: Rows
    """[2, I] rows, by which the inputs are multiplied, for the features and for their messages."""
    steps: Rows
    """[2, T] rows: what is added in each step, with the biases."""
    messages: Rows
    """[L, W] rows, as [in, out]."""
    message_biases: Rows
    """[L] rows."""
    matrices: Rows
    """[L, 4, W] rows, as [in, out]: skip, first, first of the sum, second."""
    biases: Rows
    """[L, 3] rows: skip, first, second."""
    shares: Floats
    """[L, W]: the share of the mean that GraphNorm removes."""
    head: tuple[Rows, Rows, float]

    @property
    def kinds(self) -> tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]]:
        """The types of rows of floats, of rows that are multiplied, and of messages."""
        from diffuco.ops.numba_products import factor_type
        from diffuco.ops.numba_vectors import row_type

        width = len(self.shares[0])
        return row_type(width), factor_type(width), row_type(width, np.int16)


class _Graphs:
    """Sums over neighbours in the graphs of a batch, and the statistics that GraphNorm takes of them."""

    def __init__(self, batch: Batch, model: Gnn, num_samples: int) -> None:
        from diffuco.ops.numba_gnn import TILE

        self.num_samples, self.weighted = num_samples, model.config.weighted
        scale = weight_scale(batch) if self.weighted else 1.0
        self.row_scale = (1 / (batch.degrees.clamp(min=1).sqrt() * scale)).numpy()
        self.counts = batch.sizes.clamp(min=1).numpy()[:, None, None]
        groups = batch.spread(torch.arange(batch.num_graphs)[:, None]) * num_samples + torch.arange(num_samples)
        self.group = np.pad(groups.flatten().numpy(), (0, -groups.numel() % TILE))
        """Position of each row's statistics in [B S, F], for whole tiles of rows."""
        self.memory: list[tuple[Rows, Rows, Rows]] = []
        """Of calls that have ended: new memory costs as much as a layer."""
        num_nodes = max(1, CHUNK_ROWS // num_samples)
        self.chunks = [  # of one graph each, without padding
            (graph, first, min(first + num_nodes, start + size))
            for graph, (start, size) in enumerate(zip(batch.row_starts.tolist(), batch.sizes.tolist(), strict=True))
            for first in range(start, start + size, num_nodes)
        ]

    def sum_neighbors(self, batch: Batch, messages: Rows, summed: Rows, share: Floats) -> tuple[Rows, Rows]:
        """Write the scaled sums over neighbours [R]; what GraphNorm subtracts and multiplies by, rows [B S]."""
        from diffuco.ops import numba_gnn as loops

        near: tuple[NDArray[Any], ...]
        sums = np.zeros((len(self.chunks), self.num_samples, 2, len(share)), dtype=np.float32)
        if isinstance(batch, SparseBatch):
            given = batch.weights if self.weighted else None
            weights = np.empty(0, dtype=np.float32) if given is None else given.numpy()
            near = (batch.indptr.numpy(), batch.indices.numpy(), weights, messages)
        else:
            num_rows = batch.num_rows * self.num_samples
            columns = torch.from_numpy(messages["row"][:num_rows]).view(torch.float16).float().view(batch.num_rows, -1)
            columns = batch.neighbor_sum(columns, weighted=self.weighted).view(num_rows, -1)
            summed["row"][:num_rows], near = columns.numpy(), ()
        sum_rows: Callable[..., None] = loops.neighbor_rows if near else loops.scale_rows
        given_sums = zip(self.chunks, _rows(sums), strict=True)
        on_all_threads(
            sum_rows, [(first, last, *near, self.row_scale, summed, some) for (_, first, last), some in given_sums]
        )
        totals = np.zeros((batch.num_graphs, *sums.shape[1:]))
        for (graph, _, _), of_chunk in zip(self.chunks, sums, strict=True):
            totals[graph] += of_chunk
        mean, square = totals.swapaxes(0, 2).swapaxes(1, 2) / self.counts
        variance = np.maximum(square - (2 - share) * share * mean**2, 0)
        offset, factor = share * mean, 1 / np.sqrt(variance + loops.EPSILON)
        shape = (-1, len(share))
        return _rows(offset.reshape(shape).astype(np.float32)), _rows(factor.reshape(shape).astype(np.float32))
