"""Reads the graphs named on the command line: files, folders, standard input. A bad file does not stop the others."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diffuco.cli.console import print_error, progress_bar
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted

if TYPE_CHECKING:
    from diffuco.graphs.collection import Collection
    from diffuco.graphs.datasets import Dataset
    from diffuco.graphs.graph import Graph


@dataclass(frozen=True)
class LoadedGraph:
    """A graph, its file as the user named it, and how long reading took."""

    file: str
    graph: "Graph"
    seconds: float


@dataclass(frozen=True)
class Inputs:
    """All graphs that could be read."""

    graphs: list[LoadedGraph]
    num_bad: int
    """Files that could not be read; each was reported on standard error."""
    is_single: bool
    """Whether one file with one graph was asked for, not a folder or a list."""


def load_inputs(paths: Sequence[Path], file_format: str | None, problem: str) -> Inputs:
    """Read every graph of the files and folders; report bad files and go on."""
    files, num_bad = list_files(paths, file_format)
    graphs: list[LoadedGraph] = []
    with progress_bar() as bar:
        for file in bar.track(files, description="reading") if len(files) > 1 else files:
            try:
                graphs += load_file(file, file_format, problem)
            except InputError as error:
                print_error(error)
                num_bad += 1
    is_single = len(paths) == 1 and not paths[0].is_dir() and len(graphs) <= 1
    return Inputs(graphs, num_bad, is_single)


def list_files(paths: Sequence[Path], file_format: str | None) -> tuple[list[Path], int]:
    """All graph files among the paths or in folders among them, and how many paths are bad; those are reported."""
    files: list[Path] = []
    num_bad = 0
    for path in paths:
        try:
            files += _expand(path, file_format)
        except InputError as error:
            print_error(error)
            num_bad += 1
    return files, num_bad


def load_file(file: Path, file_format: str | None, problem: str | None = None) -> list[LoadedGraph]:
    """The graphs of one file. If there are several, they are named FILE[0], FILE[1] and so on.

    Weights that the problem does not accept raise InputError, like any other mistake in a file.
    """
    from diffuco.graphs.formats import read_graphs
    from diffuco.problems import check_node_weights, get_problem

    started = time.perf_counter()
    try:
        graphs = read_graphs(file, file_format)
    except InputError as error:
        raise error if str(file) in str(error) else InputError(f"{file}: {error}") from error
    seconds = (time.perf_counter() - started) / max(1, len(graphs))
    names = [str(file)] if len(graphs) == 1 else [f"{file}[{number}]" for number in range(len(graphs))]
    for name, graph in zip(names, graphs, strict=True):
        if problem is not None:
            check_node_weights(get_problem(problem), graph, name)
    return [LoadedGraph(name, graph, seconds) for name, graph in zip(names, graphs, strict=True)]


def graph_source(dataset: str | None, own_graphs: Path | None) -> "Dataset | Collection":
    """The graphs to measure on: those of a dataset, or the user's own."""
    if (dataset is None) == (own_graphs is None):
        raise InputError("no graphs to measure on, or two kinds; give either --dataset or --graphs")
    if own_graphs is not None:
        return load_collection(own_graphs)
    from diffuco.graphs.datasets import get_dataset

    assert dataset is not None
    return get_dataset(dataset)


def load_collection(path: Path) -> "Collection":
    """All graphs of a folder or file as one collection; raises InputError at the first bad file.

    Solving skips bad files. Training does not, so that nobody finds out hours later what was missing.
    """
    from diffuco.graphs.collection import Collection

    if not path.exists():
        raise InputError(f"{path}: no such folder; check the path")
    files = _expand(path, None)
    with progress_bar() as bar:
        graphs = [loaded.graph for file in bar.track(files, description="reading") for loaded in load_file(file, None)]
    return Collection.of(collection_name(path), graphs)


def collection_name(path: Path) -> str:
    """What the graphs of a folder or file are called together."""
    return path.resolve().name if path.is_dir() else path.name.partition(".")[0]


def _expand(path: Path, file_format: str | None) -> list[Path]:
    """A file as it is; for a folder, its files with the suffix of a graph format, sorted."""
    if not path.is_dir():
        return [path]
    from diffuco.foundation.errors import GraphWarning

    files = sorted(file for file in path.iterdir() if file.is_file() and not _is_beside_the_point(file))
    readable = [file for file in files if file_format or _has_graph_suffix(file)]
    skipped = sorted({file.name for file in files} - {file.name for file in readable})
    if not readable:
        raise InputError(f"{path}: no graph files in this folder; give another folder, or pass --format")
    if skipped:
        names = ", ".join(skipped[:3]) + (", ..." if len(skipped) > 3 else "")
        some = f"{len(skipped)} of {counted(len(files), 'file')}"
        text = f"{path}: skipped {some} that are not graphs by their suffix ({names}); name them to read them"
        warnings.warn(GraphWarning(text), stacklevel=2)
    return readable


def _is_beside_the_point(file: Path) -> bool:
    """Whether a file is hidden, a readme, or a text file of a collection that is not an edge list."""
    from diffuco.graphs.formats.collection import is_tu_companion

    return file.name.lower().startswith((".", "readme")) or is_tu_companion(file)


def _has_graph_suffix(path: Path) -> bool:
    """Whether a file of a folder is a graph by its name; most .json files are something else."""
    from diffuco.graphs.formats import FORMATS
    from diffuco.graphs.formats.source import without_compression

    name = without_compression(path.name).lower()
    return not name.endswith(".json") and any(name.endswith(known.suffixes) for known in FORMATS)
