"""Turns messages into graphs, models and answers. It knows nothing of HTTP.

Nothing in a request is ever used as a path: texts are parsed in memory, and models come from a fixed list of names.
"""

import math
import threading
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.foundation.files import finite
from diffuco.foundation.version import __version__
from diffuco.graphs.formats import TEXT_FORMATS, parse_graph
from diffuco.graphs.generate import ba_graph, er_graph, random_qubo, rb_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.memory import TYPICAL_HIDDEN, requirement
from diffuco.methods import ModelMethod, check_method, get_method
from diffuco.methods.exact import ExactMethod
from diffuco.model.checkpoint import Checkpoint
from diffuco.pretrained import list_models, load_model, problem_of, serves
from diffuco.pretrained.cards import measured, trained_on, when_to_choose
from diffuco.pretrained.choice import choose_model
from diffuco.problems import all_problems, check_node_weights, get_problem, weights_note, without_ignored_weights
from diffuco.solution.result import Solution, as_count, plain_label
from diffuco.solving.entry import choose_method, solve
from diffuco.web import messages
from diffuco.web.events import Watched
from diffuco.web.limits import Limits, RefusalError
from diffuco.web.queue import Options, Solved

SAMPLE_OPTIONS = {"samples", "step_factor", "refine"}
"""Fields of a request that ask for a model, beside `model` itself."""


@dataclass(frozen=True)
class ReadGraph:
    """The graph of a request."""

    graph: Graph
    notes: list[str]
    """What was dropped or ignored."""


