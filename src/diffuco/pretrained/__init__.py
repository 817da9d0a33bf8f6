"""The models that ship with the package, loading of any model by name or path, and saving to share it."""

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from diffuco.errors import InputError
from diffuco.model.checkpoint import Checkpoint, load_checkpoint, read_card, save_folder

FOLDER = Path(__file__).parent


def list_models() -> list[dict[str, Any]]:
    """The cards of all shipped models: name, problem, what they were trained on, how well they do.

    >>> [card["name"] for card in list_models() if card["problem"] == "mis"]
    ['mis-rb-small']
    """
    return [read_card(path) for path in sorted(FOLDER.glob("*.safetensors"))]


def load_model(name_or_path: str | Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Load a shipped model by name, a file written by `diffuco train` or a folder written by `save_model` by path.

    >>> load_model("mis-rb-small").problem
    'mis'
    """
    shipped = FOLDER / f"{name_or_path}.safetensors"
    if shipped.exists():
        return load_checkpoint(shipped, device)
    if Path(name_or_path).exists():
        return replace(load_checkpoint(Path(name_or_path), device), name=str(name_or_path))
    names = [path.stem for path in sorted(FOLDER.glob("*.safetensors"))]
    close = difflib.get_close_matches(str(name_or_path), names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"give a path or one of {', '.join(names)}"
    raise InputError(f"unknown model '{name_or_path}'; {hint}")


def save_model(model: Checkpoint, folder: str | Path) -> None:
    """Write a model as a folder of `config.json` and `model.safetensors`, as model hubs share them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(load_model("mis-rb-small"), folder)
    ...     load_model(folder).problem
    'mis'
    """
    save_folder(Path(folder), model.model, problem=model.problem, card=model.card)


def default_model(problem: str) -> str:
    """Name of the shipped model for a problem."""
    for card in list_models():
        if card["problem"] == problem:
            return str(card["name"])
    raise InputError(f"no shipped model solves '{problem}'; train one and give it with --model")
