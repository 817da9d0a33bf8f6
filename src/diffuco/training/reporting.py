"""What a run shows while it trains: a progress line, a JSON-lines log and, where installed, TensorBoard scalars."""

import json
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from diffuco.foundation.distributed import Group
from diffuco.foundation.files import finite
from diffuco.training.config import TrainConfig
from diffuco.training.step import Outcome

LOG_EVERY = 50
"""Optimiser steps between log lines; not every step, as reading a number back waits for the GPU."""
LINE_EVERY_S = 60.0
"""Seconds between lines on standard error, where it is a file."""


class Reporter:
    """Context manager around the steps of one sitting; of several processes, only the leader reports."""

    def __init__(self, folder: Path, config: TrainConfig, group: Group, *, first_step: int, show: bool) -> None:
        self.group = group
        self.files: _Files | None = _Files(folder, config) if group.is_leader else None
        self.started, self.first_step = time.monotonic(), first_step
        self.bar = Progress(
            TextColumn("{task.description}"),
            *(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()),
            console=Console(stderr=True),
            disable=not (show and sys.stderr.isatty()),
        )
        self.next_line_s = LINE_EVERY_S if show and not sys.stderr.isatty() else math.inf
        self.task = self.bar.add_task("training", total=config.total_steps, completed=first_step)
        self.num_steps, self.last_validation = config.total_steps, ""

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()
        if self.files is not None:
            self.files.close()

    def step(self, step: int, temperature: float, outcome: Outcome) -> None:
        """Report a finished optimiser step: the first of a run, then every `LOG_EVERY`."""
        if step % LOG_EVERY and step != 1:
            return
        given = {name: torch.as_tensor(value, device=self.group.device) for name, value in outcome.numbers.items()}
        numbers = {name: self.group.sum(value).item() for name, value in given.items()}
        shown = "".join(f"{name} {value:.3f} " for name, value in list(numbers.items())[:1])
        self.bar.update(self.task, completed=step, description=shown + self.last_validation)
        self._print_now_and_then(step, shown)
        numbers |= {
            "temperature": temperature,
            "gradient_norm": outcome.gradient_norm.item(),
            "milliseconds_per_step": 1000 * (time.monotonic() - self.started) / (step - self.first_step),
        }
        if self.files is not None:
            self.files.write("train", step, numbers)

    def _print_now_and_then(self, step: int, shown: str) -> None:
        """Where there is no terminal for a bar, a line every minute."""
        elapsed_s = time.monotonic() - self.started
        if elapsed_s < self.next_line_s:
            return
        self.next_line_s = elapsed_s + LINE_EVERY_S
        left_s = elapsed_s / (step - self.first_step) * (self.num_steps - step)
        text = f"step {step:,} of {self.num_steps:,}, {elapsed_s / 60:.1f} minutes, about {left_s / 60:.1f} left"
        print(f"{text}; {shown}{self.last_validation}".strip("; "), file=sys.stderr, flush=True)

    def validation(self, step: int, scores: dict[str, float]) -> None:
        """Report a validation."""
        self.last_validation = f"validation {scores['energy']:.3f}"
        if self.files is not None:
            self.files.write("validation", step, scores)


class _Files:
    """The configuration, the log and the TensorBoard scalars of a run."""

    def __init__(self, folder: Path, config: TrainConfig) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(asdict(config), indent=2) + "\n")
        self.log = open(folder / "log.jsonl", "a")  # noqa: SIM115 (closed in `close`)
        self.scalars = _scalar_writer(folder)

    def write(self, kind: str, step: int, values: dict[str, float]) -> None:
        """Add one line to the log and its numbers to TensorBoard; JSON has null for those that are not finite."""
        self.log.write(json.dumps({"kind": kind, "step": step} | finite(values)) + "\n")
        self.log.flush()
        if self.scalars is not None:
            for name, value in values.items():
                self.scalars.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Close both."""
        self.log.close()
        if self.scalars is not None:
            self.scalars.close()


def _scalar_writer(folder: Path) -> Any:
    """TensorBoard's writer, or None where the extra is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"))
