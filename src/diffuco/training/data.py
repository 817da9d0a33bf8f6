"""Training batches: the graphs stay on the device, the order is a function of the seed and the step."""

from collections.abc import Sequence

import numpy as np
import torch

from diffuco.graphs.batch import Batch, DenseBatch, make_batch
from diffuco.graphs.graph import Graph

DENSE_DATASET_BYTES = 16 * 2**30
"""Largest training set that is kept as dense matrices on a GPU."""


class TrainingGraphs:
    """A set of graphs from which step k of a run takes its batch."""

    def __init__(self, graphs: Sequence[Graph], graphs_per_batch: int, seed: int, device: torch.device) -> None:
        self.graphs = graphs
        self.graphs_per_batch = graphs_per_batch
        self.seed = seed
        self.device = device
        largest = max(graph.num_nodes for graph in graphs)
        # One padded size for all batches: a compiled network sees one shape.
        num_padded = -(-largest // 16) * 16
        fits = 2 * len(graphs) * num_padded**2 <= DENSE_DATASET_BYTES
        self.resident = DenseBatch.from_graphs(graphs, device, num_padded) if device.type == "cuda" and fits else None

    def batch(self, step: int) -> Batch:
        """The batch of an optimiser step: every epoch is a new permutation."""
        epoch, position = divmod(step, len(self.graphs) // self.graphs_per_batch)
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.graphs))
        chosen = order[position * self.graphs_per_batch :][: self.graphs_per_batch]
        if self.resident is not None:
            return self.resident.select(torch.from_numpy(chosen).to(self.device, non_blocking=True))
        return make_batch([self.graphs[index] for index in chosen], self.device)


def step_generator(seed: int, step: int, device: torch.device) -> torch.Generator:
    """The random numbers of one optimiser step; independent of how the run got there."""
    state = np.random.SeedSequence([seed, step]).generate_state(1, dtype=np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state >> np.uint64(1)))
