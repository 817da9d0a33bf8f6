"""`diffuco doctor`: what is installed, which devices there are and which implementations they use."""

import os
import platform
import re
import shlex
from typing import Any

import typer

from diffuco.cli.console import print_json, print_result
from diffuco.cli.options import Json, examples
from diffuco.foundation.extras import install_hint, requirements
from diffuco.foundation.version import __version__

FOR_CONTRIBUTORS = ("docs", "dev")
"""Extras whose packages are not listed."""


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("diffuco doctor", "diffuco doctor --json"))(doctor)


def doctor(as_json: Json = False) -> None:
    """Report versions, devices and what is missing."""
    extras = requirements()
    required = extras.pop("", [])
    optional = {extra: packages for extra, packages in extras.items() if extra not in FOR_CONTRIBUTORS}
    report = {
        "diffuco": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _versions(required, f"pip install {shlex.join(required)}"),
        "optional": {
            name: version
            for extra, packages in optional.items()
            for name, version in _versions(packages, install_hint(extra)).items()
        },
        "devices": _devices(),
        "models": _models(),
        "cache": _cache(),
    }
    if as_json:
        print_json(report)
    else:
        print_result("\n".join(_lines(report)))


def _versions(packages: list[str], remedy: str) -> dict[str, str]:
    """The installed version of every package, which may state the versions it wants."""
    from importlib import metadata

    versions = {}
    for name in (re.split(r"[^\w.-]", package)[0] for package in packages):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = f"missing; {remedy}"
    return versions


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
