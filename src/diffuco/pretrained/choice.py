"""Which of the shipped models suits a problem and its graphs."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.graphs.statistics import GraphStatistics, describe
from diffuco.pretrained import list_models, serves
from diffuco.problems import Problem, get_problem, without_ignored_weights

BLIND = 2
"""The worst misfit of a network and the weights of a graph."""
HUBS = 1.5
"""The mean of squared degrees over the square of the mean degree, from which on a graph has hubs."""
NARROW, NARROW_DEGREE = 16, 10
"""The most features of a network that is narrow: for large graphs on a CPU, where wider ones take too long. With a mean
degree above the second, annealing is ahead in ten seconds (docs/log.md)."""
LIKE_FACTOR = 2.0
"""Graphs are like a training set if size, density and degree, multiplied, lie less than this factor outside its
ranges."""


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
    problem = get_problem(problem)
    return _choose(problem, _cards(problem, baseline, cards), graphs)


def choose_models(problem: str | Problem, graphs: Sequence[Graph]) -> list[Choice]:
    """The shipped model for each of the graphs.

    >>> [choice.is_alike for choice in choose_models("mds", [Graph.from_edges([(0, 1), (1, 2)])])]
    [False]
    """
    problem = get_problem(problem)
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
    problem = get_problem(problem)
    degree = 2 * graph.num_edges / max(1, graph.num_nodes)
    cards = [card for card in list_models() if "graphs" in card]
    surpassed = {card["faster"] for card in cards}
    suited = [
        card
        for card in cards
        if serves(card, problem)
        and not card["baseline"]
        and not is_narrow(card)
        and card["name"] not in surpassed
        and _suits_degree(card, degree, LIKE_FACTOR)
    ]
    has_weights = _has_weights(problem, graph)
    misfits = {card["name"]: _misfit(card, has_weights) for card in suited}
    least = min(misfits.values(), default=BLIND)
    by_steps = has_hubs(graph) and problem.is_quadratic

    def order(card: dict[str, Any]) -> tuple[bool, float, int]:
        low, _, high = _degrees(card)
        steps = card["model"]["num_steps"]
        return not _suits_degree(card, degree, 1.1), 0.0 if by_steps else low / high, -steps

    ordered = sorted(suited, key=order)
    return [card["name"] for card in ordered if misfits[card["name"]] == least != BLIND]


def narrow_model(problem: str | Problem, graph: Graph) -> str | None:
    """The narrow model for a CPU with the most steps, if there is one for a graph like this.

    >>> star = Graph.from_edges([(0, node) for node in range(1, 9)] + [(1, 2), (3, 4)])
    >>> narrow_model("max-cut", star), narrow_model("mds", star)
    ('max-cut-hubs-24', None)
    """
    problem = get_problem(problem)
    degree = 2 * graph.num_edges / max(1, graph.num_nodes)
    has_weights = _has_weights(problem, graph)
    suited = [
        card
        for card in list_models()
        if is_narrow(card)
        and serves(card, problem)
        and _misfit(card, has_weights) == 0
        and _suits_degree(card, degree, 1.0)
    ]
    if not suited or degree > NARROW_DEGREE or not has_hubs(graph):
        return None
    return str(max(suited, key=lambda card: card["model"]["num_steps"])["name"])


def is_narrow(card: dict[str, Any]) -> bool:
    """Whether a model has a narrow network."""
    return bool(card["model"].get("num_hidden", math.inf) <= NARROW)


def default_model(problem: str | Problem) -> str:
    """Name of the shipped model for a problem when the graphs are not known yet."""
    return choose_model(problem).name


def _cards(
    problem: Problem, baseline: str | None = None, known: Sequence[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    # Of models for the same graphs, the fastest is the default; the others, and narrow ones, are used by name.
    cards = [
        card
        for card in (list_models() if known is None else known)
        if (serves(card, problem) if baseline is None else card["problem"] == problem.name)
        and card.get("baseline") == baseline
        and not (card.get("faster") and not baseline)
        and not is_narrow(card)
    ]
    if not cards:
        raise InputError(f"no shipped model solves '{problem}'; train one and give it as the model")
    return cards


def _choose(problem: Problem, cards: list[dict[str, Any]], graphs: Sequence[Graph]) -> Choice:
    with_edges = [graph for graph in graphs if graph.num_edges]
    yours = describe(with_edges) if with_edges else None
    if yours is None or not all("graphs" in card for card in cards):
        card = min(cards, key=_size)
        return Choice(card["name"], "the model for the smallest graphs", is_alike=False)
    kinds = {_has_weights(problem, graph) for graph in with_edges}

    def misfit(card: dict[str, Any]) -> int:
        return max(_misfit(card, has_weights) for has_weights in kinds)

    card = min(cards, key=lambda card: (misfit(card), _distance(card, yours)))
    is_alike = _distance(card, yours)[0] < math.log(LIKE_FACTOR) and misfit(card) != BLIND
    reason = f"the closest of the {len(cards)} default models to graphs like this ({yours})"
    return Choice(card["name"], reason if len(cards) > 1 else f"the default for {problem}", is_alike)


def _has_weights(problem: Problem, graph: Graph) -> bool:
    """Whether a graph has weights that matter to the problem."""
    known = without_ignored_weights(problem, graph)
    return known.edge_weights is not None or known.node_weights is not None


def _misfit(card: dict[str, Any], has_weights: bool) -> int:
    """How badly a network fits a graph that has weights that matter to the problem, or none.

    0: it sees them, or there are none; 1: it was trained on weights and there are none; `BLIND`: it does not see them,
    so that it samples another problem.
    """
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
