"""Choosing the device of tensors, and measuring time on it. Torch is imported when a device is."""

import time
from typing import TYPE_CHECKING

from diffuco.foundation.errors import InputError

if TYPE_CHECKING:
    import torch


def pick_device(name: "str | torch.device") -> "torch.device":
    """The device of this name; `auto` is the GPU if there is one, else the CPU.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    import torch

    if not isinstance(name, str | torch.device):
        raise InputError(f"device {name!r} cannot be used here; give auto, cpu or cuda")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device '{name}' cannot be used here ({str(error).splitlines()[0]}); try cpu") from None
    return device


def check_device(name: str) -> None:
    """Refuse a device that cannot be used; those that always can are not asked."""
    if name not in ("auto", "cpu"):
        pick_device(name)


def now(device: "torch.device") -> float:
    """Seconds on a clock that waits until a GPU has finished its work."""
    finish(device)
    return time.perf_counter()


def finish(device: "torch.device") -> None:
    """Wait until a GPU has finished its work, so that measured times are true."""
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)
