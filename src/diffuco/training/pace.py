"""How long a run takes on this machine, measured, and the schedule that fits into a given time."""

import logging
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from diffuco.foundation.devices import now
from diffuco.foundation.distributed import Group
from diffuco.graphs.graph import Graph
from diffuco.training.config import TrainConfig
from diffuco.training.data import TrainingGraphs
from diffuco.training.parts import Parts
from diffuco.training.step import TrainStep
from diffuco.training.validation import Validation

_log = logging.getLogger(__name__)

WARM_UP_STEPS = 2
"""Of each size of batch, if steps are recorded: the first compiles, the second is recorded."""
TIMED_STEPS = 4
SHARE_OF_TIME = 0.9
"""Of what is given, so that a run ends in time although some steps take longer."""


class Pace(NamedTuple):
    """Seconds of what a run does again and again."""

    step_s: float
    validation_s: float

    def seconds(self, config: TrainConfig) -> float:
        """The time of a whole run."""
        return config.total_steps * self.step_s + (1 + config.total_steps // config.validate_every) * self.validation_s


def measured_pace(
    parts: Parts, train_graphs: Sequence[Graph], validation_graphs: Sequence[Graph], group: Group
) -> Pace:
    """Take some steps and validate once. This changes the network of `parts`, which is not for use afterwards."""
    config = parts.config
    data = TrainingGraphs(train_graphs, config.graphs_per_batch, config.seed, group)
    if parts.num_examples:
        data.add_examples([np.zeros((graph.num_nodes, parts.num_examples), np.bool_) for graph in train_graphs])
    take_step = TrainStep(parts, data)
    taken: Counter[int] = Counter()
    timed: list[float] = []
    while len(timed) < TIMED_STEPS:
        step = config.imitation_steps + taken.total()
        size = data.chosen(step)[1] if take_step.captured else 0
        started = now(group.device)
        take_step(step, config.start_temperature, 1e-6)
        if taken[size] >= WARM_UP_STEPS:
            timed.append(now(group.device) - started)
        taken[size] += 1
    step_s = statistics.mean(timed)
    validation = Validation(parts, take_step.denoiser, validation_graphs, group.device)
    validation.run()  # which may compile
    started = time.perf_counter()
    validation.run()
    return Pace(step_s, time.perf_counter() - started)


def epochs_until(
    ends: float, parts: Parts, train_graphs: Sequence[Graph], validation_graphs: Sequence[Graph], group: Group
) -> int:
    """Passes through the graphs that end by this time of `time.monotonic`; a group takes the leader's number."""
    pace, config = measured_pace(parts, train_graphs, validation_graphs, group), parts.config
    epochs = torch.tensor(fitted(config, pace, ends - time.monotonic()).anneal_epochs, device=group.device)
    group.follow_leader(epochs)
    minutes = pace.seconds(replace(config, anneal_epochs=int(epochs))) / 60
    if group.is_leader and epochs < config.anneal_epochs:
        _log.info("%d of %d passes through the graphs fit: about %.1f minutes", epochs, config.anneal_epochs, minutes)
    return int(epochs)


def fitted(config: TrainConfig, pace: Pace, seconds: float) -> TrainConfig:
    """The configuration with as many passes through the graphs as fit into the time, at least one.

    >>> config = TrainConfig("mis", "rb-small", num_steps=4, start_temperature=0.3, anneal_epochs=100)
    >>> fitted(config, Pace(step_s=0.1, validation_s=1.0), 600.0).anneal_epochs
    39
    """
    per_step = pace.step_s + pace.validation_s / config.validate_every
    steps = (SHARE_OF_TIME * seconds - pace.validation_s) / per_step - config.imitation_steps
    return replace(config, anneal_epochs=min(config.anneal_epochs, max(1, int(steps / config.steps_per_epoch))))
