"""The named datasets of the paper (App. C.3), generated instead of downloaded.

Every graph is a pure function of (dataset, split, seed, index): training can draw any of them at any time, in any order
and on any machine, and two people who name the same graph mean the same graph.
"""

import difflib
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.graphs.cache import cache_directory, read_graphs, write_graphs
from diffuco.graphs.families import FAMILIES, sparse_graph, weighted_sparse_graph
from diffuco.graphs.generate import GENERATOR_VERSION, ba_graph, er_graph, mixed_graph, random_qubo, rb_graph
from diffuco.graphs.graph import Graph

DEFAULT_SIZES = {"train": 32_000, "validation": 500, "test": 500}
"""The paper trains on 4,000 graphs, and so does a run that says nothing else; the first of more are the same."""

CACHED_FROM_EDGES = 50_000_000
"""A set with at least this many edges is kept on disk (RB-large); smaller sets take a second or two to generate."""

PROGRESS_AFTER_S = 0.5


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named family of random graphs with a training, a validation and a test set."""

    name: str
    description: str
    generator: Callable[..., Graph]
    """Called with one value per entry of `ranges` and an `rng`."""
    ranges: Mapping[str, tuple[float, float]]
    """Lower and upper end per parameter; integers include both ends, floats only the lower one."""
    num_nodes: tuple[int, int] | None = None
    """RB only: parameters are redrawn until num_cliques * clique_size is in this range, both ends included."""
    divided_by: str = ""
    """Parameter by which the test set is divided; if empty, all parameters are drawn like those of the other splits."""
    test_parts: Mapping[str, float] = field(default_factory=dict)
    """What the equal parts of a divided test set are called, in their order, and their values of the parameter."""
    sizes: Mapping[str, int] = field(default_factory=DEFAULT_SIZES.copy)
    """Number of graphs per split."""
    max_threads: int = 1
    """Most threads worth using; small graphs spend too much of their time under the GIL to gain from a second one."""

    def graph(self, split: str, index: int, seed: int = 0) -> Graph:
        """One graph of a split; other seeds give other sets of the same kind.

        >>> get_dataset("ba-tiny").graph("test", 3)
        Graph(name='ba-tiny/test/3', num_nodes=23, num_edges=76)
        """
        rng = self._rng(split, index, seed)
        parameters = self._draw(split, index, rng)
        return replace(self.generator(**parameters, rng=rng), name=f"{self.name}/{split}/{index}")

    def parameters(self, split: str, index: int) -> dict[str, Any]:
        """The generator's parameters for one graph of seed 0, drawn again.

        >>> get_dataset("rb-200").parameters("test", 317)["tightness"]
        0.5
        """
        return self._draw(split, index, self._rng(split, index, 0))

    def part(self, split: str, index: int) -> str | None:
        """The part of a divided test set that a graph belongs to.

        >>> get_dataset("sparse").part("test", 100)
        'geometric'
        """
        if split != "test" or not self.test_parts:
            return None
        return list(self.test_parts)[index * len(self.test_parts) // self.sizes["test"]]

    def graphs(self, split: str, count: int | None = None, seed: int = 0, *, progress: bool = False) -> list[Graph]:
        """The first `count` graphs of a split, all by default; very large sets are kept on disk.

        `progress` shows a bar on standard error.

        >>> [graph.num_nodes for graph in get_dataset("rb-tiny").graphs("test", 3)]
        [24, 30, 20]
        """
        count = self._checked_count(split, count)
        file_name = f"{self.name}-{split}-seed{seed}-count{count}-v{GENERATOR_VERSION}.graphs"
        path = cache_directory() / file_name
        if (cached := read_graphs(path)) is not None:
            return [replace(graph, name=f"{self.name}/{split}/{i}") for i, graph in enumerate(cached)]
        made = self.generate(split, count, seed)
        graphs = list(_with_progress(made, f"{self.name}/{split}", count) if progress else made)
        if sum(graph.num_edges for graph in graphs) >= CACHED_FROM_EDGES:
            write_graphs(path, graphs)
        return graphs

    def generate(
        self, split: str, count: int | None = None, seed: int = 0, *, workers: int | None = None
    ) -> Iterator[Graph]:
        """Yield the graphs that `graphs` returns, in the same order, as they are generated and without the disk cache.

        `workers` threads generate them, by default as many as pay off. They are no processes: the kernels release the
        GIL, starting a pool of processes takes longer than generating most sets, and forking a process that uses a GPU
        is unsafe.
        """
        count = self._checked_count(split, count)

        def chunk(indices: range) -> list[Graph]:
            return [self.graph(split, index, seed) for index in indices]

        chunk_size = 32
        chunks = [range(start, min(start + chunk_size, count)) for start in range(0, count, chunk_size)]
        with ThreadPoolExecutor(workers or min(self.max_threads, available_cores())) as pool:
            for graphs in pool.map(chunk, chunks):
                yield from graphs

    def _checked_count(self, split: str, count: int | None) -> int:
        size = self._size(split)
        if count is None:
            return size
        if not 0 <= count <= size:
            asked = f"{counted(count, 'graph')} requested from {self.name}/{split}"
            raise InputError(f"{asked}; it has {size}, use another seed for different ones")
        return count

    def _size(self, split: str) -> int:
        if split not in self.sizes:
            raise InputError(f"no split {split!r} in {self.name}; the splits are {', '.join(self.sizes)}")
        return self.sizes[split]

    def _rng(self, split: str, index: int, seed: int) -> np.random.Generator:
        size = self._size(split)
        if not 0 <= index < size:
            raise InputError(f"no graph {index} in {self.name}/{split}; it has {size} graphs, numbered from 0")
        key = hashlib.sha256(f"{self.name}/{split}/{seed}/{index}".encode()).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(key, "little")))

    def _draw(self, split: str, index: int, rng: np.random.Generator) -> dict[str, Any]:
        parameters = {name: _uniform(*ends, rng) for name, ends in self.ranges.items()}
        if self.num_nodes is not None:
            low, high = self.num_nodes
            while not low <= parameters["num_cliques"] * parameters["clique_size"] <= high:
                parameters = {name: _uniform(*ends, rng) for name, ends in self.ranges.items()}
        if (part := self.part(split, index)) is not None:
            parameters[self.divided_by] = self.test_parts[part]
        return parameters


def get_dataset(name: str) -> Dataset:
    """The dataset of this name, in upper or lower case.

    >>> get_dataset("RB-small").description
    'RB graphs of 200 to 300 nodes'
    """
    if name.lower() in DATASETS:
        return DATASETS[name.lower()]
    near = difflib.get_close_matches(name.lower(), DATASETS, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    raise InputError(f"no dataset {name!r}{hint} The datasets are {', '.join(DATASETS)}")


def available_cores() -> int:
    """Number of cores this process may use; in a container or under a scheduler, the machine can have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _uniform(low: float, high: float, rng: np.random.Generator) -> float:
    if isinstance(low, int):
        return int(rng.integers(low, int(high), endpoint=True))
    return float(rng.uniform(low, high))


