"""The models that ship with the package; loads any model by name or path, and saves models to share.

The baselines, which exist for comparison, and models of middle sizes, from which larger ones were grown, would double
the size of the package. They are in the folder `models` of the source, where a checkout finds them. Elsewhere, set
`DIFFUCO_MODELS` to that folder, or to any other folder of models.
"""

import difflib
import math
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.graphs.statistics import GraphStatistics, describe
from diffuco.model.header import FIRST_NETWORK, network_name, read_card, read_header, read_shapes, readable
from diffuco.problems import Problem, get_problem, without_ignored_weights

if TYPE_CHECKING:
    import torch

    from diffuco.model import Checkpoint, Network

FOLDER = Path(__file__).parent
"""Folder of the models in the package."""
FURTHER = FOLDER.parents[2] / "models"
"""Folder of the models that only a checkout has."""
FIND_BASELINES = "set DIFFUCO_MODELS to the folder `models` of the source"
"""What to do if there are none."""

BLIND = 2
"""The worst misfit of a network and the weights of a graph."""
HUBS = 1.5
"""The mean of squared degrees over the square of the mean degree, from which on a graph has hubs."""
LIKE_FACTOR = 2.0
"""Graphs are like a training set if size, density and degree, multiplied, lie less than this factor outside its
ranges."""


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


class Choice(NamedTuple):
    """A shipped model and why it was chosen."""

    name: str
    reason: str
    is_alike: bool
    """Whether the graphs are like those of its training, so that good samples can be expected."""


def choose_model(
    problem: str | Problem,
    graphs: Sequence[Graph] = (),
    *,
    baseline: str | None = None,
    cards: Sequence[dict[str, Any]] | None = None,
) -> Choice:
    """The shipped model for a problem whose training graphs are nearest to these in size and density.

    With `baseline`, `egn` or `egn-anneal`, it is one of those baselines instead. `cards` are those of `list_models`, if
    the caller has them already.

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


def full_models(problem: str | Problem, graph: Graph) -> list[str]:
    """The shipped models that suit a graph of any size by its mean degree, the most promising first.

    Those that know such degrees come before others. Among them, the most general is first, because one for a single
    kind of graph may fail on others; but if the graph has hubs and the energy is quadratic, it is the one with the most
    steps. Of models for the same graphs, only the one with the most steps counts. All see the weights that matter to
    the problem, and models for weighted graphs are left out if there are no weights and other models.

    >>> full_models("mds", Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]))
    ['mds-sparse-48']
    """
    degree = 2 * graph.num_edges / max(1, graph.num_nodes)
    cards = list_models()
    surpassed = {card["faster"] for card in cards}
    suited = [
        card
        for card in cards
        if serves(card, get_problem(problem))
        and not card["baseline"]
        and card["name"] not in surpassed
        and _suits_degree(card, degree, LIKE_FACTOR)
    ]
    misfits = {card["name"]: _misfit(card, problem, graph) for card in suited}
    least = min(misfits.values(), default=BLIND)
    by_steps = has_hubs(graph) and get_problem(problem).is_quadratic

    def order(card: dict[str, Any]) -> tuple[bool, float, int]:
        low, _, high = _degrees(card)
        steps = card["model"]["num_steps"]
        return not _suits_degree(card, degree, 1.1), 0.0 if by_steps else low / high, -steps

    ordered = sorted(suited, key=order)
    return [card["name"] for card in ordered if misfits[card["name"]] == least != BLIND]


def default_model(problem: str | Problem) -> str:
    """Name of the shipped model for a problem when the graphs are not known yet."""
    return choose_model(problem).name


def _cards(
    problem: str | Problem, baseline: str | None = None, known: Sequence[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    # Of models for the same graphs, the fastest is the default; the others are used by name.
    cards = [
        card
        for card in (list_models() if known is None else known)
        if (serves(card, get_problem(problem)) if baseline is None else card["problem"] == str(problem))
        and card.get("baseline") == baseline
        and not (card.get("faster") and not baseline)
    ]
    if not cards:
        raise InputError(f"no shipped model solves '{problem}'; train one and give it as the model")
    return cards


def _choose(problem: str | Problem, cards: list[dict[str, Any]], graphs: Sequence[Graph]) -> Choice:
    with_edges = [graph for graph in graphs if graph.num_edges]
    yours = describe(with_edges) if with_edges else None
    if yours is None or not all("graphs" in card for card in cards):
        card = min(cards, key=_size)
        return Choice(card["name"], "the model for the smallest graphs", is_alike=False)

    def misfit(card: dict[str, Any]) -> int:
        return max(_misfit(card, problem, graph) for graph in with_edges)

    card = min(cards, key=lambda card: (misfit(card), _distance(card, yours)))
    is_alike = _distance(card, yours)[0] < math.log(LIKE_FACTOR) and misfit(card) != BLIND
    reason = f"the closest of the {len(cards)} default models to graphs like this ({yours})"
    return Choice(card["name"], reason if len(cards) > 1 else f"the default for {problem}", is_alike)


def _misfit(card: dict[str, Any], problem: str | Problem, graph: Graph) -> int:
    """How badly a network fits the weights of a graph that matter to the problem.

    0: it sees them, or there are none; 1: it was trained on weights and there are none; `BLIND`: it does not see them,
    so that it samples another problem.
    """
    known = without_ignored_weights(get_problem(problem), graph)
    has_weights = known.edge_weights is not None or known.node_weights is not None
    sees_weights = bool(card["model"].get("weighted") or card["model"].get("node_weighted"))
    if has_weights == sees_weights:
        return 0
    return BLIND if has_weights else 1


def has_hubs(graph: Graph) -> bool:
    """Whether some nodes have far more neighbours than others.

    >>> [has_hubs(Graph.from_edges(edges)) for edges in ([(0, 1), (1, 2)], [(0, node) for node in range(1, 9)])]
    [False, True]
    """
    degrees = graph.degrees.astype(np.float64)
    return bool(degrees.size and np.square(degrees).mean() > HUBS * degrees.mean() ** 2)


def _suits_degree(card: dict[str, Any], degree: float, factor: float) -> bool:
    """Whether a mean degree lies at most a factor outside those of the training graphs."""
    low, _, high = _degrees(card)
    return bool(low / factor < degree < high * factor)


def _degrees(card: dict[str, Any]) -> Sequence[float]:
    """Lowest, mean and highest mean degree of the training graphs; older cards do not tell the range."""
    degrees: Sequence[float] = card["graphs"].get("degrees", [card["graphs"]["mean_degree"]] * 3)
    return degrees


def _size(card: dict[str, Any]) -> float:
    return float(card["graphs"]["nodes"][1]) if "graphs" in card else math.inf


def _distance(card: dict[str, Any], yours: GraphStatistics) -> tuple[float, float]:
    """How far graphs lie outside the sizes, densities and degrees of the training graphs, then how far from their mean.

    Older cards do not tell the degrees.
    """
    outside = 0.0
    for name in ("nodes", "density", "degrees"):
        value = getattr(yours, name)[1]
        low, _, high = card["graphs"].get(name, (value, value, value))
        outside += abs(math.log(value / min(max(value, low), high)))
    return outside, abs(math.log(yours.nodes[1] / _size(card)))
