"""Optimal or best known objectives of many graphs, from wherever they are cheapest.

`find_references` looks into the files that ship with the package, then into the user's cache, and solves what is in
neither. Each result is written as soon as it is found, so that a killed run can be continued.
"""

import json
import logging
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock

from rich.console import Console
from rich.progress import Progress

from diffuco.evaluation.reference_solvers import best_of, solve_reference
from diffuco.evaluation.reference_store import Reference, Row, key_of, packaged_references, read_rows, write_rows
from diffuco.foundation.errors import GraphWarning
from diffuco.foundation.files import replacing
from diffuco.graphs.cache import cache_directory
from diffuco.graphs.datasets import available_cores
from diffuco.graphs.graph import Graph
from diffuco.methods.cp_sat import WORKERS
from diffuco.problems import (
    MaximumCut,
    MaximumIndependentSet,
    MinimumDominatingSet,
    MinimumVertexCover,
    Problem,
    get_problem,
    is_shipped,
)

DEFAULT_TIME_LIMIT_S = 60.0
DEFAULT_CUT_LIMIT_S = 10.0
"""Cuts use all of their time, because they are annealed; other problems are often proven early."""

_log = logging.getLogger(__name__)


def find_references(
    problem: str | Problem,
    graphs: Sequence[Graph],
    *,
    time_limit_s: float | None = None,
    store: Path | None = None,
    progress: bool = False,
) -> list[Reference]:
    """What is known about every graph, found on disk or solved now; a `GraphWarning` says how many are not proven.

    Without a time limit, every known reference is taken, and the rest get a minute per graph, or ten seconds for cuts.
    With one, unproven references that were given less time before are solved again. `store` is a folder of
    `reference_store` files to which the results are added; the graphs must then be the first ones of a test set.
    """
    known_problem = get_problem(problem)
    if isinstance(known_problem, MinimumVertexCover):
        # The nodes outside an independent set cover all edges, so one search gives both optima.
        found = find_references(
            MaximumIndependentSet(), graphs, time_limit_s=time_limit_s, store=store, progress=progress
        )
        return [complement(reference, graph) for reference, graph in zip(found, graphs, strict=True)]
    known = _KnownReferences(known_problem, graphs, store)
    missing = list({graph.digest: graph for graph in graphs if _is_open(known.get(graph), time_limit_s)}.values())
    usual = DEFAULT_CUT_LIMIT_S if isinstance(known_problem, MaximumCut) else DEFAULT_TIME_LIMIT_S
    limit = usual if time_limit_s is None else time_limit_s

    def work(graph: Graph) -> None:
        known.add(graph, solve_reference(known_problem, graph, limit))

    _on_all_cores(known_problem, missing, work, progress)
    references = [known[graph] for graph in graphs]
    num_unproven = sum(not reference.proven for reference in references)
    if num_unproven:
        text = f"{num_unproven} of {len(graphs)} references are the best known, not proven optimal"
        warnings.warn(GraphWarning(text), stacklevel=2)
    return references


def stored_references(problem: str | Problem, graphs: Sequence[Graph]) -> list[Reference | None]:
    """What is known about every graph without solving any; None if nothing is known."""
    known_problem = get_problem(problem)
    if isinstance(known_problem, MinimumVertexCover):
        found = stored_references(MaximumIndependentSet(), graphs)
        return [known and complement(known, graph) for known, graph in zip(found, graphs, strict=True)]
    known = _KnownReferences(known_problem, graphs, None)
    return [known.get(graph) for graph in graphs]


def complement(reference: Reference, graph: Graph) -> Reference:
    """A reference for minimum vertex cover from one for maximum independent set, or the other way round.

    >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> complement(Reference(3, 3, True, "cp-sat", "9", 60, 0.1), star)[:3]
    (1, 1, True)
    """
    total = graph.num_nodes if graph.node_weights is None else float(graph.node_weights.sum())
    return reference._replace(objective=total - reference.objective, bound=total - reference.bound)


class _KnownReferences:
    """What is known about some graphs, from all sources. Additions, from any thread, are kept on disk."""

    def __init__(self, problem: Problem, graphs: Sequence[Graph], store: Path | None) -> None:
        self._problem = problem
        # A user's problem may change its meaning and keep its name, so earlier results are not trusted.
        self._is_kept = is_shipped(problem)
        self._writing = Lock()
        self._references: dict[str, Reference] = {}
        self._keys = [key_of(graph.digest) for graph in graphs]
        self._path = store and store / f"{graphs[0].name.partition('/')[0]}-{problem}.csv"
        self._rows = {row.place: row for row in read_rows(self._path)} if self._path else {}
        stored = {row.key: row.reference for row in self._rows.values()}
        packaged = packaged_references(problem.name) if self._is_kept else {}
        for graph, key in zip(graphs, self._keys, strict=True):
            self._merge(key, stored.get(key))
            self._merge(key, packaged.get(key))
            if self._is_kept and (key not in self._references or not self._references[key].proven):
                self._merge(key, _read(_cache_path(problem, graph)))
        self._write_rows()

    def __getitem__(self, graph: Graph) -> Reference:
        return self._references[key_of(graph.digest)]

    def get(self, graph: Graph) -> Reference | None:
        return self._references.get(key_of(graph.digest))

    def add(self, graph: Graph, reference: Reference) -> None:
        with self._writing:
            self._merge(key_of(graph.digest), reference)
            if self._is_kept:
                _write(_cache_path(self._problem, graph), self[graph])
            self._write_rows()

    def _merge(self, key: str, reference: Reference | None) -> None:
        if reference is not None:
            earlier = self._references.get(key, reference)
            self._references[key] = best_of(self._problem, earlier, reference)

    def _write_rows(self) -> None:
        if self._path is None:
            return
        known = {
            place: Row(place, key, self._references[key])
            for place, key in enumerate(self._keys)
            if key in self._references
        }
        if known.items() - self._rows.items():
            self._rows |= known
            write_rows(self._path, self._rows.values())


def _is_open(known: Reference | None, time_limit_s: float | None) -> bool:
    """Whether a graph must be solved: nothing is known, or the given time allows more than before."""
    if known is None:
        return True
    return not known.proven and time_limit_s is not None and known.time_limit_s < time_limit_s


def _on_all_cores(problem: Problem, graphs: Sequence[Graph], work: Callable[[Graph], None], progress: bool) -> None:
    """Call `work` on every graph. If one fails, graphs already started are finished and the others are dropped."""
    # HiGHS and annealing use one thread per graph, CP-SAT eight. Threads suffice, because all of them release the GIL.
    num_parallel = (
        available_cores()
        if isinstance(problem, MinimumDominatingSet | MaximumCut)
        else max(1, available_cores() // WORKERS)
    )
    pool = ThreadPoolExecutor(num_parallel)
    try:
        tasks = [pool.submit(work, graph) for graph in graphs]
        with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bar:
            for done in bar.track(as_completed(tasks), total=len(tasks), description=f"solving {problem}"):
                done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _cache_path(problem: Problem, graph: Graph) -> Path:
    return cache_directory() / "references" / problem.name / f"{graph.digest}.json"


def _read(path: Path) -> Reference | None:
    """A reference kept earlier. If the file is missing or damaged, the graph is solved again."""
    try:
        return Reference(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, reference: Reference) -> None:
    """Keep a reference. If the folder cannot be written, the graph will only have to be solved again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as out:
            out.write(json.dumps(reference._asdict()).encode())
    except OSError as error:
        _log.debug("reference not kept: %s", error)
