"""Optima of many graphs to compare with, kept on disk: each is written when found, so nothing is solved twice."""

import json
import logging
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from diffuco.baselines.exact import solve_exact
from diffuco.files import replacing
from diffuco.graphs.cache import cache_directory
from diffuco.graphs.datasets import available_cores
from diffuco.graphs.graph import Graph, GraphWarning

WORKERS = 8

_log = logging.getLogger(__name__)


class Reference(NamedTuple):
    """What is known about the optimum of one graph."""

    objective: float
    bound: float
    proven: bool
    time_limit_s: float


def reference_objectives(
    problem: str, graphs: Sequence[Graph], *, time_limit_s: float = 60.0, progress: bool = False
) -> list[float]:
    """The best known objective of every graph; a `GraphWarning` says how many are not proven optimal."""
    references = find_references(problem, graphs, time_limit_s=time_limit_s, progress=progress)
    return [reference.objective for reference in references]


def find_references(
    problem: str, graphs: Sequence[Graph], *, time_limit_s: float = 60.0, progress: bool = False
) -> list[Reference]:
    """What is known about every graph, from disk or solved now, with a bar on standard error if asked."""
    # mds runs on one thread a graph, the others on eight. Threads do: CP-SAT releases the GIL.
    num_parallel = available_cores() if problem == "mds" else max(1, available_cores() // WORKERS)
    with (
        Progress(console=Console(stderr=True), transient=True, disable=not progress) as bar,
        ThreadPoolExecutor(num_parallel) as pool,
    ):
        found = pool.map(lambda graph: _reference(problem, graph, time_limit_s), graphs)
        references = list(bar.track(found, total=len(graphs), description=f"exact {problem}"))
    num_unproven = sum(not reference.proven for reference in references)
    if num_unproven:
        text = f"{num_unproven} of {len(graphs)} references are the best CP-SAT found in {time_limit_s:g} s, not proven"
        warnings.warn(GraphWarning(text), stacklevel=2)
    return references


def _reference(problem: str, graph: Graph, time_limit_s: float) -> Reference:
    path = cache_directory() / "references" / problem / f"{graph.digest}.json"
    known = _read(path)
    if known and (known.proven or known.time_limit_s >= time_limit_s):
        return known
    result = solve_exact(problem, graph, time_limit_s=time_limit_s, workers=WORKERS)
    reference = Reference(result.objective, result.bound, result.proven, time_limit_s)
    _write(path, reference)
    return reference


def _read(path: Path) -> Reference | None:
    """A reference kept earlier; a missing or damaged file is as good as none, the graph is solved again."""
    try:
        return Reference(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, reference: Reference) -> None:
    """Keep a reference; a folder that cannot be written only costs the time to solve the graph again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as out:
            out.write(json.dumps(reference._asdict()).encode())
    except OSError as error:
        _log.debug("reference not kept: %s", error)
