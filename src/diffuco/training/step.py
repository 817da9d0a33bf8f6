"""One optimiser step: differentiate the objective on a batch, clip, update. One GPU replays it as a CUDA graph."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from diffuco.graphs.batch import Batch
from diffuco.model.engine.acceleration import accelerate, pick_engine
from diffuco.model.engine.parameters import FlatParameters
from diffuco.ops.capture import CapturedCalls
from diffuco.training.data import TrainingGraphs
from diffuco.training.optimizer import make_optimizer
from diffuco.training.parts import Parts


class Outcome(NamedTuple):
    """The result of a step; on a GPU it is valid until the next one."""

    numbers: Mapping[str, Tensor | float]
    """What the objective returned for this process's graphs."""
    gradient_norm: Tensor
    """Norm of the whole gradient before clipping."""


class TrainStep:
    """Takes the steps of a run; each depends on the parameters, the optimiser's state, its number and the schedules."""

    def __init__(self, parts: Parts, data: TrainingGraphs, *, capture: bool = True) -> None:
        self.parts, self.data, self.group = parts, data, data.group
        config, device = parts.config, data.group.device
        network = parts.network.to(device)
        self.engine = pick_engine(config.engine, network, device)
        self.parameters = FlatParameters(network)
        self.group.follow_leader(self.parameters.vector)
        # Imitation has its own, because the fused engine reserves memory for the calls of an objective.
        self.denoiser, self.imitator = (
            accelerate(network, self.parameters, self.engine, calls_at_once=objective.calls_at_once)
            for objective in (parts.objective, parts.first_objective)
        )
        self.optimizer = make_optimizer(config.optimizer, self.parameters, config.learning_rate, network)
        # A CUDA graph stays on the device and in one process.
        self.captured = capture and self.engine == "fused" and self.group.size == 1 and data.resident is not None
        self.calls = CapturedCalls(self._resident_step, device)

    def __call__(self, step: int, temperature: float, learning_rate: float) -> Outcome:
        """Take optimiser step number `step`."""
        schedules = torch.tensor([temperature, learning_rate])
        seed = step_seed(self.parts.config.seed, step)
        chosen, num_padded = self.data.chosen(step)
        imitates = step < self.parts.config.imitation_steps
        if not self.captured:
            self.calls.generator.manual_seed(seed)
            batch = self.data.batch(chosen, num_padded)
            positions = torch.from_numpy(chosen).to(self.group.device)
            return self._step(imitates, batch, positions, schedules.to(self.group.device))
        outcome: Outcome = self.calls((imitates, num_padded), torch.from_numpy(chosen), schedules, seed=seed)
        return outcome

    def _resident_step(self, key: tuple[bool, int], chosen: Tensor, schedules: Tensor) -> Outcome:
        imitates, num_padded = key
        assert self.data.resident is not None
        return self._step(imitates, self.data.resident.select(chosen, num_padded), chosen, schedules)

    def _step(self, imitates: bool, batch: Batch, chosen: Tensor, schedules: Tensor) -> Outcome:
        parts, (temperature, learning_rate) = self.parts, schedules
        self.optimizer.learning_rate.copy_(learning_rate)
        self.parameters.gradient.zero_()
        objective = parts.first_objective if imitates else parts.objective
        examples = self.data.examples_of(batch, chosen) if objective.num_examples else None
        numbers = objective.backward(
            self.imitator if imitates else self.denoiser,
            parts.problem,
            parts.noise,
            batch,
            temperature=temperature,
            random=self.data.random(self.calls.generator),
            num_graphs=parts.config.graphs_per_batch,
            **({} if examples is None else {"examples": examples}),
        )
        self.group.add_up(self.parameters.gradient)
        norm = nn.utils.clip_grad_norm_([self.parameters.vector], parts.config.max_gradient_norm, foreach=False)
        self.optimizer.step()
        return Outcome(numbers, norm)


def step_seed(seed: int, step: int) -> int:
    """The seed of one step's random numbers, a function of the run's seed and the step alone."""
    state = np.random.SeedSequence([seed, step]).generate_state(1, dtype=np.uint64)[0]
    return int(state >> np.uint64(1))
