"""What a run shows while it trains: a progress line, a JSON-lines log and, where installed, TensorBoard scalars."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch import Tensor

from diffuco.diffusion.loss import StepCost
from diffuco.training.config import TrainConfig

LOG_EVERY = 50
"""Optimiser steps between log lines; reading a loss off a GPU waits for it, so not every step."""


class Reporter:
    """Context manager around the steps of one sitting."""

    def __init__(self, folder: Path, config: TrainConfig, *, first_step: int, show: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(asdict(config), indent=2) + "\n")
        self.log = open(folder / "log.jsonl", "a")  # noqa: SIM115 (closed in __exit__)
        self.scalars = _scalar_writer(folder)
        self.started, self.first_step = time.monotonic(), first_step
        self.bar = Progress(
            TextColumn("{task.description}"),
            *(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()),
            console=Console(file=sys.stderr),
            disable=not show,
        )
        self.task = self.bar.add_task("training", total=config.total_steps, completed=first_step)
        self.best = ""

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()
        self.log.close()
        if self.scalars is not None:
            self.scalars.close()

    def step(self, step: int, temperature: float, terms: StepCost, gradient_norm: Tensor) -> None:
        """Report a finished optimiser step, now and then."""
        if step % LOG_EVERY:
            return
        values = {
            "loss": terms.total.item(),
            "energy": terms.energy.item(),
            "entropy_term": terms.entropy.item(),
            "noise_term": terms.noise.item(),
            "temperature": temperature,
            "gradient_norm": gradient_norm.item(),
            "milliseconds_per_step": 1000 * (time.monotonic() - self.started) / (step - self.first_step),
        }
        self.bar.update(self.task, completed=step, description=f"energy {values['energy']:.3f} {self.best}")
        self._write("train", step, values)

    def validation(self, step: int, scores: dict[str, float]) -> None:
        """Report a validation."""
        self.best = f"validation {scores['energy']:.3f}"
        self._write("validation", step, scores)

    def _write(self, kind: str, step: int, values: dict[str, Any]) -> None:
        self.log.write(json.dumps({"kind": kind, "step": step} | values) + "\n")
        self.log.flush()
        if self.scalars is not None:
            for name, value in values.items():
                self.scalars.add_scalar(f"{kind}/{name}", value, step)


def _scalar_writer(folder: Path) -> Any:
    """TensorBoard's writer, or None where the extra is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"))
