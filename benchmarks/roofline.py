"""How close an engine comes to the limits of its device: the arithmetic it must do, the fewest bytes, the time taken.

Only existing nodes count, not padding. A layer multiplies every row of F features with five F x F matrices (message,
skip, three in the MLP), and the head with two more. In the backward pass, each product becomes two, one for the
gradient of the input and one for that of the weights, except where the input is data. A neighbour sum is a product with
the n x n adjacency, or one addition per directed edge if the batch has lists of neighbours. In the backward pass, it is
the same sum over gradients.

Neighbour sums need whole graphs, so three tensors per layer go through memory: the features, the messages and the sums.
The forward pass writes and reads each of them once. The backward pass reads features and sums again, and writes and
reads the gradients of all three once. Adjacencies are read once per sum, for any number of samples. The loss, random
numbers, the encoding of the step, weights and the optimiser are left out, because they are small.

Legend: F features, R random features, L layers, rows are nodes x samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from evidence import Limits, Record

from diffuco.graphs.graph import Graph
from diffuco.model import GnnConfig, Network
from diffuco.model.engine.acceleration import ENGINES, pick_engine
from diffuco.training.config import TrainConfig
from diffuco.training.parts import choose_parts

FLOAT_BYTES = {"reference": 4, "tiled": 4, "compiled": 2, "fused": 2}
"""Bytes of an activation."""


@dataclass(frozen=True)
class Work:
    """Arithmetic and memory traffic that cannot be avoided."""

    flop: float = 0
    num_bytes: float = 0

    def __add__(self, other: "Work") -> "Work":
        return Work(self.flop + other.flop, self.num_bytes + other.num_bytes)

    def __mul__(self, times: float) -> "Work":
        return Work(times * self.flop, times * self.num_bytes)


def forward_work(
    config: GnnConfig, graphs: Sequence[Graph], num_samples: int, *, over_lists: bool, float_bytes: int
) -> Work:
    """One call of the network without gradients."""
    rows, inputs, matrices = _shape(config, graphs, num_samples)
    activations = 2 * (3 * config.num_layers + 1) * config.num_hidden * float_bytes
    ends = 4 * (1 + config.num_random_features + 1)  # state and random features in, logit out
    sums = _neighbor_sum(config, graphs, num_samples, over_lists, float_bytes) * config.num_layers
    return Work(rows * 2 * (inputs + matrices), rows * (activations + ends)) + sums


def backward_work(
    config: GnnConfig, graphs: Sequence[Graph], num_samples: int, *, over_lists: bool, float_bytes: int
) -> Work:
    """The gradient of one call of the network."""
    rows, inputs, matrices = _shape(config, graphs, num_samples)
    read_again = (2 * config.num_layers + 1) * config.num_hidden * float_bytes
    gradients = 2 * (3 * config.num_layers + 1) * config.num_hidden * float_bytes
    ends = 4 * (1 + config.num_random_features + 1)
    sums = _neighbor_sum(config, graphs, num_samples, over_lists, float_bytes) * config.num_layers
    return Work(rows * 2 * (inputs + 2 * matrices), rows * (read_again + gradients + ends)) + sums


def train_step_work(config: TrainConfig, graphs: Sequence[Graph], *, over_lists: bool, float_bytes: int) -> Work:
    """An optimiser step: all diffusion steps forward and backward, and forward again if they are split into chunks."""
    shape = (choose_parts(config).network.config, graphs, config.samples_per_graph)
    times_forward = 1 if config.steps_at_once == config.num_steps else 2
    forward = forward_work(*shape, over_lists=over_lists, float_bytes=float_bytes)
    backward = backward_work(*shape, over_lists=over_lists, float_bytes=float_bytes)
    return (forward * times_forward + backward) * config.num_steps


def _shape(config: GnnConfig, graphs: Sequence[Graph], num_samples: int) -> tuple[int, int, int]:
    """Number of rows, and of the weights that multiply a row: in the encoder and in the rest."""
    hidden = config.num_hidden
    rows = num_samples * sum(graph.num_nodes for graph in graphs)
    inputs = config.num_inputs * hidden
    return rows, inputs, 5 * config.num_layers * hidden**2 + 2 * hidden**2 + hidden


def _neighbor_sum(
    config: GnnConfig, graphs: Sequence[Graph], num_samples: int, over_lists: bool, float_bytes: int
) -> Work:
    columns = num_samples * config.num_hidden
    if over_lists:
        num_entries = 2 * sum(graph.num_edges for graph in graphs)
        per_entry = 2 if config.weighted else 1  # a 4-byte index, and a 4-byte weight to multiply with
        return Work(per_entry * num_entries * columns, 4 * per_entry * num_entries)
    num_cells = sum(graph.num_nodes**2 for graph in graphs)
    return Work(2 * num_cells * columns, float_bytes * num_cells)


def speeds(work: Work, seconds: float, limits: Limits, engine: str) -> Record:
    """The speeds reached, also as shares of the limits; `floor_s` is the shortest time that the limits allow."""
    of_type = limits.float32_tflop_per_s if engine in ("reference", "tiled") else limits.float16_tflop_per_s
    flop_per_s, bytes_per_s = work.flop / seconds, work.num_bytes / seconds
    return {
        "tflop": work.flop / 1e12,
        "gb": work.num_bytes / 1e9,
        "floor_s": max(work.flop / of_type / 1e12, work.num_bytes / limits.copy_gb_per_s / 1e9),
        "tflop_per_s": flop_per_s / 1e12,
        "gb_per_s": bytes_per_s / 1e9,
        "share_of_tflop_per_s": flop_per_s / 1e12 / of_type,
        "share_of_gb_per_s": bytes_per_s / 1e9 / limits.copy_gb_per_s,
    }


SPEED_COLUMNS = ("TFLOP/s", "GB/s", "floor ms")


def speed_cells(record: Record) -> list[str]:
    """The columns of a table for `speeds`."""
    return [
        f"{record['tflop_per_s']:.3g} ({record['share_of_tflop_per_s']:.0%})",
        f"{record['gb_per_s']:.3g} ({record['share_of_gb_per_s']:.0%})",
        f"{1000 * record['floor_s']:.3g}",
    ]


def engines_here(network: Network, device: torch.device) -> tuple[str, ...]:
    """The engines worth comparing on a device."""
    best = pick_engine("auto", network, device)
    return ENGINES[: ENGINES.index(best) + 1]
