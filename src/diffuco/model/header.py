"""The header of a checkpoint: what it is and where it comes from, read without torch and without its parameters."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from diffuco.foundation.errors import InputError

FORMAT = 1
CONFIG, PARAMETERS = "config.json", "model.safetensors"
"""The files of a checkpoint that is a folder."""
BEST = "best.safetensors"
"""The checkpoint of a run with the lowest energy."""
FIRST_NETWORK = "gnn"
"""The network of files that do not name theirs: it was the only one."""


def read_card(path: Path) -> dict[str, Any]:
    """Problem, network shape and training card of a checkpoint, without its parameters."""
    header = read_header(path)
    return {"name": path.stem, "problem": header["problem"], "model": header["model"], **header["card"]}


def read_header(path: Path) -> dict[str, Any]:
    """The header of a file or a folder; raises InputError for a damaged or foreign one."""
    text = _config_text(path) if path.is_dir() else read_metadata(path).get("diffuco", "")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    found = header.get("format", FORMAT) if isinstance(header, dict) else FORMAT
    if isinstance(found, int) and found != FORMAT:
        raise InputError(
            f"{path}: the checkpoint has format {found}, but this version reads {FORMAT}; update diffuco"
        ) from None
    if not _is_header(header):
        raise InputError(f"{path}: not a diffuco checkpoint; give {_remedy(path)}") from None
    assert isinstance(header, dict)
    return header


def _is_header(header: Any) -> bool:
    """Whether all fields that are read somewhere have the right type."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        return False
    if not all(isinstance(header.get(name, FIRST_NETWORK), str) for name in ("problem", "network", "digest")):
        return False
    model, card = header.get("model"), header.get("card")
    return (
        {"problem", "digest"} <= header.keys()
        and isinstance(model, dict)
        and isinstance(model.get("num_steps"), int)
        and isinstance(card, dict)
        and isinstance(card.get("training", {}), dict)
        and isinstance(card.get("minutes", 0.0), int | float)
    )


def read_metadata(path: Path) -> dict[str, str]:
    """The strings in the header of a safetensors file; raises InputError if it is missing or unreadable."""
    with readable(path), safe_open(path, framework="numpy") as file:
        return file.metadata() or {}


def read_shapes(path: Path) -> list[list[int]]:
    """The shapes of all tensors in a safetensors file."""
    with readable(path), safe_open(path, framework="numpy") as file:
        return [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118


def network_name(header: dict[str, Any]) -> str:
    """The network of a checkpoint."""
    return str(header.get("network", FIRST_NETWORK))


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What goes wrong inside is the file's fault."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a readable safetensors file ({error}); get it or train it again") from error


def _config_text(folder: Path) -> bytes:
    try:
        return (folder / CONFIG).read_bytes()
    except OSError:
        raise InputError(f"{folder}: no readable {CONFIG} in this folder; give {_remedy(folder)}") from None


def _remedy(path: Path) -> str:
    """What to give instead of a file or folder that is no checkpoint: in the folder of a run, its best one."""
    best = (path if path.is_dir() else path.parent) / BEST
    return str(best) if best.exists() and best != path else "one that `diffuco train` or diffuco.save_model wrote"
