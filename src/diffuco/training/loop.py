"""The training loop (Sec. 4): anneal the temperature while minimising the Joint Variational Upper Bound."""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from diffuco.diffusion.noise import make_noise
from diffuco.foundation.errors import InputError
from diffuco.graphs.collection import Collection
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.statistics import describe
from diffuco.inference.sampler import Sampler
from diffuco.model.engine.acceleration import accelerate, pick_engine
from diffuco.model.engine.parameters import FlatParameters
from diffuco.model.gnn import Gnn
from diffuco.pretrained import load_model
from diffuco.problems import Problem, get_problem
from diffuco.training.config import TrainConfig
from diffuco.training.data import TrainingGraphs
from diffuco.training.distributed import joined_group
from diffuco.training.held_out import check_unchanged, publish
from diffuco.training.keeper import Keeper
from diffuco.training.reporting import Reporter
from diffuco.training.resume import FILE, Progress, load_state
from diffuco.training.step import TrainStep
from diffuco.training.validation import Validation


def temperature_at(step: int, config: TrainConfig) -> float:
    """Linear from the start temperature to the end temperature at the last step."""
    done = step / max(1, config.total_steps - 1)
    return config.start_temperature * (1 - done) + config.end_temperature * done


def learning_rate_at(step: int, config: TrainConfig) -> float:
    """Constant, or cosine from the peak down to a tenth after 2.5 % of warm-up."""
    if config.learning_rate_schedule == "constant":
        return config.learning_rate
    warm_up = max(1, round(0.025 * config.total_steps))
    if step < warm_up:
        return config.learning_rate * (step + 1) / warm_up
    done = (step - warm_up) / max(1, config.total_steps - warm_up)
    return config.learning_rate * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done)))


def train(
    config: TrainConfig,
    out: Path,
    *,
    graphs: Collection | None = None,
    resume: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    progress: bool = True,
) -> dict[str, Any]:
    """Run a configuration and keep `best` and `last` checkpoints and a resumable state in `out`.

    The graphs are those given or, without any, those of the dataset that the configuration names.
    `max_minutes` stops early in a state that `resume` continues from; the schedules stay functions of the step. Under
    torchrun every process calls this and takes its share of each batch.
    """
    if (out / FILE).exists() and not resume:
        raise InputError(f"{out} already holds a run; continue it with --resume or choose another --out")
    if graphs is not None and resume:
        check_unchanged(out, graphs)
    with joined_group(device) as group:
        # Set up the data, the network and the optimiser.
        show = progress and group.is_leader
        problem, noise = _problem(config), make_noise(config.noise, config.num_steps)
        dataset = graphs or get_dataset(config.dataset)
        train_graphs = dataset.graphs("train", config.num_train_graphs, progress=show)
        data = TrainingGraphs(train_graphs, config.graphs_per_batch, config.seed, group)
        model = initial_model(config).to(group.device)
        engine = pick_engine(config.engine, config.model, group.device)
        weights = FlatParameters(model)
        denoiser = accelerate(model, weights, engine, calls_at_once=config.steps_at_once)
        take_step = TrainStep(config, problem, noise, denoiser, weights, data, group, capture=engine == "fused")
        sampler = Sampler(denoiser, config.num_steps, group.device)
        validation_graphs = dataset.graphs("validation", config.num_validation_graphs, progress=show)
        validation = Validation(problem, validation_graphs, config, group.device)
        about = describe(train_graphs)
        keeper = Keeper(out, config, model, engine, take_step.optimizer, validation, about)

        # Resume.
        state = load_state(out, config, model, take_step.optimizer) if resume else _beginning(config)
        if graphs is not None and group.is_leader:
            publish(out, graphs)
        started, seconds_before = time.monotonic(), state.seconds
        with Reporter(out, config, group, first_step=state.step, show=show) as report:
            while state.step < config.total_steps:
                # Anneal, take a batch, differentiate the loss, step.
                temperature = temperature_at(state.step, config)
                outcome = take_step(state.step, temperature, learning_rate_at(state.step, config))
                state.step += 1
                report.step(state.step, temperature, outcome)
                state.seconds = seconds_before + time.monotonic() - started

                # Validate, save.
                stops = max_minutes is not None and group.any(time.monotonic() - started > 60 * max_minutes)
                if group.is_leader:
                    keeper.keep(state, sampler, report, stops=stops)
                if stops:
                    break
    return {
        "out": str(out),
        "step": state.step,
        "num_steps_total": config.total_steps,
        "finished": state.step == config.total_steps,
        "best_energy": state.best_energy,
        "seconds": state.seconds,
    }


def initial_model(config: TrainConfig) -> Gnn:
    """The network that a run begins with: another run's, or one whose weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers are left untouched
        if config.start_from:
            return _given_model(config)
        torch.manual_seed(config.seed)
        return Gnn(config.model)


def _beginning(config: TrainConfig) -> Progress:
    """Where a run begins: the time that the model it starts from was trained counts as its own."""
    minutes = load_model(config.start_from).card.get("minutes", 0.0) if config.start_from else 0.0
    return Progress(seconds=60 * minutes)


def _given_model(config: TrainConfig) -> Gnn:
    start = load_model(config.start_from).model
    factor, rest = divmod(config.num_steps, start.config.num_steps)
    if rest or replace(start.config, num_steps=config.num_steps) != config.model:
        raise InputError(
            f"model '{config.start_from}' is {start.config}, this run trains {config.model}; give the run the same "
            "layers and features and as many steps or a multiple of them, or another model to start from"
        )
    return start.stretched(factor)


def _problem(config: TrainConfig) -> Problem:
    has_penalty = hasattr(get_problem(config.problem), "penalty")
    return get_problem(config.problem, config.penalty if has_penalty else None)
