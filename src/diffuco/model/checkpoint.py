"""Checkpoints: parameters as safetensors, and a JSON header that says what they are and where they come from.

A checkpoint is one file that holds both, as training writes it, or a folder of `config.json` and `model.safetensors`,
as model hubs use them. No pickle is ever read. The header holds a digest of the parameters, so that a damaged file is
refused.
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

from diffuco.foundation.errors import InputError
from diffuco.foundation.files import replacing
from diffuco.model.base import Network
from diffuco.model.gnn import Gnn
from diffuco.model.networks import get_network

FORMAT = 1
CONFIG, PARAMETERS = "config.json", "model.safetensors"
"""The files of a checkpoint that is a folder."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network and the card it came with."""

    model: Network
    problem: str
    """Name of the problem it was trained for."""
    name: str
    card: dict[str, Any]
    """Training configuration, commit, dataset, metrics."""
    digest: str = ""
    """SHA-256 of the parameters, by which measurements identify them."""


def save_checkpoint(path: Path, model: Network, *, problem: str, card: dict[str, Any]) -> None:
    """Write the network and its card to one file, atomically."""
    tensors = {name: value.cpu() for name, value in model.state_dict().items()}
    write_safetensors(path, tensors, {"diffuco": json.dumps(_header(model, tensors, problem, card))})


def save_folder(folder: Path, model: Network, *, problem: str, card: dict[str, Any]) -> None:
    """Write the parameters to a folder and the card next to them as readable JSON."""
    tensors = {name: value.cpu() for name, value in model.state_dict().items()}
    write_safetensors(folder / PARAMETERS, tensors, {"format": "pt"})
    with replacing(folder / CONFIG) as stream:
        stream.write((json.dumps(_header(model, tensors, problem, card), indent=2) + "\n").encode())


def load_checkpoint(
    path: Path, device: torch.device | str = "cpu", *, network: type[Network] | None = None
) -> Checkpoint:
    """Read a file or a folder that this module wrote; raises InputError for a damaged or foreign one.

    `network` is the class of a network that is not in the list of networks.
    """
    header = _read_header(path)
    kind = _network_of(path, header, network)
    tensors, _ = read_safetensors(path / PARAMETERS if path.is_dir() else path)
    if digest_of(tensors) != header["digest"]:
        raise InputError(
            f"{path}: the parameters do not match their digest, so the file is damaged; get it or train it again"
        )
    try:
        config = kind.Config(**header["model"])
        with torch.device("meta"):  # shapes without memory: what a header claims may be larger than any machine
            claimed = kind(config).state_dict()
        if {name: value.shape for name, value in claimed.items()} != {n: value.shape for n, value in tensors.items()}:
            raise ValueError("other names or shapes")
        model = kind(config)
        model.load_state_dict(tensors)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{path}: the parameters do not fit the network '{kind.name}'; train it again") from error
    return Checkpoint(model.to(device).eval(), header["problem"], path.stem, header["card"], header["digest"])


def read_card(path: Path) -> dict[str, Any]:
    """Problem, network shape and training card of a checkpoint, without its parameters."""
    header = _read_header(path)
    return {"name": path.stem, "problem": header["problem"], "model": header["model"], **header["card"]}


def write_safetensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write tensors and a header of strings, completely or not at all; the folder is created if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, metadata=metadata)
    with replacing(path) as stream:
        stream.write(content)


def read_safetensors(path: Path, *, header_only: bool = False) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the header of a file; raises InputError if it is missing or unreadable."""
    try:
        with safe_open(path, framework="pt") as file:
            names = [] if header_only else file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a readable safetensors file ({error}); get it or train it again") from error


def _header(model: Network, tensors: dict[str, Tensor], problem: str, card: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "problem": problem,
        "network": model.name,
        "model": asdict(model.config),
        "digest": digest_of(tensors),
        "card": card,
    }


def _read_header(path: Path) -> dict[str, Any]:
    text = _config_text(path) if path.is_dir() else read_safetensors(path, header_only=True)[1].get("diffuco", "")
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
        raise InputError(
            f"{path}: not a diffuco checkpoint; give one that `diffuco train` or diffuco.save_model wrote"
        ) from None
    assert isinstance(header, dict)
    return header


def _is_header(header: Any) -> bool:
    """Whether all fields that are read somewhere have the right type."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        return False
    if not all(isinstance(header.get(name, Gnn.name), str) for name in ("problem", "network", "digest")):
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


def _network_of(path: Path, header: dict[str, Any], given: type[Network] | None) -> type[Network]:
    name = header.get("network", Gnn.name)  # older files do not name the network
    try:
        kind = given or get_network(name)
    except InputError:
        raise InputError(
            f"{path}: the checkpoint holds the network '{name}', which is not known here; pass its class to "
            "load_model(path, network=...) or to diffuco.register_network"
        ) from None
    if kind.name != name:
        raise InputError(f"{path}: the checkpoint holds the network '{name}', not '{kind.name}'; choose another file")
    return kind


def _config_text(folder: Path) -> bytes:
    try:
        return (folder / CONFIG).read_bytes()
    except OSError:
        raise InputError(
            f"{folder}: no readable {CONFIG} in this folder; give a folder from diffuco.save_model"
        ) from None


def digest_of(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and values."""
    content = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        content.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return content.hexdigest()
