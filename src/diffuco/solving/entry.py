"""`diffuco.solve`: graphs of any kind and a problem's name in, solutions out."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from diffuco.graphs.convert import as_graph, qubo_as_graph
from diffuco.graphs.graph import Graph
from diffuco.model.checkpoint import Checkpoint
from diffuco.pretrained import choose_models
from diffuco.problems import get_problem
from diffuco.solution.result import Solution
from diffuco.inference.solver import Decode, Solver


def solve(
    graph: object,
    problem: str,
    *,
    model: str | Path | Checkpoint | None = None,
    samples: int = 8,
    step_factor: int = 3,
    decode: Decode = "ce",
    token_size: int = 8,
    refine: int | None = None,
    seed: int = 0,
    device: str = "auto",
) -> Solution | list[Solution]:
    """Solve one graph, or a list of graphs at once, with a given model or the shipped ones made for such graphs.

    A graph may be a `Graph`, one of networkx, igraph or PyG, a scipy or numpy adjacency matrix, an array of edges or a
    path; for `qubo`, a square matrix Q stands for x'Qx. `refine` is the number of sweeps of annealing from every
    sample: by default as many as suit the graph; 0 is the paper's method.

    >>> import numpy as np
    >>> five_cycle = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    >>> solution = solve(five_cycle, "mis")
    >>> solution.objective, solution.feasible
    (2.0, True)
    """
    many = isinstance(graph, list | tuple) and not _is_edge_list(graph)
    convert = qubo_as_graph if problem == "qubo" else as_graph
    graphs = [convert(source) for source in (graph if many else [graph])]  # type: ignore[attr-defined]
    solutions: dict[int, Solution] = {}
    for solver, positions in solvers_for(problem, graphs, model, device=device):
        found = solver.solve(
            [graphs[position] for position in positions],
            samples=samples,
            step_factor=step_factor,
            decode=decode,
            token_size=token_size,
            refine=refine,
            seed=seed,
        )
        solutions |= dict(zip(positions, found, strict=True))
    return [solutions[position] for position in range(len(graphs))] if many else solutions[0]


def solvers_for(
    problem: str, graphs: Sequence[Graph], model: str | Path | Checkpoint | None = None, *, device: str = "auto"
) -> Iterator[tuple["Solver", list[int]]]:
    """One solver with the given model, or one per shipped model, each with the positions of the graphs it is for."""
    get_problem(problem)  # refuses a name that is none
    if model is not None or not graphs:
        yield Solver(problem, model, device=device), list(range(len(graphs)))
        return
    for name, positions in models_for(problem, graphs).items():
        yield Solver(problem, name, device=device), positions


def models_for(problem: str, graphs: Sequence[Graph]) -> dict[str, list[int]]:
    """The shipped models that suit these graphs, each with the positions of the graphs it is for."""
    positions: dict[str, list[int]] = {}
    for position, choice in enumerate(choose_models(problem, graphs)):
        positions.setdefault(choice.name, []).append(position)
    return positions


def _is_edge_list(items: Sequence[object]) -> bool:
    return bool(items) and all(
        isinstance(item, list | tuple) and len(item) == 2 and all(isinstance(node, int) for node in item)
        for item in items
    )
