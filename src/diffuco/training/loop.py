"""The training loop (Sec. 4): anneal the temperature while minimising the Joint Variational Upper Bound."""

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from diffuco.diffusion.loss import backward_joint_bound
from diffuco.diffusion.noise import make_noise
from diffuco.errors import InputError
from diffuco.evaluation import hardware
from diffuco.graphs.datasets import get_dataset
from diffuco.model.acceleration import accelerate
from diffuco.model.checkpoint import save_checkpoint
from diffuco.model.gnn import Gnn
from diffuco.problems import Problem, get_problem
from diffuco.solver import pick_device
from diffuco.training.config import TrainConfig
from diffuco.training.data import TrainingGraphs, step_generator
from diffuco.training.reporting import Reporter
from diffuco.training.resume import FILE, Progress, load_state, save_state
from diffuco.training.validation import Validation, source_commit


def temperature_at(step: int, config: TrainConfig) -> float:
    """Linear from the start temperature to 0 at the last step."""
    return config.start_temperature * (1 - step / max(1, config.total_steps - 1))


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
    resume: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    progress: bool = True,
) -> dict[str, Any]:
    """Run a configuration and keep `best` and `last` checkpoints and a resumable state in `out`.

    `max_minutes` stops early in a state that `resume` continues from; the schedules stay functions of the step.
    """
    # Set up the device, the data, the network and the optimiser.
    place = pick_device(device)
    if (out / FILE).exists() and not resume:
        raise InputError(f"{out} already holds a run; continue it with --resume or choose another --out")
    problem = _problem(config)
    noise = make_noise(config.noise, config.num_steps)
    dataset = get_dataset(config.dataset)
    train_graphs = dataset.graphs("train", config.num_train_graphs, progress=progress)
    validation_graphs = dataset.graphs("validation", config.num_validation_graphs, progress=progress)
    data = TrainingGraphs(train_graphs, config.graphs_per_batch, config.seed, place)
    model = initial_model(config).to(place)
    optimizer = torch.optim.RAdam(model.parameters(), lr=config.learning_rate)
    denoiser = accelerate(model, place, precision=config.precision, compile=config.compile)
    validation = Validation(problem, validation_graphs, config, place)

    # Resume.
    state = load_state(out, config, model, optimizer) if resume else Progress()
    started, seconds_before = time.monotonic(), state.seconds
    with Reporter(out, config, first_step=state.step, show=progress) as report:
        while state.step < config.total_steps:
            # Anneal, take a batch, differentiate the loss, step.
            temperature = temperature_at(state.step, config)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_at(state.step, config)
            optimizer.zero_grad(set_to_none=True)
            terms = backward_joint_bound(
                denoiser,
                problem,
                noise,
                data.batch(state.step),
                temperature=temperature,
                num_samples=config.samples_per_graph,
                generator=step_generator(config.seed, state.step, place),
                steps_per_chunk=config.steps_per_chunk or None,
            )
            norm = nn.utils.clip_grad_norm_(model.parameters(), config.max_gradient_norm)
            optimizer.step()
            state.step += 1
            state.seconds = seconds_before + time.monotonic() - started
            report.step(state.step, temperature, terms, norm)

            # Validate, save.
            is_last = state.step == config.total_steps
            if state.step % config.validate_every == 0 or is_last:
                scores = validation.run(denoiser)
                report.validation(state.step, scores)
                if scores["energy"] < state.best_energy:
                    state.best_energy = scores["energy"]
                    _save_model(out / "best.safetensors", model, config, state, scores)
                _save_model(out / "last.safetensors", model, config, state, scores)
            if state.step % config.checkpoint_every == 0:
                save_state(out, config, model, optimizer, state)
            if max_minutes is not None and time.monotonic() - started > 60 * max_minutes:
                break
        save_state(out, config, model, optimizer, state)
    return {
        "out": str(out),
        "step": state.step,
        "num_steps_total": config.total_steps,
        "finished": state.step == config.total_steps,
        "best_energy": state.best_energy,
        "seconds": state.seconds,
    }


def initial_model(config: TrainConfig) -> Gnn:
    """The network with weights that depend on the seed alone; the caller's random numbers are left untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Gnn(config.model)


def _problem(config: TrainConfig) -> Problem:
    has_penalty = hasattr(get_problem(config.problem), "penalty")
    return get_problem(config.problem, config.penalty if has_penalty else None)


def _save_model(path: Path, model: Gnn, config: TrainConfig, state: Progress, scores: dict[str, float]) -> None:
    card = {
        "dataset": config.dataset,
        "training": asdict(config),
        "step": state.step,
        "minutes": round(state.seconds / 60, 2),
        "validation": scores,
        "commit": source_commit(),
        "hardware": hardware(next(model.parameters()).device),
    }
    save_checkpoint(path, model, problem=config.problem, card=card)
