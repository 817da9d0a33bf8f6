"""Solves many graph files into one file of solutions, here or on a Ray cluster; a killed run can be continued.

Files are solved in groups, and the solutions of a group are on disk before the next group is awaited. The groups depend
only on the list of files, so neither the place nor the number of workers changes the results.
"""

import os
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import diffuco
from diffuco.cli.console import make_folder, print_error, print_note, print_warning, progress_bar
from diffuco.cli.inputs import LoadedGraph, list_files, load_file
from diffuco.cli.options import BatchEngine
from diffuco.cli.outputs import as_record
from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.foundation.wording import as_utf8, counted
from diffuco.integrations import ray_workers
from diffuco.solution.log import SolutionLog

STANDARD_INPUT = "-"
FILES_PER_GROUP = {"cpu": 8, "cuda": 256}
"""Few enough that little is lost if a worker dies; enough graphs of a few hundred nodes to fill a device."""


class GraphFile(NamedTuple):
    """A file to solve."""

    name: str
    """As the user gave it, in UTF-8."""
    path: Path
    """Where workers find it."""
    done: frozenset[str]
    """Names of its graphs that are already solved."""


@dataclass
class Found:
    """What came of some files."""

    records: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """One line for each file or graph that could not be solved."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FileSolver:
    """Solves groups of files. A worker needs nothing but a copy of it."""

    problem: str
    settings: dict[str, Any]
    """Options of `diffuco.solve`; a model is already loaded."""
    file_format: str | None

    @property
    def device(self) -> str:
        """Where to solve."""
        return str(self.settings["device"])

    def __call__(self, files: Sequence[GraphFile]) -> Found:
        """Read and solve the files; a bad one does not stop the others."""
        found = Found()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", GraphWarning)
            graphs = [loaded for file in files for loaded in self._load(file, found)]
            found.records += self._solve(graphs, found)
        found.warnings += dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, GraphWarning))
        return found

    def _load(self, file: GraphFile, found: Found) -> list[LoadedGraph]:
        try:
            graphs = load_file(file.path, self.file_format, self.problem)
        except InputError as error:
            found.errors.append(str(error).replace(str(file.path), file.name))
            return []
        named = [LoadedGraph(file.name + g.file.removeprefix(str(file.path)), g.graph, g.seconds) for g in graphs]
        return [loaded for loaded in named if loaded.file not in file.done]

    def _solve(self, graphs: list[LoadedGraph], found: Found) -> list[dict[str, Any]]:
        if not graphs:
            return []
        try:
            solutions = diffuco.solve([loaded.graph for loaded in graphs], self.problem, **self.settings)
        except InputError as error:
            if len(graphs) > 1:
                return [record for loaded in graphs for record in self._solve([loaded], found)]
            found.errors.append(f"{graphs[0].file}: {error}")
            return []
        return [as_record(*pair) for pair in zip(graphs, solutions, strict=True)]


def solve_files(
    paths: Sequence[Path], output: Path, solver: FileSolver, engine: BatchEngine
) -> tuple[dict[str, Any], int]:
    """Solve all files that `output` has no solutions of yet; returns a summary and how many files or graphs are bad."""
    if engine is BatchEngine.RAY:
        _check_for_ray(paths, solver.device)
    files, num_bad = list_files(paths, solver.file_format)
    make_folder(output.absolute().parent)
    counts: Counter[str] = Counter()
    with SolutionLog(output, problem=solver.problem, seed=solver.settings["seed"]) as log:
        num_before = len(log.files)
        if num_before:
            print_note(f"{output} already holds {counted(num_before, 'graph')}, which will not be solved again")
        with _engine(solver, engine) as (size, results), progress_bar() as bar:
            groups = _groups(files, log, size)
            task = bar.add_task("solving", total=sum(map(len, groups)))
            try:
                for group, found in results(groups):
                    log.append(found.records)
                    _report(found, counts)
                    bar.advance(task, len(group))
            except KeyboardInterrupt:
                print_note(f"{counted(len(log.files), 'graph')} solved so far; run the same command to continue")
                raise
        log.finish()
        summary = {"output": str(output), "graphs": len(log.files), "before": num_before}
    return summary | {name: counts[name] for name in ("solved", "infeasible", "optimal")}, num_bad + counts["bad"]


def _check_for_ray(paths: Sequence[Path], device: str) -> None:
    """Refuse what a cluster cannot do before anything is written or started."""
    ray_workers.import_ray()
    if Path(STANDARD_INPUT) in paths:
        raise InputError("the workers of a cluster cannot read standard input; give files or folders")
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"--device {device} names a device of one machine; with --engine ray give auto, cpu or cuda")


Results = Iterator[tuple[Sequence[GraphFile], Found]]
"""Groups and what was found, in the order in which they finish."""


@contextmanager
def _engine(
    solver: FileSolver, engine: BatchEngine
) -> Iterator[tuple[int, Callable[[list[list[GraphFile]]], Results]]]:
    """The number of files per group, and the function that solves the groups."""
    from diffuco.foundation.devices import pick_device

    if engine is BatchEngine.LOCAL:
        size = FILES_PER_GROUP.get(pick_device(solver.device).type, FILES_PER_GROUP["cuda"])
        yield size, lambda groups: ((group, solver(group)) for group in groups)
        return
    with ray_workers.cluster():
        has_gpus = ray_workers.num_slots("GPU") > 0
        if solver.device == "cuda" and not has_gpus:
            raise InputError("the Ray cluster has no GPU; give --device cpu")
        if has_gpus and solver.device != "cpu":
            yield FILES_PER_GROUP["cuda"], lambda groups: _on_ray(groups, solver, "GPU")
        else:
            yield FILES_PER_GROUP["cpu"], lambda groups: _on_ray(groups, solver, "CPU")


def _on_ray(groups: list[list[GraphFile]], solver: FileSolver, resource: str) -> Results:
    for group, result in ray_workers.spread(solver, groups, resource):
        if isinstance(result, ray_workers.Death):
            reason = f"the workers that tried to solve it died ({result.reason})"
            yield group, Found(errors=[f"{file.name}: {reason}" for file in group])
        else:
            yield group, result


def _groups(files: Sequence[Path], log: SolutionLog, size: int) -> list[list[GraphFile]]:
    """What is left to do: the list of files is cut into groups first, then solved files are left out."""
    solved = {_key(name) for name in log.files}
    solved_parts: defaultdict[str, set[str]] = defaultdict(set)
    for key in solved:
        if part := re.fullmatch(r"(.+)(\[\d+\])", key):
            solved_parts[part[1]].add(part[2])
    paths: dict[str, Path] = {}
    for path in files:
        paths.setdefault(_key(as_utf8(str(path))), path)
    keys = list(paths)
    groups = []
    for first in range(0, len(keys), size):
        left = [(key, paths[key]) for key in keys[first : first + size] if key not in solved]
        groups.append([_graph_file(path, solved_parts[key]) for key, path in left])
    return [group for group in groups if group]


def _key(name: str) -> str:
    """What all spellings of a path have in common: `a.txt` and `./a.txt` are the same file."""
    return name if name == STANDARD_INPUT else os.path.abspath(name)


def _graph_file(path: Path, solved_parts: set[str]) -> GraphFile:
    name = as_utf8(str(path))
    place = path if name == STANDARD_INPUT else path.absolute()  # for workers in other folders
    return GraphFile(name, place, frozenset(name + part for part in solved_parts))


def _report(found: Found, counts: Counter[str]) -> None:
    for line in found.warnings:
        print_warning(line)
    for line in found.errors:
        print_error(line)
    counts["bad"] += len(found.errors)
    counts["solved"] += len(found.records)
    counts["infeasible"] += sum(not record["feasible"] for record in found.records)
    counts["optimal"] += sum(record["optimal"] for record in found.records)
