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
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from diffuco.foundation.errors import InputError
from diffuco.foundation.files import replacing
from diffuco.model.base import Network
from diffuco.model.header import CONFIG, FORMAT, PARAMETERS, network_name, read_header, readable
from diffuco.model.networks import get_network


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
    header = read_header(path)
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


def write_safetensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write tensors and a header of strings, completely or not at all; the folder is created if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, metadata=metadata)
    with replacing(path) as stream:
        stream.write(content)


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the header of a file; raises InputError if it is missing or unreadable."""
    with readable(path), safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


def _header(model: Network, tensors: dict[str, Tensor], problem: str, card: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "problem": problem,
        "network": model.name,
        "model": asdict(model.config),
        "digest": digest_of(tensors),
        "card": card,
    }


def _network_of(path: Path, header: dict[str, Any], given: type[Network] | None) -> type[Network]:
    name = network_name(header)
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


def digest_of(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and values."""
    content = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        content.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return content.hexdigest()
