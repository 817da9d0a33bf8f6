"""The models that ship with the package, loading of any model by name or path, and saving to share it.

Baselines, which are there to be compared with, would double the package. They are in the folder `models` of the source,
where a checkout finds them; elsewhere `DIFFUCO_MODELS` names that folder, or any other of further models.
"""

import difflib
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.graphs.statistics import GraphStatistics, describe
from diffuco.model.base import Network
from diffuco.model.checkpoint import Checkpoint, load_checkpoint, read_card, save_folder
from diffuco.problems import Problem, get_problem, without_ignored_weights

FOLDER = Path(__file__).parent
"""Of the models in the package."""
FURTHER = FOLDER.parents[2] / "models"
"""Of those in a checkout only."""
FIND_BASELINES = "set DIFFUCO_MODELS to the folder `models` of the source"
"""What to do where there are none."""

LIKE_FACTOR = 2.0
"""Graphs are like those of a training set if size and density together are less than this factor outside of it."""


def list_models() -> list[dict[str, Any]]:
    """The cards of all models known by name: name, problem, what they were trained on, how well they do.

    `baseline` of a card is `egn` or `egn-anneal` for a model that decides in one step, else None. `grown_from` names
    the model with fewer steps that a model grew from, else it is None.

    >>> [card["name"] for card in list_models() if card["problem"] == "qubo"]
    ['qubo-random']
    """
    cards = {name: read_card(path) for name, path in model_files().items()}
    return [card | {"baseline": _baseline(card), "grown_from": _grown_from(card, cards)} for card in cards.values()]


def _baseline(card: dict[str, Any]) -> str | None:
    """The baseline that a model is: one with a single step, trained at a falling temperature or at zero."""
    if card["model"]["num_steps"] > 1:
        return None
    return "egn-anneal" if card.get("training", {}).get("start_temperature") else "egn"


def _grown_from(card: dict[str, Any], cards: dict[str, dict[str, Any]]) -> str | None:
    """The model that a training started from, if that had fewer steps."""
    start = card.get("training", {}).get("start_from")
    return start if start in cards and cards[start]["model"]["num_steps"] < card["model"]["num_steps"] else None


def model_files() -> dict[str, Path]:
    """The files of models known by name: those of the package first, else of the folder of further ones."""
    folders = (Path(os.environ.get("DIFFUCO_MODELS") or FURTHER), FOLDER)
    found = {path.stem: path for folder in folders for path in folder.glob("*.safetensors")}
    return {name: found[name] for name in sorted(found)}


def is_known(model: str | Path) -> bool:
    """Whether this is the name of a model, not a path."""
    return str(model) in model_files()


def has_model(problem: Problem) -> bool:
    """Whether a model for this problem is known by name."""
    return any(card["problem"] == problem.name for card in list_models())


def load_model(
    name_or_path: str | Path, device: torch.device | str = "cpu", *, network: type[Network] | None = None
) -> Checkpoint:
    """Load a model by name, a file written by `diffuco train` or a folder written by `save_model` by path.

    `network` is the class of a network of your own; `diffuco.model.register_network` makes it known once and for all.

    >>> load_model("mis-rb-small").problem
    'mis'
    """
    known = model_files()
    if str(name_or_path) in known:
        return load_checkpoint(known[str(name_or_path)], device, network=network)
    if Path(name_or_path).exists():
        return replace(load_checkpoint(Path(name_or_path), device, network=network), name=str(name_or_path))
    close = difflib.get_close_matches(str(name_or_path), known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "give a path or a name that `diffuco models` lists"
    if not (FURTHER.is_dir() or os.environ.get("DIFFUCO_MODELS")):
        hint += f"; for baselines, {FIND_BASELINES}"
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


class Choice(NamedTuple):
    """A shipped model and why it was chosen."""

    name: str
    reason: str
    is_alike: bool
    """Whether the graphs are like those the model was trained on, so that its samples can be expected to be good."""


def choose_model(
    problem: str | Problem,
    graphs: Sequence[Graph] = (),
    *,
    baseline: str | None = None,
    cards: Sequence[dict[str, Any]] | None = None,
) -> Choice:
    """The shipped model for a problem whose training graphs are nearest to these in size and density.

    `baseline` asks for those of `egn` or `egn-anneal` instead, which are there to be compared with. `cards` are what
    `list_models` gave, where it is known already.

    >>> choose_model("mds").name, choose_model("mds", baseline="egn").name
    ('mds-ba-small', 'mds-ba-small-egn')
    """
    return _choose(problem, _cards(problem, baseline, cards), graphs)


def choose_models(problem: str | Problem, graphs: Sequence[Graph]) -> list[Choice]:
    """The shipped model for each of the graphs.

    >>> [choice.is_alike for choice in choose_models("mds", [Graph.from_edges([(0, 1), (1, 2)])])]
    [False]
    """
    cards = _cards(problem)
    return [_choose(problem, cards, [graph]) for graph in graphs]


def default_model(problem: str | Problem) -> str:
    """Name of the shipped model for a problem and graphs not known yet."""
    return choose_model(problem).name


def _cards(
    problem: str | Problem, baseline: str | None = None, known: Sequence[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    # Models that grew are for those who name them: the ones they grew from are faster.
    cards = [
        card
        for card in (list_models() if known is None else known)
        if card["problem"] == str(problem)
        and card.get("baseline") == baseline
        and not (card.get("grown_from") and not baseline)
    ]
    if not cards:
        raise InputError(f"no shipped model solves '{problem}'; train one and give it as the model")
    return cards


def _choose(problem: str | Problem, cards: list[dict[str, Any]], graphs: Sequence[Graph]) -> Choice:
    with_edges = [graph for graph in graphs if graph.num_edges]
    yours = describe(with_edges) if with_edges else None
    if yours is None or not all("graphs" in card for card in cards):
        card = min(cards, key=_size)
        return Choice(card["name"], "the model of the smallest graphs", is_alike=False)
    card = min(cards, key=lambda card: _distance(card, yours))
    # Weights that a network does not see make its samples those of another problem.
    sees_all = all(_sees_weights(card, problem, graph) for graph in with_edges)
    is_alike = _distance(card, yours)[0] < math.log(LIKE_FACTOR) and sees_all
    reason = f"the closest of the {len(cards)} default models to graphs like this ({yours})"
    return Choice(card["name"], reason if len(cards) > 1 else f"the default for {problem}", is_alike)


def _sees_weights(card: dict[str, Any], problem: str | Problem, graph: Graph) -> bool:
    """Whether a network sees those weights of a graph that the problem knows."""
    known = without_ignored_weights(get_problem(problem), graph)
    is_unweighted = known.edge_weights is None and known.node_weights is None
    return bool(is_unweighted or card["model"].get("weighted") or card["model"].get("node_weighted"))


def _size(card: dict[str, Any]) -> float:
    return float(card["graphs"]["nodes"][1]) if "graphs" in card else math.inf


def _distance(card: dict[str, Any], yours: GraphStatistics) -> tuple[float, float]:
    """By what factors graphs lie outside of the training graphs' sizes and densities; then, how far from their mean."""
    outside = 0.0
    for value, (low, _, high) in (
        (yours.nodes[1], card["graphs"]["nodes"]),
        (yours.density[1], card["graphs"]["density"]),
    ):
        outside += abs(math.log(value / min(max(value, low), high)))
    return outside, abs(math.log(yours.nodes[1] / _size(card)))
