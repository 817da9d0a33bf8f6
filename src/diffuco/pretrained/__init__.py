"""The models that ship with the package; loads any model by name or path, and saves models to share.

The baselines, which exist for comparison, and models of middle sizes, from which larger ones were grown, would double
the size of the package. They are in the folder `models` of the source, where a checkout finds them. Elsewhere, set
`DIFFUCO_MODELS` to that folder, or to any other folder of models.
"""

import difflib
import math
import os
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diffuco.foundation.errors import InputError
from diffuco.model.header import FIRST_NETWORK, network_name, read_card, read_header, read_shapes, readable
from diffuco.problems import Problem, get_problem

if TYPE_CHECKING:
    import torch

    from diffuco.model import Checkpoint, Network

FOLDER = Path(__file__).parent
"""Folder of the models in the package."""
FURTHER = FOLDER.parents[2] / "models"
"""Folder of the models that only a checkout has."""
FIND_BASELINES = "set DIFFUCO_MODELS to the folder `models` of the source"
"""What to do if there are none."""


def list_models() -> list[dict[str, Any]]:
    """The cards of all models known by name: name, problem, training graphs, measured quality.

    `baseline` is `egn` or `egn-anneal` for a model that decides in one step, else None. `faster` names the next model
    down, trained on the same graphs with fewer steps, else it is None.

    >>> [card["name"] for card in list_models() if card["problem"] == "qubo"]
    ['qubo-random']
    """
    cards = [card | {"baseline": _baseline(card)} for card in map(_card, model_files().values())]
    families: dict[tuple[str | None, ...], dict[int, str]] = defaultdict(dict)
    for card in cards:
        families[_family(card)][card["model"]["num_steps"]] = card["name"]
    return [card | {"faster": _faster(card, families[_family(card)])} for card in cards]


def _card(path: Path) -> dict[str, Any]:
    with readable(path):
        changed_ns = path.stat().st_mtime_ns
    return _read_once(path, changed_ns)


@cache
def _read_once(path: Path, changed_ns: int) -> dict[str, Any]:
    """The card of a file that was changed at this time. Reading all of them takes longer than solving a small graph."""
    return read_card(path)


def _baseline(card: dict[str, Any]) -> str | None:
    """Which baseline a model is, if any: it has a single step, trained at a falling temperature or at zero."""
    if card["model"]["num_steps"] > 1:
        return None
    return "egn-anneal" if card.get("training", {}).get("start_temperature") else "egn"


def _family(card: dict[str, Any]) -> tuple[str | None, ...]:
    """What models have in common that were trained on the same graphs; others are families of their own."""
    return card["problem"], card.get("dataset", card["name"]), card["baseline"]


def _faster(card: dict[str, Any], family: dict[int, str]) -> str | None:
    """The model of the family, by their steps, with the next fewer steps."""
    return family.get(max((count for count in family if count < card["model"]["num_steps"]), default=0))


def model_files() -> dict[str, Path]:
    """The files of all models known by name. If a name occurs twice, the model in the package counts."""
    folders = (Path(os.environ.get("DIFFUCO_MODELS") or FURTHER), FOLDER)
    found = {path.stem: path for folder in folders for path in folder.glob("*.safetensors")}
    return {name: found[name] for name in sorted(found)}


def is_known(model: str | Path) -> bool:
    """Whether this is the name of a known model."""
    return str(model) in model_files()


def has_model(problem: Problem) -> bool:
    """Whether a model for this problem is known by name."""
    return any(serves(card, problem) for card in list_models())


def serves(card: dict[str, Any], problem: Problem) -> bool:
    """Whether a model solves a problem: it was trained for it, or for its complement.

    >>> cards = {card["name"]: card for card in list_models()}
    >>> [serves(cards["mis-rb-small"], get_problem(name)) for name in ("mis", "mvc", "mds")]
    [True, True, False]
    """
    return card["problem"] in (problem.name, problem.complement)


def load_model(
    name_or_path: str | Path, device: "torch.device | str" = "cpu", *, network: "type[Network] | None" = None
) -> "Checkpoint":
    """Load a model by name, or by the path of a file from `diffuco train` or of a folder from `save_model`.

    `network` is the class of a network of your own; `diffuco.register_network` makes it known once and for all.

    >>> load_model("mis-rb-small").problem
    'mis'
    """
    from diffuco.model.checkpoint import load_checkpoint

    known = model_files()
    if str(name_or_path) in known:
        return load_checkpoint(known[str(name_or_path)], device, network=network)
    if Path(name_or_path).exists():
        return replace(load_checkpoint(Path(name_or_path), device, network=network), name=str(name_or_path))
    if Path(name_or_path).name != str(name_or_path) or Path(name_or_path).suffix == ".safetensors":
        raise InputError(f"{name_or_path}: no such file or folder; check the path")
    close = difflib.get_close_matches(str(name_or_path), known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "give a path or a name that `diffuco models` lists"
    if not (FURTHER.is_dir() or os.environ.get("DIFFUCO_MODELS")):
        hint += f"; for baselines and models of middle sizes, {FIND_BASELINES}"
    raise InputError(f"unknown model '{name_or_path}'; {hint}")


def num_parameters(name: str) -> int:
    """Numbers in the file of a known model; raises InputError if its network is not known.

    Without torch, unless the network is not the one that ships with diffuco.

    >>> num_parameters("mis-rb-small")
    178049
    """
    path = model_files()[name]
    if network_name(read_header(path)) != FIRST_NETWORK:
        load_model(name)
    return sum(math.prod(shape) for shape in read_shapes(path))


def problem_of(model: "Checkpoint") -> Problem:
    """The problem that a model was trained for, if it is one of ours.

    >>> str(problem_of(load_model("mis-rb-small")))
    'mis'
    """
    try:
        return get_problem(model.problem)
    except InputError:
        name = repr(model.problem)[:40]
        raise InputError(f"{model.name}: the model is for {name}, which is no problem of ours; give another") from None


def save_model(model: "Checkpoint", folder: str | Path) -> None:
    """Write a model as a folder of `config.json` and `model.safetensors`, as model hubs share them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(load_model("mis-rb-small"), folder)
    ...     load_model(folder).problem
    'mis'
    """
    from diffuco.model.checkpoint import save_folder

    save_folder(Path(folder), model.model, problem=model.problem, card=model.card)
