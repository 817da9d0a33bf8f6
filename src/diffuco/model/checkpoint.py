"""What users load: one safetensors file with the weights and, in its header, a JSON card of their origin.

No pickle is ever read. The card holds a digest of the weights, so that a damaged file is refused.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from diffuco.errors import InputError
from diffuco.files import replacing
from diffuco.model.gnn import Gnn, GnnConfig

FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """A network and the card it came with."""

    model: Gnn
    problem: str
    """Name of the problem it was trained for."""
    name: str
    card: dict[str, Any]
    """Training configuration, commit, dataset, metrics."""


def save_checkpoint(path: Path, model: Gnn, *, problem: str, card: dict[str, Any]) -> None:
    """Write the network and its card to one file, atomically."""
    tensors = {name: value.cpu() for name, value in model.state_dict().items()}
    header = {
        "format": FORMAT,
        "problem": problem,
        "model": asdict(model.config),
        "digest": _digest(tensors),
        "card": card,
    }
    write_safetensors(path, tensors, {"diffuco": json.dumps(header)})


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Read a network written by `save_checkpoint`; a damaged or foreign file is an InputError."""
    header = _read_header(path)
    tensors, _ = read_safetensors(path)
    if _digest(tensors) != header["digest"]:
        raise InputError(f"{path}: the weights do not match their digest, the file is damaged; fetch or train it again")
    try:
        model = Gnn(GnnConfig(**header["model"]))
        model.load_state_dict(tensors)
    except (TypeError, RuntimeError) as error:
        raise InputError(f"{path}: the weights do not fit the network described in the file; train it again") from error
    return Checkpoint(model.to(device).eval(), header["problem"], path.stem, header["card"])


def read_card(path: Path) -> dict[str, Any]:
    """Problem, network shape and training card of a checkpoint, without its weights."""
    header = _read_header(path)
    return {"name": path.stem, "problem": header["problem"], "model": header["model"], **header["card"]}


def write_safetensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write tensors and a header of strings, making the folder if need be; the file is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, metadata=metadata)
    with replacing(path) as stream:
        stream.write(content)


def read_safetensors(path: Path, *, header_only: bool = False) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the header of a file; a missing or unreadable one is an InputError."""
    try:
        with safe_open(path, framework="pt") as file:
            names = [] if header_only else file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a readable safetensors file ({error}); fetch or train it again") from error


def _read_header(path: Path) -> dict[str, Any]:
    _, metadata = read_safetensors(path, header_only=True)
    try:
        header: dict[str, Any] = json.loads(metadata["diffuco"])
        if header["format"] != FORMAT:
            raise InputError(
                f"{path}: checkpoint format {header['format']}, this version reads {FORMAT}; update diffuco"
            )
        _ = header["problem"], header["model"], header["digest"], header["card"]
    except (KeyError, TypeError, json.JSONDecodeError):
        raise InputError(f"{path}: not a diffuco checkpoint; give a file written by `diffuco train`") from None
    return header


def _digest(tensors: dict[str, Tensor]) -> str:
    content = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        content.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return content.hexdigest()
