"""Training batches: the graphs stay on the device, the order is a function of the seed and the step."""

from collections.abc import Sequence

import numpy as np
import torch

from diffuco.diffusion.randomness import SharedRandom
from diffuco.errors import InputError
from diffuco.graphs.batch import Batch, DenseBatch, make_batch
from diffuco.graphs.graph import Graph
from diffuco.training.distributed import Group

DENSE_DATASET_BYTES = 16 * 2**30
"""Largest training set that is kept as dense matrices on a GPU."""


class TrainingGraphs:
    """A set of graphs from which step k of a run takes its batch."""

    def __init__(self, graphs: Sequence[Graph], graphs_per_batch: int, seed: int, group: Group) -> None:
        self.graphs = graphs
        self.graphs_per_batch = graphs_per_batch
        self.seed = seed
        self.group = group
        if group.size > graphs_per_batch:
            have = f"{group.size} processes share a batch of {graphs_per_batch} graphs"
            raise InputError(f"{have}; start fewer or raise graphs_per_batch")
        largest = max(graph.num_nodes for graph in graphs)
        # One padded size for all batches: a compiled network sees one shape.
        self.num_padded = -(-largest // 16) * 16
        fits = 2 * len(graphs) * self.num_padded**2 <= DENSE_DATASET_BYTES
        is_resident = group.device.type == "cuda" and fits
        self.resident = DenseBatch.from_graphs(graphs, group.device, self.num_padded) if is_resident else None

    def batch(self, step: int) -> Batch:
        """This process's share of the batch of an optimiser step; every epoch is a new permutation."""
        epoch, position = divmod(step, len(self.graphs) // self.graphs_per_batch)
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.graphs))
        whole = order[position * self.graphs_per_batch :][: self.graphs_per_batch]
        chosen = whole[self.group.share(self.graphs_per_batch)]
        if self.resident is not None:
            return self.resident.select(torch.from_numpy(chosen).to(self.group.device, non_blocking=True))
        return make_batch([self.graphs[index] for index in chosen], self.group.device)

    def random(self, step: int) -> SharedRandom:
        """The random numbers of an optimiser step, independent of how the run got there."""
        return SharedRandom(
            step_generator(self.seed, step, self.group.device),
            num_graphs=self.graphs_per_batch,
            first_graph=self.group.share(self.graphs_per_batch).start,
            num_padded=self.num_padded,
        )


def step_generator(seed: int, step: int, device: torch.device) -> torch.Generator:
    """A generator whose state is a function of the seed and the step alone."""
    state = np.random.SeedSequence([seed, step]).generate_state(1, dtype=np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state >> np.uint64(1)))
