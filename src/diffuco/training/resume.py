"""What a killed run needs to continue exactly: parameters, optimiser state, position and the best result so far.

One safetensors file, replaced atomically. Data order and samples are functions of (seed, step), so the step *is* the
state of the random numbers.
"""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from diffuco.foundation.errors import InputError
from diffuco.model.checkpoint import digest_of, read_safetensors, write_safetensors
from diffuco.model.header import read_metadata
from diffuco.training.config import TrainConfig
from diffuco.training.optimizer import RAdam
from diffuco.training.parts import Parts

FILE = "resume.safetensors"


@dataclass
class Progress:
    """How far a run has come."""

    step: int = 0
    """Optimiser steps done."""
    best_energy: float = float("inf")
    """Lowest mean validation energy so far."""
    seconds: float = 0.0
    """Time spent training, over all sittings, including that of the model the run started from."""


def save_state(folder: Path, parts: Parts, optimizer: RAdam, progress: Progress) -> None:
    """Write the state after a step."""
    tensors = {f"model/{name}": value for name, value in parts.network.state_dict().items()}
    tensors |= {f"optimizer/0/{name}": value for name, value in optimizer.state.items()}
    header = json.dumps({"config": asdict(parts.config), "parts": parts.settings, "progress": asdict(progress)})
    write_safetensors(folder / FILE, tensors, {"diffuco-resume": header, "digest": _digest(tensors, header)})


def load_state(folder: Path, parts: Parts, optimizer: RAdam) -> Progress:
    """Restore the state into a fresh network and optimiser; a missing state or one of another run is an InputError."""
    tensors, metadata = read_safetensors(folder / FILE)
    before, settings, progress = _parse_header(folder, metadata)
    expected = _digest(tensors, metadata["diffuco-resume"])
    if metadata.get("digest") != expected:
        raise InputError(
            f"{folder / FILE}: the state does not match its digest, so the file is damaged; start the run anew in "
            "another folder"
        )
    changed = [name for name, value in asdict(parts.config).items() if getattr(before, name) != value]
    changed = changed or _changed_settings(settings, parts.settings)
    if changed:
        raise InputError(
            f"{folder}: this run was started with another {', '.join(changed)}; resume with the same settings"
        )
    try:
        parts.network.load_state_dict(_under(tensors, "model"))
        for name, value in optimizer.state.items():
            value.copy_(_under(tensors, "optimizer/0")[name].view(value.shape))
    except (RuntimeError, ValueError, KeyError) as error:
        raise InputError(f"{folder / FILE}: the state does not fit this network; start the run anew") from error
    return progress


def started_config(folder: Path) -> TrainConfig:
    """The configuration that the run in a folder was started with."""
    return _parse_header(folder, read_metadata(folder / FILE))[0]


def _changed_settings(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Fields of parts that differ, such as `noise rate`; what a run began without has not changed."""
    pairs = ((part, name, value) for part, values in now.items() for name, value in values.items())
    return [f"{part} {name}" for part, name, value in pairs if before.get(part, {}).get(name, value) != value]


def _parse_header(folder: Path, metadata: dict[str, str]) -> tuple[TrainConfig, dict[str, Any], Progress]:
    try:
        header = json.loads(metadata["diffuco-resume"])
        # A run that was started before a field existed has the default of that field.
        known = {
            field.name: header["config"][field.name] for field in fields(TrainConfig) if field.name in header["config"]
        }
        progress = Progress(**header["progress"])
        if type(progress.step) is not int or progress.step < 0:
            raise ValueError(f"{progress.step} steps")
        if not progress.seconds >= 0.0 or math.isnan(progress.best_energy):
            raise ValueError("no numbers")
        return TrainConfig(**known), header.get("parts", {}), progress
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputError(f"{folder / FILE}: not a resumable state; start the run anew in another folder") from None


def _digest(tensors: dict[str, Tensor], header: str) -> str:
    """SHA-256 of the whole state."""
    return hashlib.sha256((digest_of({n: value.cpu() for n, value in tensors.items()}) + header).encode()).hexdigest()


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}/"): value for name, value in tensors.items() if name.startswith(f"{prefix}/")}
