"""Figures that need models of their own, trained on RB-100: Fig. 2 middle (steps, noise, annealing) and Fig. 3 right.

A run is named by what it varies and lies in the folder `rb-100` of the runs. A finished run is never trained again.
"""

import gc
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from diffuco.evaluation.metrics import mean_with_error
from diffuco.foundation.errors import InputError
from diffuco.model.header import read_card
from diffuco.training.config import TrainConfig
from diffuco.training.loop import train
from diffuco.training.recipes import get_recipe
from diffuco.training.resume import FILE
from experiments.paper.measurement import about_models, measure_model, summary
from experiments.paper.records import Row, Task
from experiments.paper.workspace import Workspace

Noise = Literal["annealed", "categorical"]
Temperature = Literal["falling", "zero", "constant"]
"""With annealing, without it, and as in Fig. 3 right."""

NOISES: tuple[Noise, ...] = ("categorical", "annealed")
NUM_STEPS = (1, 2, 3, 4, 5)
SEEDS = (0, 1, 2)
CURVE_POINTS = 40
"""Points to keep of a training curve. Each is a mean over lines of the log, because batches differ in size."""
TEST_GRAPHS = 500


@dataclass(frozen=True)
class AblationRun:
    """A training run of the grid."""

    noise: Noise
    temperature: Temperature
    num_steps: int
    seed: int
    quick: bool

    @property
    def name(self) -> str:
        """Name of the run's folder.

        >>> AblationRun("annealed", "falling", 3, 0, quick=False).name
        'annealed-falling-3-seed0'
        """
        return f"{self.noise}-{self.temperature}-{self.num_steps}-seed{self.seed}"

    @property
    def config(self) -> TrainConfig:
        """The recipe `mis-rb-100` with the settings that the run varies; quick: a tiny network on tiny graphs."""
        base = get_recipe("mis-rb-100")
        if self.quick:
            tiny = replace(get_recipe("mis-tiny"), anneal_epochs=15, num_layers=2, num_hidden=16)
            base = replace(tiny, num_train_graphs=64, num_validation_graphs=8)
        start = 0.0 if self.temperature == "zero" else base.start_temperature
        return replace(
            base,
            noise=self.noise,
            num_steps=self.num_steps,
            start_temperature=start,
            end_temperature=start if self.temperature == "constant" else 0.0,
            seed=self.seed,
        )

    def folder(self, space: Workspace) -> Path:
        """Folder of the run."""
        return space.runs / ("rb-100-quick" if self.quick else "rb-100") / self.name

    def is_finished(self, space: Workspace) -> bool:
        """Whether training took its last step."""
        last = self.folder(space) / "last.safetensors"
        return last.exists() and read_card(last)["step"] == self.config.total_steps


def step_runs(quick: bool) -> list[AblationRun]:
    """The grid of Fig. 2 middle, all runs of one seed before those of the next."""
    temperatures: tuple[Temperature, ...] = ("falling", "zero")
    return [
        AblationRun(noise=noise, temperature=temperature, num_steps=num_steps, seed=seed, quick=quick)
        for seed in (SEEDS[:1] if quick else SEEDS)
        for num_steps in (NUM_STEPS[1:3] if quick else NUM_STEPS)
        for temperature in temperatures
        for noise in NOISES
    ]


def likelihood_runs(quick: bool) -> list[AblationRun]:
    """The runs of Fig. 3 right: constant temperature, the most steps."""
    num_steps = 3 if quick else NUM_STEPS[-1]
    return [
        AblationRun(noise=noise, temperature="constant", num_steps=num_steps, seed=0, quick=quick) for noise in NOISES
    ]


def train_missing(space: Workspace, runs: Sequence[AblationRun]) -> Iterator[str]:
    """Train the unfinished runs of this process's share, one after the other; yield the name of each.

    Several processes, each with its own share, keep a GPU busier than one. Training stops after `max_minutes`; the same
    call continues it.
    """
    number, of = space.options.share
    started = time.monotonic()
    for run in runs[number - 1 :: of]:
        if run.is_finished(space):
            continue
        left = None
        if space.options.max_minutes is not None:
            left = space.options.max_minutes - (time.monotonic() - started) / 60
            if left <= 0:
                return
        folder = run.folder(space)
        resume = (folder / FILE).exists()
        train(run.config, folder, resume=resume, stop_after_minutes=left, device=space.options.device, progress=False)
        gc.collect()  # steps recorded on a GPU hold its memory in reference cycles
        yield run.name


