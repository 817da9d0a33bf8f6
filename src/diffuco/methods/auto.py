"""`auto`, the default: the optimum where it is proven at once, else the search that suits a graph.

What is best comes from measurements (docs/choosing.md). A small graph is given to an exact solver for about a second, a
sparse one for some seconds: presolve often leaves nothing of it, and what the solver finds counts even without a proof.
So does what our own clique search finds, which takes graphs of any size and density. Dominating sets of denser graphs
are tried, too (`proofs`). A graph that falls apart is proven piece by piece, and only what is left is searched.

On a CPU, independent sets of graphs like RB are walked to, with a bound. Other graphs are annealed from random states.
In the same time that finds as much as refined samples of a model, or more, with three exceptions. On a GPU with
milliseconds to spend, a model that was trained on such graphs is ahead for cuts and dominating sets. On a large graph a
GPU tries both, and the graph itself decides (`contest`), while an exact solver runs beside on the CPU. And on a CPU,
half of the chains for a cut of a large graph with hubs start from a sample of a narrow model.

Except for cliques, nodes that need no search are taken out first, and all this is about what is left (`cores`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from diffuco.foundation.progress import in_units
from diffuco.graphs.by_size import in_order
from diffuco.graphs.datasets import available_cores
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, Method, Settings, beside
from diffuco.methods.cores import Core, core_of, lifted, load_for
from diffuco.methods.cp_sat import CpSat
from diffuco.methods.merging import after, better, both, settled_objective, unsettled
from diffuco.methods.numvc import NuMvc, Walking
from diffuco.methods.proofs import (
    EXACT_S,
    LARGE_NODES,
    LEAST_LEFT,
    SPARSE_EXACT_S,
    counts_cliques,
    is_sparse,
    is_worth_a_try,
    proof_limit,
    prove,
    provers,
    try_proof,
)
from diffuco.methods.whole_cut import whole_cut
from diffuco.pretrained import has_model
from diffuco.pretrained.choice import choose_models, full_models, narrow_model
from diffuco.problems import MaximumCut, MinimumDominatingSet, Problem
from diffuco.solution.result import Solution

if TYPE_CHECKING:
    import torch

MODEL_PROBLEMS = (MaximumCut, MinimumDominatingSet)
"""Problems for which samples of a model are ahead of annealing, on a GPU and within `MODEL_S`."""
MODEL_NODES = 500
"""Smallest graphs on which they are."""
MODEL_S = 0.01
"""Most seconds per graph with which they are."""
EDGES_PER_S = 100_000
"""Edges of a large graph on a GPU that each second is for, beyond the first, if an exact solver runs beside."""
BESIDE_SHARE = 0.9
"""Of the time limit, for that solver: what it has found when the search ends counts."""
WALK_NODES = (500, 2500)
"""Sizes of graphs that are not sparse on which NuMVC finds as much as annealing, or more."""
WALK_SHARE, CLOSE_SHARE, ANNEAL_SHARE = 0.25, 0.35, 0.1
"""Of the time: for NuMVC at first, the most for a proof then, and for annealing at last. NuMVC has the rest, too."""
CLOSE = 0.15
"""Gap of what it has found to its bound, as a share, with which CP-SAT may prove the best in seconds."""
CLOSE_EDGES = 200_000
"""The most edges for that."""
WALK_S = 1.0
"""The least seconds with which it is tried."""
SAMPLED_PER_S = 50_000
"""Nodes that a core can sample for each second of a time limit, at most: of larger graphs no step is tried."""
SAMPLED_CORE = {"cpu": 40_000, "cuda": 20_000}
"""Nodes of the core of a large graph: with fewer, searching the core alone finds more than samples of the graph."""
LEAST_S = 0.01
"""For annealing, also if the others took longer than they were given."""


class Search(NamedTuple):
    """How a graph is searched that was not solved exactly, and why so."""

    model: str | None
    """None: annealing."""
    reason: str
    walks: bool = False
    """Whether NuMVC gets its share of the time."""
    narrow: str | None = None
    """A model for a CPU, from whose sample half of the chains of annealing start."""


class Automatic(Method):
    """An exact solver where it is quick, else a model or annealing."""

    name = "auto"
    summary = "the default: exact where that takes a second, else annealing, or samples of a model where they pay"
    time_limit = "stops"

    def solve(self, problem: Problem, graphs: Sequence[Graph], settings: Settings) -> list[Solution]:
        """Prove what can be proven, then search for the rest; each solution says what found it and why."""
        contested = [is_contested(problem, graph, settings) for graph in graphs]  # may import torch
        load_for(problem, graphs)
        limit_s, clock = settings.time_limit_s, Deadline.after(None)
        cores = [
            core_of(problem, graph, limit_s, is_sampled=competes)
            for graph, competes in zip(graphs, contested, strict=True)
        ]
        if not any(cores):
            return self.solve_left(problem, graphs, settings, graphs)
        cores = [
            core if core and is_searched(core, problem, graph, settings, is_sampled=competes) else None
            for core, graph, competes in zip(cores, graphs, contested, strict=True)
        ]
        left = [core.graph if core else graph for core, graph in zip(cores, graphs, strict=True)]
        spent_s = clock.elapsed_s / len(graphs)
        left_s = None if limit_s is None else max(LEAST_LEFT * limit_s, limit_s - spent_s)
        with in_units(1.0, plus=cores[0].gain if cores[0] else 0.0):  # only one graph is followed
            found = self.solve_left(problem, left, replace(settings, time_limit_s=left_s), graphs)
        return [
            after(spent_s, lifted(core, graph, solution))
            for core, graph, solution in zip(cores, graphs, found, strict=True)
        ]

    def solve_left(
        self, problem: Problem, graphs: Sequence[Graph], settings: Settings, wholes: Sequence[Graph]
    ) -> list[Solution]:
        """The same for what is left of whole graphs."""
        limit_s = settings.time_limit_s

        def parts() -> Iterator[tuple[Sequence[int], list[Solution]]]:
            tried: dict[int, Solution | None] = {}
            spent_s: dict[int, float] = {}
            large = [position for position, graph in enumerate(graphs) if is_contested(problem, graph, settings)]
            for position in large:
                yield [position], [contested(problem, graphs[position], settings, wholes[position])]
                settings.tell(1)
            rest = [position for position in range(len(graphs)) if position not in set(large)]
            for position, solution, seconds in prove(problem, graphs, tuple(rest), settings.seed, limit_s, wholes):
                tried[position], spent_s[position] = solution, seconds
                if solution and solution.optimal:
                    rest.remove(position)
                    yield [position], [solution]
                    settings.tell(1)
            if not rest:
                return
            left = {position: unsettled(graphs[position], tried.get(position)) for position in rest}
            searches = plan(problem, [left[position] for position in rest], settings.device, limit_s)
            kinds = [(search, place in tried) for place, search in zip(rest, searches, strict=True)]
            for kind in dict.fromkeys(kinds):
                search, was_tried = kind
                positions = [place for place, other in zip(rest, kinds, strict=True) if other == kind]
                chosen = [left[position] for position in positions]
                left_s = limit_s
                if limit_s is not None and was_tried:
                    left_s = max(LEAST_LEFT * limit_s, limit_s - max(spent_s[place] for place in positions))
                with in_units(1.0, plus=settled_objective(tried.get(positions[0]))):  # only one graph is followed
                    found = searched(problem, chosen, search, replace(settings, time_limit_s=left_s))
                found = [after(spent_s.get(place, 0.0), new) for place, new in zip(positions, found, strict=True)]
                yield positions, [better(new, tried.get(place)) for place, new in zip(positions, found, strict=True)]

        return in_order(parts())


def searched(problem: Problem, graphs: Sequence[Graph], search: Search, settings: Settings) -> list[Solution]:
    """What a search finds."""
    if search.walks:
        return [walked(problem, graph, search, settings) for graph in graphs]
    if search.narrow is not None:
        return [sampled_on_cpu(problem, graph, search.narrow, settings) for graph in graphs]
    found = searcher(search).solve(problem, graphs, settings)
    return [replace(solution, reason=search.reason) for solution in found]


def sampled_on_cpu(problem: Problem, graph: Graph, narrow: str, settings: Settings) -> Solution:
    """What is found by chains of which half start from a sample of a narrow model."""
    from diffuco.methods.contest import contest_on_cpu

    core = core_of(problem, graph, settings.time_limit_s)
    return lifted(core, graph, contest_on_cpu(problem, graph, core, narrow, settings))


def walked(problem: Problem, graph: Graph, search: Search, settings: Settings) -> Solution:
    """What NuMVC finds, CP-SAT if the bound is close, NuMVC again and annealing, until one has proven the best."""
    limit_s, clock = settings.time_limit_s, Deadline.after(settings.time_limit_s)
    walking = Walking(problem, graph, settings.seed, has_clock=limit_s is not None)
    best = NuMvc().go_on(walking, Deadline.after(limit_s and WALK_SHARE * limit_s))
    is_close = best.gap is not None and best.gap <= CLOSE and graph.num_edges <= CLOSE_EDGES
    if not best.optimal and is_close and isinstance(next(provers(problem, graph), None), CpSat):
        proof_s = SPARSE_EXACT_S if limit_s is None else min(SPARSE_EXACT_S, CLOSE_SHARE * limit_s)
        tried = try_proof(problem, graph, settings.seed, proof_s)
        best = both(best, tried) if tried else best
    if not best.optimal and limit_s is not None:
        again_s = max(0.0, clock.remaining_s - ANNEAL_SHARE * limit_s)
        best = both(best, NuMvc().go_on(walking, Deadline.after(again_s)))
    if not best.optimal:
        left_s = None if limit_s is None else max(LEAST_S, clock.remaining_s)
        (found,) = searcher(search).solve(problem, [graph], replace(settings, time_limit_s=left_s, on_solved=None))
        best = both(replace(found, reason=search.reason), best)
    settings.tell(1)
    return replace(best, seconds={"load": 0.0, "sample": clock.elapsed_s, "decode": 0.0})


def searcher(search: Search) -> Method:
    """The method of a search. Importing one takes longer than many a proof."""
    from diffuco.methods.anneal import FlipAnnealing
    from diffuco.methods.model import ModelMethod

    return FlipAnnealing() if search.model is None else ModelMethod(search.model)


def plan(
    problem: Problem, graphs: Sequence[Graph], device: "torch.device", time_limit_s: float | None = None
) -> list[Search]:
    """How each graph is searched that is not solved exactly."""
    where = None
    if not has_model(problem):
        return [Search(None, f"no model for {problem} ships with diffuco")] * len(graphs)
    if device.type == "cpu":
        where = "on a CPU"
    elif time_limit_s is None or time_limit_s > MODEL_S:
        where = f"with more than {1000 * MODEL_S:g} ms per graph"
    elif not isinstance(problem, MODEL_PROBLEMS):
        where = f"for {problem}"
    if where is not None:
        reason = f"{where} annealing finds as much as the samples of a model in the same time, or more"
        return [
            Search(
                None,
                reason,
                walks=walks_pay(problem, graph, device, time_limit_s),
                narrow=sample_pays(problem, graph, device, time_limit_s),
            )
            for graph in graphs
        ]
    searches = []
    for graph, choice in zip(graphs, choose_models(problem, graphs) if graphs else [], strict=True):
        if not choice.is_alike:
            why = f"the nearest model, {choice.name}, was trained on other graphs or does not see the weights"
        elif graph.num_nodes < MODEL_NODES:
            why = f"on graphs of fewer than {MODEL_NODES} nodes annealing is ahead of the samples of a model"
        else:
            searches.append(Search(choice.name, choice.reason))
            continue
        searches.append(Search(None, why))
    return searches


def walks_pay(problem: Problem, graph: Graph, device: "torch.device", time_limit_s: float | None) -> bool:
    """Whether NuMVC may find more than annealing: on a CPU, on graphs like RB with hundreds to thousands of nodes."""
    few, many = WALK_NODES
    is_alike = few <= graph.num_nodes <= many and not is_sparse(graph)
    has_time = device.type == "cpu" and (time_limit_s is None or time_limit_s >= WALK_S)
    return is_alike and has_time and NuMvc().solves(problem) and graph.node_weights is None


def sample_pays(problem: Problem, graph: Graph, device: "torch.device", time_limit_s: float | None) -> str | None:
    """The model for a CPU whose sample may be ahead of annealing: on large graphs with hubs, given a time limit."""
    if device.type != "cpu" or time_limit_s is None or graph.num_nodes < LARGE_NODES:
        return None
    has_time = graph.num_nodes <= SAMPLED_PER_S * available_cores() * time_limit_s
    return narrow_model(problem, graph) if has_time else None


def is_searched(core: Core, problem: Problem, graph: Graph, settings: Settings, *, is_sampled: bool) -> bool:
    """Whether the core of a graph is searched instead.

    Where samples pay, models draw them of large graphs as a whole: cores are unlike the graphs that they know.
    """
    if not isinstance(problem, MODEL_PROBLEMS) or core.graph.num_nodes < min(SAMPLED_CORE.values()):
        return True
    is_small = core.graph.num_nodes < SAMPLED_CORE["cpu" if settings.device.type == "cpu" else "cuda"]
    narrow = sample_pays(problem, graph, settings.device, settings.time_limit_s)
    return is_small or not (is_sampled or narrow)


def is_contested(problem: Problem, graph: Graph, settings: Settings) -> bool:
    """Whether samples and random states compete on a graph."""
    is_large = graph.num_nodes >= LARGE_NODES and settings.device.type != "cpu"
    return is_large and not counts_cliques(problem, graph) and bool(full_models(problem, graph))


def contested(problem: Problem, graph: Graph, settings: Settings, whole: Graph | None = None) -> Solution:
    """What the best search finds, or an exact solver beside it, which is waited for only if there is no time limit.

    The graph may be what is left of a `whole`. Of one that is sampled as a whole, the solver gets the core.
    """
    from diffuco.methods.contest import contest

    if crossed := whole_cut(problem, graph, settings.seed):
        return crossed
    whole = whole or graph
    limit_s = settings.time_limit_s
    core = core_of(problem, graph, limit_s, is_sampled=True)
    left = core.graph if core else graph
    proof_s = proof_limit(problem, left, None, whole) if limit_s is None else BESIDE_SHARE * limit_s
    has_time = limit_s is None or limit_s >= EXACT_S + graph.num_edges / EDGES_PER_S
    proof = None
    if has_time and is_worth_a_try(problem, left, whole, proof_s):
        proof = beside(lambda: try_proof(problem, left, settings.seed, proof_s))

    def is_proven() -> bool:
        solution = proof.result() if proof and proof.done() else None
        return solution is not None and solution.optimal

    found = contest(problem, graph, core, settings, is_proven)
    tried = proof.result() if proof and (limit_s is None or proof.done()) else None
    return lifted(core, graph, tried if tried and tried.optimal else better(found, tried))
