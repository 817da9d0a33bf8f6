"""`diffuco doctor`: what is installed, which devices there are and which implementations they use."""

import os
import platform
from typing import Any

import typer

from diffuco.cli.console import print_json, print_result
from diffuco.cli.options import Json, examples
from diffuco.foundation.extras import install_hint
from diffuco.foundation.version import __version__

REQUIRED = ("torch", "numpy", "scipy", "numba", "safetensors", "filelock", "typer", "rich")
OPTIONAL = {
    "matplotlib": "plot",
    "tensorboard": "tensorboard",
    "networkx": "networkx",
    "ortools": "exact",
    "dwave-samplers": "dwave",
    "fastapi": "serve",
    "ray": "ray",
    "pyarrow": "parquet",
}
"""Each package with the extra of diffuco that installs it."""


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("diffuco doctor", "diffuco doctor --json"))(doctor)


def doctor(as_json: Json = False) -> None:
    """Report versions, devices and what is missing."""
    report = {
        "diffuco": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name, f"pip install {name}") for name in REQUIRED},
        "optional": {name: _version(name, install_hint(extra)) for name, extra in OPTIONAL.items()},
        "devices": _devices(),
        "models": _models(),
        "cache": _cache(),
    }
    if as_json:
        print_json(report)
    else:
        print_result("\n".join(_lines(report)))


def _version(package: str, remedy: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return f"missing; {remedy}"


def _devices() -> dict[str, dict[str, Any]]:
    """Per device: what it is, its memory, and the implementation of every operation that has several."""
    import torch

    from diffuco import ops

    devices: dict[str, dict[str, Any]] = {"cpu": _cpu()}
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        memory_gib = round(properties.total_memory / 2**30, 1)
        devices[f"cuda:{index}"] = {"name": properties.name, "memory_gib": memory_gib}
    for name, device in devices.items():
        device["implementations"] = ops.implementations(torch.device(name))
    return devices


def _cpu() -> dict[str, Any]:
    from diffuco.graphs.datasets import available_cores

    cpu: dict[str, Any] = {"name": platform.machine(), "cores": available_cores()}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        cpu["memory_gib"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    return cpu


def _models() -> list[str]:
    from diffuco.pretrained import list_models

    return [card["name"] for card in list_models()]


def _cache() -> str:
    from diffuco.graphs.cache import cache_directory

    return str(cache_directory())


def _lines(report: dict[str, Any], indent: str = "") -> list[str]:
    lines = []
    for name, value in report.items():
        if isinstance(value, dict):
            lines += [f"{indent}{name}", *_lines(value, indent + "  ")]
        else:
            shown = ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
            lines.append(f"{indent}{name:<{24 - len(indent)}}{shown}")
    return lines
