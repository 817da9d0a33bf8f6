"""Training batches: the graphs stay on the device, and the seed and the step determine the order."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diffuco.diffusion.randomness import SharedRandom
from diffuco.foundation.distributed import Group
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.graphs.batch import Batch, DenseBatch, make_batch
from diffuco.graphs.graph import Graph

Indices = NDArray[np.int64]
"""Positions in the list of graphs. [M]"""
Batches = NDArray[np.int64]
"""One row per batch. [batches, M]"""

DENSE_DATASET_BYTES = 16 * 2**30
"""Largest training set that is kept on a GPU as dense matrices."""
NUM_SIZES = 6
"""Number of sizes that batches are padded to. A batch holds graphs of similar size, so there is little padding."""


class TrainingGraphs:
    """A set of graphs, from which each step of a run takes its batch."""

    def __init__(self, graphs: Sequence[Graph], graphs_per_batch: int, seed: int, group: Group) -> None:
        self.graphs = graphs
        self.graphs_per_batch = graphs_per_batch
        self.seed = seed
        self.group = group
        if group.size > graphs_per_batch:
            have = f"{group.size} processes share a batch of {counted(graphs_per_batch, 'graph')}"
            raise InputError(f"{have}; start fewer or raise graphs_per_batch")
        self.sizes = np.array([graph.num_nodes for graph in graphs])
        shares = np.linspace(0, 1, NUM_SIZES + 1)[1:]
        self.ceilings = np.unique(-(-np.quantile(self.sizes, shares, method="higher") // 16) * 16)
        self.num_padded = int(self.ceilings[-1])
        fits = 2 * len(graphs) * self.num_padded**2 <= DENSE_DATASET_BYTES
        is_resident = group.device.type == "cuda" and fits
        self.resident = DenseBatch.from_graphs(graphs, group.device, self.num_padded) if is_resident else None
        self._epoch: tuple[int, Batches] | None = None
        self.examples: Tensor | None = None
        """Solutions of every graph, padded, if the objective learns from any. [graphs, P, K]"""

    def add_examples(self, examples: Sequence[NDArray[np.bool_]]) -> None:
        """Keep solutions [num_nodes, K] of every graph on the device."""
        padded = np.zeros((len(examples), self.num_padded, examples[0].shape[1]), dtype=np.bool_)
        for place, states in zip(padded, examples, strict=True):
            place[: len(states)] = states
        self.examples = torch.from_numpy(padded).to(self.group.device)

    def examples_of(self, batch: Batch, chosen: Tensor) -> Tensor | None:
        """The solutions of the chosen graphs in the rows of their batch. [N, K]."""
        if self.examples is None:
            return None
        return batch.from_padded(self.examples[chosen, : max(batch.largest, 1)])

    def batch(self, chosen: Indices, num_padded: int) -> Batch:
        """A batch of the chosen graphs."""
        if self.resident is not None:
            return self.resident.select(torch.from_numpy(chosen).to(self.group.device, non_blocking=True), num_padded)
        return make_batch([self.graphs[index] for index in chosen], self.group.device)

    def chosen(self, step: int) -> tuple[Indices, int]:
        """Which graphs this process's share of the batch holds, and how many nodes they are padded to."""
        epoch, position = divmod(step, len(self.graphs) // self.graphs_per_batch)
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = epoch, self._batches(epoch)
        whole = self._epoch[1][position]
        largest = self.sizes[whole].max()
        num_padded = int(self.ceilings[np.searchsorted(self.ceilings, largest)])
        return whole[self.group.share(self.graphs_per_batch)], num_padded

    def _batches(self, epoch: int) -> Batches:
        """All batches of a pass over the graphs, in random order: each holds random graphs of similar size."""
        rng = np.random.default_rng([self.seed, epoch])
        num_batches = len(self.graphs) // self.graphs_per_batch
        used = rng.permutation(len(self.graphs))[: num_batches * self.graphs_per_batch]
        by_size = used[np.argsort(self.sizes[used], kind="stable")].reshape(num_batches, -1)
        alike = [rng.permutation(part.ravel()).reshape(part.shape) for part in np.array_split(by_size, NUM_SIZES)]
        batches: Batches = rng.permutation(np.concatenate(alike))
        return batches

    def random(self, generator: torch.Generator) -> SharedRandom:
        """The random numbers of an optimiser step, from a generator seeded for that step."""
        return SharedRandom(
            generator,
            num_graphs=self.graphs_per_batch,
            first_graph=self.group.share(self.graphs_per_batch).start,
            num_padded=self.num_padded,
        )
