"""The origin of a measurement: the hardware and the commit of the source."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import torch


def hardware(device: torch.device) -> str:
    """The device in words.

    >>> "CPU" in hardware(torch.device("cpu"))
    True
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.get_num_threads()} of {os.cpu_count()} CPU cores ({platform.machine()})"


@cache
def source_commit() -> str:
    """The commit by DIFFUCO_COMMIT if set, for copies without history or inside another repository; else by git."""
    if given := os.environ.get("DIFFUCO_COMMIT"):
        return given
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
