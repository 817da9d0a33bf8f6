"""Sources of random numbers for a reverse process.

Legend: B graphs of this batch, N rows, P padded nodes per graph.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch


class RandomSource(Protocol):
    """Independent random numbers for every row of a batch."""

    def uniform(self, batch: Batch, *columns: int) -> Tensor:
        """Uniform in [0, 1). [N, *columns]."""

    def normal(self, batch: Batch, *columns: int) -> Tensor:
        """Standard normal. [N, *columns]."""


@dataclass(frozen=True)
class RowRandom:
    """Numbers drawn row by row; sampling needs no more."""

    generator: torch.Generator
    dtype: torch.dtype = torch.float32
    """Of uniform numbers."""

    def uniform(self, batch: Batch, *columns: int) -> Tensor:
        """Uniform in [0, 1). [N, *columns]."""
        return torch.rand(batch.num_rows, *columns, generator=self.generator, dtype=self.dtype, device=batch.device)

    def normal(self, batch: Batch, *columns: int) -> Tensor:
        """Standard normal. [N, *columns]."""
        return torch.randn(batch.num_rows, *columns, generator=self.generator, device=batch.device)


@dataclass(frozen=True)
class SharedRandom:
    """One draw for a whole training batch; each process takes the part for its own graphs.

    So training depends neither on how many processes share the batch nor on how they pad it. Drawing the numbers of the
    other processes too costs next to nothing compared with the network.
    """

    generator: torch.Generator
    num_graphs: int
    """Graphs of the whole batch, over all processes."""
    first_graph: int
    """Position of this process's first graph in the whole batch."""
    num_padded: int
    """P: at least as many as the largest graph of the training set has nodes."""

    def uniform(self, batch: Batch, *columns: int) -> Tensor:
        """Uniform in [0, 1). [N, *columns]."""
        shape = (self.num_graphs, self.num_padded, *columns)
        return self._own_part(batch, torch.rand(shape, generator=self.generator, device=batch.device))

    def normal(self, batch: Batch, *columns: int) -> Tensor:
        """Standard normal. [N, *columns]."""
        shape = (self.num_graphs, self.num_padded, *columns)
        return self._own_part(batch, torch.randn(shape, generator=self.generator, device=batch.device))

    def _own_part(self, batch: Batch, whole: Tensor) -> Tensor:
        return batch.from_padded(whole[self.first_graph : self.first_graph + batch.num_graphs])