class Service:
    """The models of a server and how it handles requests. Safe to use from several threads."""

    def __init__(self, limits: Limits, models: Sequence[str] = (), device: str = "auto") -> None:
        self.limits = limits
        self.device = pick_device(device)
        self.cards = {card["name"]: card for card in list_models()}
        self._paths = {name: name for name in self.cards}
        self._own_defaults: dict[str, str] = {}
        self._loaded: dict[str, Checkpoint] = {}
        self._loading, self._reading = threading.Lock(), threading.Lock()
        for path in models:
            self._add_own_model(path)

    def read_graph(self, source: messages.GraphSource) -> ReadGraph:
        """The graph that a message describes. One that is too large is refused, if possible before it is built."""
        # All threads share Python's list of warnings.
        with self._reading, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", GraphWarning)
            graph = self._make_graph(source)
        self._check_size(graph.num_nodes, graph.num_edges)
        return ReadGraph(graph, [str(warning.message) for warning in caught])

    def options(self, request: messages.SolveRequest, graph: Graph, *, is_watched: bool = False) -> Options:
        """The method and the settings for a request; refuses what the server does not allow.

        Only a model can be watched: the requested one, the server's own, or the shipped one closest to the graph.
        """
        limits = self.limits
        for name, value, most in (
            ("samples", request.samples, limits.max_samples),
            ("step_factor", request.step_factor, limits.max_step_factor),
            ("refine", request.refine, limits.max_sweeps),
            ("time_limit_s", request.time_limit_s, limits.max_seconds),
        ):
            if value is not None and value > most:
                raise RefusalError(422, f"{name} is {value}; this server allows at most {most}")
        problem, given = get_problem(request.problem), request.model_dump(include=SAMPLE_OPTIONS, exclude_none=True)
        time_limit_s = request.time_limit_s
        if is_watched and request.method not in ("auto", ModelMethod.name):
            raise RefusalError(422, f"only models can be watched; leave out the method {request.method}")
        if is_watched and time_limit_s is not None:
            raise RefusalError(
                422, "a solve with a time limit cannot be watched; leave the limit out, or use /api/solve"
            )
        if is_watched or given or request.model is not None or request.method == ModelMethod.name:
            chosen = self._choose(request, graph, is_watched=is_watched)
            method = choose_method(request.method, None if chosen is None else self.load(chosen), **given)
        else:
            method = get_method(request.method)
            if isinstance(method, ExactMethod) and time_limit_s is None:
                time_limit_s = min(method.default_limit_s, limits.max_seconds)  # the request ends then anyway
        check_method(method, problem, time_limit_s)
        return Options(problem, method, time_limit_s)

    def check_watchable(self, graph: Graph, options: Options) -> None:
        """Refuse to show samples that cannot be drawn all at once, as with very large graphs."""
        watched = self.watched(options)
        num_hidden = self.cards[watched.model]["model"].get("num_hidden", TYPICAL_HIDDEN)
        at_once = requirement(graph, watched.samples, num_hidden).samples_at_once
        if at_once < watched.samples:
            seen = f"{watched.samples} samples of {graph.num_nodes} nodes cannot be watched together"
            raise RefusalError(422, f"{seen}; ask for {at_once}, or use /api/solve for the answer alone")

    def watched(self, options: Options) -> Watched:
        """The model of a watched request, its samples and its steps."""
        assert isinstance(options.method, ModelMethod)
        assert isinstance(options.method.model, Checkpoint)
        name, settings = self._public_name(options.method.model.name), options.method.options
        return Watched(name, settings.samples, settings.step_factor * int(self.cards[name]["model"]["num_steps"]))

    def relevant(self, problem: str, read: ReadGraph) -> ReadGraph:
        """The graph without the weights that the problem ignores, with a note about weights; the others are checked."""
        kind = get_problem(problem)
        note, graph = weights_note(kind, read.graph), without_ignored_weights(kind, read.graph)
        check_node_weights(kind, graph, graph.name or "graph")
        if note and graph is read.graph:  # weights are assumed; written out, nothing warns of them again
            graph = replace(graph, edge_weights=graph.edge_weights_or(1.0))
        return ReadGraph(graph, [*read.notes, note]) if note else read

    def answer(self, request: messages.SolveRequest, read: ReadGraph, solved: Solved) -> dict[str, Any]:
        """The answer to a request: what `diffuco solve --json` prints, and a comparison with greedy."""
        record = solved.solution.to_dict()
        greedy: Solution = solve(read.graph, request.problem, method="greedy", device="cpu")
        gain = -greedy.problem.sign * (solved.solution.objective - greedy.objective)
        if not math.isclose(solved.solution.objective, greedy.objective, rel_tol=1e-9, abs_tol=1e-9):
            comparison = "better" if gain > 0 else "worse"
        else:
            comparison = "equal"
        record["seconds"] = {"wait": solved.waited_s} | {k: v for k, v in record["seconds"].items() if k != "load"}
        record |= {
            "found_by": self._public_name(record["found_by"]),
            "seed": solved.seed,
            "solved_together": solved.solved_together,
            "greedy": {
                "objective": as_count(greedy.objective),
                "feasible": greedy.feasible,
                "comparison": comparison,
            },
            "notes": read.notes,
        }
        return dict(finite(record))

    def load(self, name: str) -> Checkpoint:
        """A model; it is loaded when first needed."""
        with self._loading:
            if name not in self._loaded:
                self._loaded[name] = load_model(self._paths[name], self.device)
            return self._loaded[name]

    @cached_property
    def about(self) -> dict[str, Any]:
        """What this server can do."""
        return {
            "version": __version__,
            "device": str(self.device),
            "limits": asdict(self.limits),
            "problems": {problem.name: problem.title for problem in all_problems()},
            "senses": {problem.name: problem.sense for problem in all_problems()},
            "formats": {
                known.name: {"suffixes": list(known.suffixes), "description": known.description}
                for known in TEXT_FORMATS
            },
        }

    @cached_property
    def models(self) -> dict[str, Any]:
        """The models that requests may name."""
        return {"models": [_shown_card(card) for card in self.cards.values()]}

    def _add_own_model(self, path: str) -> None:
        checkpoint = load_model(path)
        name = Path(path).stem
        if name in self.cards:
            raise InputError(f"{path}: there is already a model '{name}'; rename the file")
        problem, shape = problem_of(checkpoint).name, asdict(checkpoint.model.config)
        about = {"name": name, "problem": problem, "model": shape, "baseline": None, "faster": None}
        self.cards[name] = about | checkpoint.card
        self._paths[name] = path
        self._own_defaults.setdefault(problem, name)

    def _public_name(self, name: str) -> str:
        """The public name of a model of the user; clients must not see its path."""
        return next((public for public, path in self._paths.items() if path == name), name)

    def _choose(self, request: messages.SolveRequest, graph: Graph, *, is_watched: bool) -> str | None:
        """The requested model or the server's own, if any; a model to watch must be known beforehand."""
        if request.model is None:
            own = self._own_defaults.get(request.problem)
            if own is None and is_watched:
                return choose_model(request.problem, [graph], cards=list(self.cards.values())).name
            return own
        if request.model not in self.cards:
            raise RefusalError(422, "there is no such model; GET /api/models lists them")
        card = self.cards[request.model]
        if not serves(card, get_problem(request.problem)):
            text = f"model '{request.model}' was trained for {card['problem']}, not {request.problem}"
            raise RefusalError(422, text)
        return request.model

    def _make_graph(self, source: messages.GraphSource) -> Graph:
        match source:
            case messages.GraphText():
                return parse_graph(source.text, source.name, source.format, max_nodes=self.limits.max_nodes)
            case messages.GraphEdges():
                pairs = np.array(source.edges, dtype=np.int64).reshape(-1, 2)
                self._check_size(max(source.num_nodes or 0, int(pairs.max(initial=-1)) + 1), len(pairs))
                return Graph.from_edges(
                    pairs, source.num_nodes, edge_weights=source.edge_weights, node_weights=source.node_weights
                )
            case messages.RbGraph():
                self._check_size(source.num_cliques * source.clique_size, _rb_edges(source))
                rng, name = np.random.default_rng(source.seed), f"rb-{source.num_cliques}x{source.clique_size}"
                return replace(rb_graph(source.num_cliques, source.clique_size, source.tightness, rng), name=name)
            case messages.BaGraph():
                self._check_size(source.num_nodes, source.num_nodes * source.attachments)
                rng = np.random.default_rng(source.seed)
                return replace(ba_graph(source.num_nodes, source.attachments, rng), name=f"ba-{source.num_nodes}")
            case messages.ErGraph():
                self._check_size(source.num_nodes, source.edge_probability * source.num_nodes**2 / 2)
                rng = np.random.default_rng(source.seed)
                return replace(er_graph(source.num_nodes, source.edge_probability, rng), name=f"er-{source.num_nodes}")
            case messages.RandomQubo():
                self._check_size(source.num_nodes, source.density * source.num_nodes**2 / 2)
                rng = np.random.default_rng(source.seed)
                return replace(random_qubo(source.num_nodes, source.density, rng), name=f"qubo-{source.num_nodes}")
            case _:
                assert_never(source)

    def _check_size(self, num_nodes: int, num_edges: float) -> None:
        for kind, count, most in (
            ("nodes", num_nodes, self.limits.max_nodes),
            ("edges", num_edges, self.limits.max_edges),
        ):
            if count > most:
                raise RefusalError(422, f"the graph has {count:.0f} {kind}; this server allows at most {most}")


def shown_graph(read: ReadGraph) -> dict[str, Any]:
    """A graph as the page draws it."""
    graph = read.graph
    labels = None if graph.labels == range(graph.num_nodes) else [plain_label(label) for label in graph.labels]
    return {
        "name": graph.name,
        "nodes": graph.num_nodes,
        "edges": graph.edges.ravel().tolist(),
        "edge_weights": None if graph.edge_weights is None else graph.edge_weights.tolist(),
        "labels": labels,
        "density": graph.density,
        "notes": read.notes,
    }


def _rb_edges(source: messages.RbGraph) -> float:
    """An upper limit on the edges: those in the cliques and all that are drawn between them."""
    k, p = source.clique_size, source.tightness
    between = 0.0 if p == 1 else source.num_cliques * math.log(k) / -math.log1p(-p) * p * k**2
    return source.num_cliques * k * (k - 1) / 2 + between


def _shown_card(card: dict[str, Any]) -> dict[str, Any]:
    found = measured(card)
    return {
        "name": card["name"],
        "problem": card["problem"],
        "trained_on": trained_on(card),
        "choose_it_for": when_to_choose(card),
        "gap": None if found is None else str(found),
    }
