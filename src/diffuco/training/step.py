"""One optimiser step: differentiate the loss on a batch, clip, update. On one GPU it is recorded and replayed."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from diffuco.diffusion.loss import StepCost, backward_joint_bound
from diffuco.diffusion.noise import Noise
from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser
from diffuco.graphs.batch import Batch
from diffuco.model.engine.parameters import FlatParameters
from diffuco.ops.capture import CapturedCalls
from diffuco.problems import Problem
from diffuco.training.config import TrainConfig
from diffuco.training.data import TrainingGraphs
from diffuco.training.distributed import Group


class Outcome(NamedTuple):
    """What a step tells; on a GPU valid until the next one."""

    terms: StepCost
    """The loss of this process's graphs."""
    gradient_norm: Tensor
    """Before clipping."""


class TrainStep:
    """Takes steps of a run, each a function of the weights, the optimiser's state, the step's number and schedules."""

    def __init__(
        self,
        config: TrainConfig,
        problem: Problem,
        noise: Noise,
        denoiser: Denoiser,
        weights: FlatParameters,
        data: TrainingGraphs,
        group: Group,
        *,
        capture: bool,
    ) -> None:
        self.config, self.problem, self.noise, self.denoiser = config, problem, noise, denoiser
        self.weights, self.data, self.group = weights, data, group
        on_gpu = group.device.type == "cuda"
        rate = torch.tensor(config.learning_rate, device=group.device)
        self.optimizer = torch.optim.RAdam([weights.vector], lr=rate, foreach=False, capturable=on_gpu)
        # What is recorded must stay on the device and in one process.
        self.captured = capture and on_gpu and group.size == 1 and data.resident is not None
        self.calls = CapturedCalls(self._resident_step, group.device)

    def __call__(self, step: int, temperature: float, learning_rate: float) -> Outcome:
        """Take optimiser step number `step`."""
        schedules = torch.tensor([temperature, learning_rate])
        seed = step_seed(self.config.seed, step)
        if not self.captured:
            self.calls.generator.manual_seed(seed)
            return self._step(self.data.batch(step), self._random(), schedules.to(self.group.device))
        chosen, num_padded = self.data.chosen(step)
        outcome: Outcome = self.calls(num_padded, torch.from_numpy(chosen), schedules, seed=seed)
        return outcome

    def _resident_step(self, num_padded: int, chosen: Tensor, schedules: Tensor) -> Outcome:
        assert self.data.resident is not None
        return self._step(self.data.resident.select(chosen, num_padded), self._random(), schedules)

    def _step(self, batch: Batch, random: RandomSource, schedules: Tensor) -> Outcome:
        temperature, learning_rate = schedules
        self.optimizer.param_groups[0]["lr"].copy_(learning_rate)
        self.weights.gradient.zero_()
        terms = backward_joint_bound(
            self.denoiser,
            self.problem,
            self.noise,
            batch,
            temperature=temperature,
            num_samples=self.config.samples_per_graph,
            random=random,
            steps_per_chunk=self.config.steps_at_once,
            num_graphs=self.config.graphs_per_batch,
        )
        self.group.add_up(self.weights.gradient)
        norm = nn.utils.clip_grad_norm_([self.weights.vector], self.config.max_gradient_norm, foreach=False)
        self.optimizer.step()
        return Outcome(terms, norm)

    def _random(self) -> RandomSource:
        return self.data.random(self.calls.generator)


def step_seed(seed: int, step: int) -> int:
    """The seed of one step's random numbers, a function of the run's seed and the step alone."""
    state = np.random.SeedSequence([seed, step]).generate_state(1, dtype=np.uint64)[0]
    return int(state >> np.uint64(1))
