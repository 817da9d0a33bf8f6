"""The training loop (Sec. 4): anneal the temperature while minimising an objective, by default the joint bound."""

import math
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from diffuco.foundation.distributed import joined_group
from diffuco.graphs.collection import Collection
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.statistics import describe
from diffuco.pretrained import load_model
from diffuco.training.config import TrainConfig
from diffuco.training.data import TrainingGraphs
from diffuco.training.examples import find_examples
from diffuco.training.folder import claimed
from diffuco.training.held_out import publish
from diffuco.training.keeper import Keeper
from diffuco.training.pace import epochs_until
from diffuco.training.parts import AnyNetwork, AnyNoise, AnyObjective, AnyProblem, Parts, choose_parts
from diffuco.training.reporting import Reporter
from diffuco.training.resume import Progress, load_state, started_config
from diffuco.training.step import TrainStep
from diffuco.training.validation import Validation


def temperature_at(step: int, config: TrainConfig) -> float:
    """Linear from the start temperature at the objective's first step to the end temperature at its last."""
    taken, length = config.share_done(step)
    done = taken / max(1, length - 1)
    return config.start_temperature * (1 - done) + config.end_temperature * done


def learning_rate_at(step: int, config: TrainConfig) -> float:
    """Constant, or 2.5 % of warm-up and then a cosine from the peak down to a tenth of it, in each stage."""
    if config.learning_rate_schedule == "constant":
        return config.learning_rate
    taken, length = config.share_done(step)
    warm_up = max(1, round(0.025 * length))
    if taken < warm_up:
        return config.learning_rate * (taken + 1) / warm_up
    done = (taken - warm_up) / max(1, length - warm_up)
    return config.learning_rate * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done)))


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    problem: AnyProblem | None = None,
    network: AnyNetwork | None = None,
    noise: AnyNoise | None = None,
    objective: AnyObjective | None = None,
    graphs: Collection | None = None,
    resume: bool = False,
    max_minutes: float | None = None,
    stop_after_minutes: float | None = None,
    device: str = "auto",
    progress: bool = True,
) -> dict[str, Any]:
    """Run a configuration; keep `best` and `last` checkpoints and a resumable state in `out`.

    A problem, network, noise, objective or graphs of your own take the place of what the configuration names.
    `max_minutes` shortens the schedules so that they end within about that time. `stop_after_minutes` stops early, in a
    state that `resume` continues from; the schedules do not change. Under torchrun every process calls this and takes
    its share of each batch.
    """
    out, began = Path(out), time.monotonic()
    choose = partial(choose_parts, problem=problem, network=network, noise=noise, objective=objective)
    parts = choose(config)
    config = parts.config
    with claimed(out, graphs, resume=resume), joined_group(device) as group:
        # Set up the data, the network, the optimiser and the validation.
        show = progress and group.is_leader
        dataset = graphs or get_dataset(config.dataset)
        train_graphs = dataset.graphs("train", config.num_train_graphs, progress=show)
        validation_graphs = dataset.graphs("validation", config.num_validation_graphs, progress=show)
        if max_minutes is not None:
            ends = began + 60 * max_minutes
            epochs = (
                started_config(out).anneal_epochs
                if resume
                else epochs_until(ends, parts, train_graphs, validation_graphs, group)
            )
            parts = choose(replace(config, anneal_epochs=epochs))
            config = parts.config
        data = TrainingGraphs(train_graphs, config.graphs_per_batch, config.seed, group)
        if parts.num_examples:
            data.add_examples(find_examples(parts, train_graphs, group.device, show=show))
        take_step = TrainStep(parts, data)
        validation = Validation(parts, take_step.denoiser, validation_graphs, group.device)
        keeper = Keeper(out, parts, take_step, validation, describe(train_graphs))

        # Resume.
        state = load_state(out, parts, take_step.optimizer) if resume else _beginning(parts)
        if graphs is not None and group.is_leader:
            publish(out, graphs)
        started, seconds_before = time.monotonic(), state.seconds
        with Reporter(out, config, group, first_step=state.step, show=show) as report:
            while state.step < config.total_steps:
                # Anneal, take a batch, differentiate the objective, update.
                temperature = temperature_at(state.step, config)
                outcome = take_step(state.step, temperature, learning_rate_at(state.step, config))
                state.step += 1
                report.step(state.step, temperature, outcome)
                state.seconds = seconds_before + time.monotonic() - started

                # Validate, save.
                limit = stop_after_minutes
                stops = limit is not None and group.any(time.monotonic() - started > 60 * limit)
                if group.is_leader:
                    keeper.keep(state, report, stops=stops)
                if stops:
                    break
    return _summary(out, config, state)


def _beginning(parts: Parts) -> Progress:
    """Where a run begins: the minutes that were spent on the model it starts from count."""
    start = parts.config.start_from
    minutes = load_model(start, network=type(parts.network)).card.get("minutes", 0.0) if start else 0.0
    return Progress(seconds=60 * minutes)


def _summary(out: Path, config: TrainConfig, state: Progress) -> dict[str, Any]:
    return {
        "out": str(out),
        "step": state.step,
        "num_steps_total": config.total_steps,
        "finished": state.step == config.total_steps,
        "best_energy": state.best_energy,
        "seconds": state.seconds,
    }