def _with_progress(graphs: Iterator[Graph], title: str, total: int) -> Iterator[Graph]:
    """Pass the graphs on; after a short while, show a progress bar if standard error is a terminal."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)
    start = time.perf_counter()
    try:
        for graph in graphs:
            if time.perf_counter() - start > PROGRESS_AFTER_S and bar.console.is_interactive:
                bar.start()
            bar.advance(task)
            yield graph
    finally:
        if bar.live.is_started:
            bar.stop()


def _ba(name: str, low: int, high: int) -> Dataset:
    description = f"Barabási-Albert graphs of {low} to {high} nodes"
    return Dataset(name, description, ba_graph, {"num_nodes": (low, high), "attachments": (4, 4)})


def _sparse(
    name: str,
    description: str,
    generator: Callable[..., Graph],
    *,
    first: str = "uniform",
    last: str = "tree",
    **more: tuple[float, float],
) -> Dataset:
    """The families from the first to the last: the test set has an equal part for each of them, in their order."""
    numbers = {family: number for number, family in enumerate(FAMILIES)}
    ends = numbers[first], numbers[last]
    places = {"size": (0.0, 1.0), "first": (0.0, 1.0), "second": (0.0, 1.0)}
    return Dataset(
        name,
        description,
        generator,
        {"family": ends, **places, **more},
        divided_by="family",
        test_parts={family: number for family, number in numbers.items() if ends[0] <= number <= ends[1]},
        sizes=DEFAULT_SIZES | {"test": 200},
    )


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "rb-tiny",
            "RB graphs of 20 to 42 nodes, for tests and for training on a CPU",
            rb_graph,
            {"num_cliques": (5, 7), "clique_size": (4, 6), "tightness": (0.3, 1.0)},
        ),
        Dataset(
            "rb-100",
            "RB graphs of 72 to 140 nodes",
            rb_graph,
            {"num_cliques": (9, 14), "clique_size": (8, 10), "tightness": (0.25, 1.0)},
        ),
        Dataset(
            "rb-200",
            "RB graphs of 180 to 216 nodes; the test set has 100 graphs for each of ten tightnesses from 0.25 to 1",
            rb_graph,
            {"num_cliques": (20, 24), "clique_size": (9, 9), "tightness": (0.25, 1.0)},
            divided_by="tightness",
            test_parts={f"p = {p:.3g}": p for p in np.linspace(0.25, 1, 10).tolist()},
            sizes={"train": 2000, "validation": 500, "test": 1000},
        ),
        Dataset(
            "rb-small",
            "RB graphs of 200 to 300 nodes",
            rb_graph,
            {"num_cliques": (20, 24), "clique_size": (5, 11), "tightness": (0.3, 1.0)},
            num_nodes=(200, 300),
        ),
        Dataset(
            "rb-large",
            "RB graphs of 800 to 1200 nodes",
            rb_graph,
            {"num_cliques": (40, 54), "clique_size": (20, 24), "tightness": (0.3, 1.0)},
            num_nodes=(800, 1200),
            max_threads=8,
        ),
        _ba("ba-tiny", 20, 40),
        _ba("ba-small", 200, 300),
        _ba("ba-large", 800, 1200),
        _ba("ba-huge", 1200, 1800),
        _ba("ba-giant", 2000, 3000),
        Dataset(
            "er-200-500",
            "Erdős-Rényi graphs of 200 to 500 nodes",
            er_graph,
            {"num_nodes": (200, 500), "edge_probability": (0.05, 0.3)},
        ),
        Dataset(
            "mixed-200-500",
            "Erdős-Rényi graphs, dense and sparse, and unions of two planar graphs, of 200 to 500 nodes",
            mixed_graph,
            {
                **{"num_nodes": (200, 500), "kind": (0, 2)},
                **{"edge_probability": (0.05, 0.3), "average_degree": (2.0, 12.0)},
            },
        ),
        _sparse("sparse", "sparse graphs of ten families, 100 to 1,000 nodes", sparse_graph),
        _sparse(
            "sparse-weighted",
            "the same with edge weights, +1 and -1 or normally distributed",
            weighted_sparse_graph,
            kind=(0, 1),
        ),
        _sparse(
            "hubs",
            "graphs with hubs, by preferential attachment and with a power law, 100 to 1,000 nodes",
            sparse_graph,
            first="preferential",
            last="power-law",
        ),
        Dataset(
            "qubo-tiny",
            "random QUBOs of 8 to 20 variables, small enough to enumerate",
            random_qubo,
            {"num_nodes": (8, 20), "density": (0.1, 1.0)},
        ),
        Dataset(
            "qubo-50-150",
            "random QUBOs of 50 to 150 variables",
            random_qubo,
            {"num_nodes": (50, 150), "density": (0.1, 1.0)},
        ),
    )
}
