"""A recipe for a user's own graphs, chosen by their size, density and weights, and by the device.

The choice depends on the graphs and the kind of device alone, not on how much memory is free or how busy the device is,
so all processes of a run make the same choice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.graphs.collection import SPLITS, Collection
from diffuco.graphs.graph import Graph
from diffuco.graphs.statistics import GraphStatistics, describe
from diffuco.problems import Problem, get_problem, without_ignored_weights
from diffuco.training.config import TrainConfig

MIN_TRAIN_GRAPHS = 8
BYTES_PER_FEATURE = 110
"""Memory of a training step per row (node, sample and diffusion step), layer and feature. Measured on a CPU in float32;
the fused engine on a GPU needs less."""


@dataclass(frozen=True)
class Means:
    """What suits a kind of device."""

    num_hidden: int
    num_layers: int
    num_steps: int
    samples_per_graph: int
    learning_rate: float
    rows: int
    """Rows of a batch (nodes times samples times diffusion steps) that keep the device busy."""
    num_bytes: int
    """Memory that a step may use."""
    seconds_per_feature: float
    """Measured time of a step per row, layer and feature."""
    min_step_s: float
    """Time of the smallest step."""
    seconds: float
    """Target time of the whole run."""


CPU = Means(
    32, 4, 4, 6, 0.002, rows=2**14, num_bytes=4 * 2**30, seconds_per_feature=60e-9, min_step_s=0.02, seconds=300
)
GPU = Means(
    64, 8, 8, 8, 0.001, rows=2**19, num_bytes=16 * 2**30, seconds_per_feature=35e-12, min_step_s=0.004, seconds=600
)
"""The network is that of the shipped models. Memory is for a GPU with 24 GB; larger batches would not be faster."""
MIN_STEPS, MAX_STEPS = 1000, 20_000


@dataclass(frozen=True)
class Fit:
    """A recipe and what the user is told about it."""

    config: TrainConfig
    statistics: GraphStatistics
    """Sizes and densities of the training graphs."""
    num_bytes: int
    """Estimated peak memory of a step."""
    seconds: float
    """Estimated time of the run on one core or one GPU."""


def fit_recipe(problem: str | Problem, graphs: Collection, device: torch.device) -> Fit:
    """Choose a network, batches and schedules for a collection; too small a collection is an InputError."""
    parts = {split: graphs.graphs(split) for split in SPLITS}
    _check_enough(graphs, parts)
    problem, training = get_problem(problem), parts["train"]
    statistics, means = describe(training), GPU if device.type == "cuda" else CPU
    config = TrainConfig(
        problem=problem.name,
        dataset=graphs.name,
        num_steps=means.num_steps,
        start_temperature=start_temperature(problem, training),
        anneal_epochs=1,
        learning_rate=means.learning_rate,
        noise="exponential",
        num_layers=means.num_layers,
        num_hidden=means.num_hidden,
        weighted=any(_has_weights(without_ignored_weights(problem, graph)) for graph in training),
        samples_per_graph=means.samples_per_graph,
        num_train_graphs=len(training),
        num_validation_graphs=min(64, len(parts["validation"])),
        graphs_per_batch=1,
    )
    config = _with_batches(config, statistics, means)
    step_s = step_seconds(config, statistics, means)
    steps = min(MAX_STEPS, max(MIN_STEPS, int(means.seconds / step_s)))
    epochs = max(1, round(steps / config.steps_per_epoch))
    config = replace(config, anneal_epochs=epochs)
    every = max(50, min(500, config.total_steps // 20))
    config = replace(config, validate_every=every, checkpoint_every=every)
    return Fit(config, statistics, step_bytes(config, statistics), config.total_steps * step_s)


def start_temperature(problem: Problem, graphs: Sequence[Graph]) -> float:
    """0.1 times a typical node weight or, for problems that weigh edges, 0.05 times the spread of a node's energy.

    A node's energy is a sum over its edges, so its spread grows like their weight times the root of their number.
    """
    # A median over graphs, as their weights may differ by orders of magnitude.
    if not problem.uses_edge_weights:
        typical = [_root_mean_square(graph.node_weights) for graph in graphs] if problem.uses_node_weights else [1.0]
        return float(f"{0.1 * float(np.median(typical)):.2g}")
    varies = [
        _root_mean_square(graph.edge_weights) * math.sqrt(2 * graph.num_edges / graph.num_nodes) for graph in graphs
    ]
    return float(f"{0.05 * float(np.median(varies)):.2g}")


def step_bytes(config: TrainConfig, statistics: GraphStatistics) -> int:
    """Estimated memory of a step on a batch of the largest graphs."""
    rows = statistics.nodes[2] * config.graphs_per_batch * config.samples_per_graph * config.steps_at_once
    return BYTES_PER_FEATURE * rows * config.num_layers * config.num_hidden


def step_seconds(config: TrainConfig, statistics: GraphStatistics, means: Means) -> float:
    """Estimated time of a step on graphs of mean size; a high degree makes it slower."""
    rows = statistics.nodes[1] * config.graphs_per_batch * config.samples_per_graph * config.num_steps
    again = 4 / 3 if config.steps_at_once < config.num_steps else 1.0
    crowded = 1 + statistics.mean_degree / 100
    work = rows * config.num_layers * config.num_hidden * crowded * again
    return max(means.min_step_s, means.seconds_per_feature * work)


def _check_enough(graphs: Collection, parts: dict[str, list[Graph]]) -> None:
    counts = {split: len(part) for split, part in parts.items()}
    if counts["train"] >= MIN_TRAIN_GRAPHS and counts["validation"] and counts["test"]:
        return
    shares = ", ".join(f"{count} for {split}" for split, count in counts.items())
    raise InputError(
        f"{graphs.name}: {counted(len(graphs.members), 'different graph')} with edges, too few to train on ({shares}); "
        "add graphs of the same kind, about a hundred or more, or solve these with a shipped model"
    )


def _with_batches(config: TrainConfig, statistics: GraphStatistics, means: Means) -> TrainConfig:
    """As many graphs per batch as keep the device busy; if memory is short, fewer, then chunks, then two samples."""
    rows_per_graph = statistics.nodes[1] * config.samples_per_graph * config.num_steps
    wanted = min(32, config.num_train_graphs // 4, max(4, int(means.rows / rows_per_graph)))
    choices = [
        *(replace(config, graphs_per_batch=count) for count in range(wanted, min(wanted, 4) - 1, -1)),
        *(replace(config, graphs_per_batch=count, steps_per_chunk=1) for count in range(min(wanted, 4), 0, -1)),
        replace(config, graphs_per_batch=1, steps_per_chunk=1, samples_per_graph=2),
    ]
    for choice in choices:
        if step_bytes(choice, statistics) <= means.num_bytes:
            return choice
    raise InputError(
        f"{config.dataset}: a graph of {statistics.nodes[2]} nodes is too large to train on, a step would take "
        f"{step_bytes(choices[-1], statistics) / 2**30:.0f} GiB; take the largest graphs out"
    )


def _has_weights(graph: Graph) -> bool:
    return graph.edge_weights is not None or graph.node_weights is not None


def _root_mean_square(weights: NDArray[np.float64] | None) -> float:
    return 1.0 if weights is None else math.sqrt(float(np.square(weights).mean()))
