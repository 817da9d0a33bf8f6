"""`diffuco.solve`: graphs of any kind and a problem in, solutions out. Every other way to solve calls it."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diffuco.foundation.devices import check_device, now
from diffuco.foundation.errors import InputError
from diffuco.foundation.progress import Follower, following
from diffuco.foundation.values import check_seed, is_count
from diffuco.graphs.graph import Graph
from diffuco.graphs.pairs import is_edge_list
from diffuco.methods import Method, Settings, check_method, get_method
from diffuco.methods.greedy import warn_if_greedy_is_ahead
from diffuco.problems import Problem, States, check_weights, get_problem, graph_for
from diffuco.solution.result import Solution
from diffuco.solution.verification import states_of

if TYPE_CHECKING:
    import torch

    from diffuco.inference.answers import Decode
    from diffuco.inference.solver import Model


def solve(
    graph: object,
    problem: str | Problem,
    *,
    method: str | Method = "auto",
    model: "Model | None" = None,
    time_limit_s: float | None = None,
    samples: int | None = None,
    step_factor: int | None = None,
    decode: "Decode | None" = None,
    token_size: int | None = None,
    rounds: int | None = None,
    refine: int | None = None,
    start: object = None,
    solutions: int | None = None,
    seed: int = 0,
    device: str = "auto",
    on_solved: Callable[[int], None] | None = None,
    on_progress: Follower | None = None,
) -> Any:
    """Solve one graph or a list of graphs; returns a `Solution` or a list of them.

    A graph is a `Graph`, a graph of networkx, igraph or PyG, a scipy or numpy adjacency matrix, a path, or edges in a
    list, an array or a pandas frame. Edges are pairs of labels, or triples with a weight; the nodes are the labels that
    occur. For `qubo`, a square matrix Q stands for x'Qx, and a dictionary {(i, j): value} for its entries.

    The method `auto` proves the optimum of a small graph and searches otherwise; `diffuco methods` lists the others.
    Any option of models (`model`, and `samples` to `refine`; see `SampleOptions`) draws samples of a model instead,
    which is the method `diffuco`. `time_limit_s` is per graph. `start` is a solution of your own (labels, a mask, a
    file or a `Solution`; for several graphs a list of them). Annealing and `rounds` of a model continue from it; the
    answer is never worse. With `solutions`, each graph gets a list of up to that many distinct feasible solutions, best
    first: those that the method found, and annealing adds to them. `on_solved` is told how many more graphs are solved,
    `on_progress` what a search is doing, how far it is and the best objective so far.

    >>> import numpy as np
    >>> five_cycle = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    >>> solution = solve(five_cycle, "mis")
    >>> solution.objective, solution.optimal, solution.found_by
    (2.0, True, 'enumeration')
    >>> solve(five_cycle, "mis", method="greedy").objective
    2.0
    >>> sorted(answer.nodes for answer in solve([(0, 1), (1, 2), (2, 0)], "mis", solutions=5))
    [[0], [1], [2]]
    """
    if solutions is not None and not is_count(solutions):
        raise InputError(f"solutions is {solutions!r}; give a whole number, 1 or more")
    known, seed = get_problem(problem), check_seed(seed)
    given = {"samples": samples, "step_factor": step_factor, "decode": decode, "token_size": token_size}
    chosen = choose_method(method, model, **given, rounds=rounds, refine=refine)
    check_method(chosen, known, time_limit_s)
    check_device(device)
    many = isinstance(graph, list | tuple) and not is_edge_list(graph)
    graphs = [graph_for(known, source) for source in (graph if many else [graph])]  # type: ignore[attr-defined]
    check_weights(known, graphs)
    starts = None if start is None else starting_states(start if many else [start], graphs)
    settings = Settings(seed, device, time_limit_s, on_solved)
    with following(on_progress) if on_progress else nullcontext():
        found = chosen.solve(known, graphs, settings)
    if chosen.draws_samples and time_limit_s is None:
        from diffuco.methods.model import ModelMethod

        asked = chosen.options if isinstance(chosen, ModelMethod) else None
        are_finished = asked is None or (asked.decode != "none" and asked.refine != 0)
        warn_if_greedy_is_ahead(known, found, are_finished=are_finished)
    if starts is not None:
        pairs = zip(found, starts, strict=True)
        found = [improved(solution, own, chosen, seed=seed, device=settings.device) for solution, own in pairs]
    if solutions is None:
        return found if many else found[0]
    from diffuco.solving.several import several

    lists = [several(solution, solutions, Settings(seed, device, time_limit_s)) for solution in found]
    return lists if many else lists[0]


def choose_method(method: str | Method, model: "Model | None", **options: Any) -> Method:
    """The requested method. Options of models that are not None ask for a model and exclude other methods."""
    given = {name: value for name, value in options.items() if value is not None}
    chosen = get_method(method)
    if model is None and not given:
        return chosen
    from diffuco.methods.model import ModelMethod
    from diffuco.model.checkpoint import Checkpoint

    named: object = model
    if not isinstance(named, str | Path | Checkpoint | None):
        raise InputError(f"there is no model {model!r}; give a name, a path or what load_model returns")
    if chosen.name not in ("auto", ModelMethod.name):
        name = next(iter(given), "model").replace("_", " ")
        raise InputError(f"{name} is for models and excludes the method {chosen.name}; give one of the two")
    own = chosen if isinstance(chosen, ModelMethod) else ModelMethod()
    return replace(own, model=own.model if model is None else model, options=replace(own.options, **given))


def starting_states(start: object, graphs: Sequence[Graph]) -> list[States]:
    """The nodes that the user's own solutions choose, as one mask per graph."""
    if not isinstance(start, list | tuple) or len(start) != len(graphs):
        raise InputError(f"every graph needs its own start; give a list of {len(graphs)} solutions")
    return [states_of(own, graph) for own, graph in zip(start, graphs, strict=True)]


def improved(solution: Solution, start: States, method: Method, *, seed: int, device: "torch.device") -> Solution:
    """The better of a solution and what is found from the user's own by rounds, if asked for, and annealing."""
    import torch

    from diffuco.inference.answers import best_solutions, unit_batch
    from diffuco.inference.refinement import refine as refine_states
    from diffuco.inference.refinement import schedule_for_samples
    from diffuco.methods.model import ModelMethod

    problem, graph, started = solution.problem, solution.graph, now(device)
    batch = unit_batch(problem, [graph], device)
    own = torch.from_numpy(start)[:, None].float().to(device)
    if isinstance(method, ModelMethod) and method.options.rounds:
        own = torch.cat([own, method.rounds_from(problem, graph, batch, own, seed)], dim=1)
    schedule = schedule_for_samples(problem, graph.num_nodes)
    states = torch.cat([refine_states(problem, batch, own, schedule, seed=seed), own], dim=1)
    seconds = solution.seconds | {"refine": solution.seconds.get("refine", 0.0) + now(device) - started}
    (mine,) = best_solutions(problem, [graph], batch, states, found_by="anneal", seed=seed, seconds=seconds)
    if _rank(solution) <= _rank(mine):
        return replace(solution, seconds=seconds)
    reason = f"annealing from the given solution was ahead of {solution.found_by}"
    return replace(mine, reason=reason, bound=solution.bound)


def _rank(solution: Solution) -> tuple[bool, float]:
    """Feasible solutions come first, then those with the better objective."""
    return not solution.feasible, solution.problem.sign * solution.objective