def step_tasks(space: Workspace) -> list[Task]:
    """Fig. 2 middle: the relative error over diffusion steps, for both noises, with and without annealing.

    A row is a run, so that each seed can be trained and measured on its own.
    """
    return [
        Task(
            run.name,
            {"noise": run.noise, "temperature": run.temperature, "num_steps": run.num_steps},
            partial(_error, space, run),
        )
        for run in step_runs(space.options.quick)
    ]


def _error(space: Workspace, run: AblationRun) -> Row:
    """Gap with the steps of training, decoded and as drawn."""
    _check_finished(space, run)
    solver = space.solver(run.folder(space) / "best.safetensors")
    dataset, options = run.config.dataset, space.options
    count = options.count or (16 if options.quick else TEST_GRAPHS)
    graphs, references = space.graphs(dataset, count), space.references("mis", dataset, count)
    settings = {"samples": space.samples, "step_factor": 1, "seed": options.seed}
    decoded, drawn = (
        summary(solver.problem, graphs, references, [measure_model(solver, graphs, token_size=token_size, **settings)])
        for token_size in (1, 0)
    )
    undecoded = {"gap": drawn["gap"], "gap_error": drawn["gap_error"]}
    return about_models([solver]) | decoded | {"undecoded": undecoded}


def over_seeds(rows: Sequence[Row]) -> list[Row]:
    """One row per setting of Fig. 2 middle: the mean gap of its seeds, and where each was measured (`origins`).

    The error is over the seeds or, if there is only one, over its graphs.
    """
    settings: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        settings.setdefault((row["noise"], row["temperature"], row["num_steps"]), []).append(row)
    return [_mean_row(of_setting) for of_setting in settings.values()]


def _mean_row(rows: Sequence[Row]) -> Row:
    about = {name: rows[0][name] for name in ("noise", "temperature", "num_steps")}
    measured = [row for row in rows if "ours" in row]
    if not measured:
        return about | {"missing": rows[0]["missing"]}
    ours = measured[0]["ours"]
    gap = mean_with_error([row["ours"]["gap"] for row in measured])
    error = gap.standard_error if len(measured) > 1 else ours["gap_error"]
    numbers = {name: ours[name] for name in ("graphs", "referenced", "proven")}
    numbers |= {"gap": gap.mean, "gap_error": error, "seeds": len(measured)}
    return about | {"ours": numbers, "origins": [row["origin"] for row in measured]}


def likelihood_tasks(space: Workspace) -> list[Task]:
    """Fig. 3 right: the likelihood of the model's paths under the forward process, over training."""
    return [
        Task(f"{run.noise} noise", {"noise": run.noise}, partial(_curve, space, run))
        for run in likelihood_runs(space.options.quick)
    ]


def _curve(space: Workspace, run: AblationRun) -> Row:
    _check_finished(space, run)
    lines = [json.loads(line) for line in (run.folder(space) / "log.jsonl").read_text().splitlines()]
    # A run that was killed and continued logs some steps twice; the later line counts.
    values = {line["step"]: line["forward_log_likelihood"] for line in lines if line["kind"] == "train"}
    steps = sorted(values)
    # The first step is a point of its own.
    parts = [np.array(steps[:1]), *np.array_split(np.array(steps[1:]), min(CURVE_POINTS, len(steps) - 1))]
    points = [{"x": int(part[-1]), "y": float(np.mean([values[step] for step in part.tolist()]))} for part in parts]
    config = run.config
    return {"run": run.name, "temperature": config.start_temperature, "num_steps": config.num_steps, "points": points}


def _check_finished(space: Workspace, run: AblationRun) -> None:
    if not run.is_finished(space):
        raise InputError(f"no finished run {run.name}; train it with --train --only {run.name}")
