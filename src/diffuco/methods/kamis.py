"""KaMIS, searches for independent sets, where it is installed: the evolutionary ReduMIS and the local OnlineMIS.

Either the package `chszlablib` (the extra `kamis`) or the programs `redumis` and `online_mis` on the PATH. ReduMIS was
seen to overrun its limits: by seconds, or by minutes on graphs of 100,000 nodes.
"""

import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint
from diffuco.foundation.progress import report
from diffuco.graphs.formats import write_graph
from diffuco.graphs.graph import Graph
from diffuco.methods.base import Deadline, GraphByGraph, TimeLimit, repair
from diffuco.problems import MaximumIndependentSet, MinimumVertexCover, Problem

DEFAULT_LIMIT_S = 10.0
SEEDS = 2**31
"""How many seeds it has."""


class Kamis(GraphByGraph):
    """ReduMIS for independent sets, and for vertex covers what they leave."""

    name = "kamis"
    summary = "KaMIS: reductions and evolutionary search, 10 s per graph unless told otherwise"
    time_limit: ClassVar[TimeLimit] = "stops"
    program: ClassVar[str] = "redumis"
    """Name of the program and of the function of the package."""

    def solves(self, problem: Problem) -> bool:
        """Independent sets, and the covers that they leave."""
        return isinstance(problem, MaximumIndependentSet | MinimumVertexCover)

    def takes_node_weights(self, problem: Problem) -> bool:
        """It counts nodes."""
        return False

    def missing(self) -> str | None:
        """The Python package or the program."""
        if find_spec("chszlablib") or which(self.program):
            return None
        return f"KaMIS; {install_hint('kamis')}, or put the program {self.program} on the PATH"

    def search(self, problem: Problem, graph: Graph, seed: int, deadline: Deadline) -> NDArray[np.bool_]:
        """Search until time is up."""
        limit_s = DEFAULT_LIMIT_S if deadline.limit_s is None else deadline.limit_s
        if not graph.num_edges:
            found = np.ones(graph.num_nodes, dtype=np.bool_)
        elif which(self.program):
            found = self._run_program(graph, seed, limit_s)
        else:
            found = self._call_package(graph, seed, limit_s)
        found = repair(MaximumIndependentSet(), graph, found[:, None])
        return found if isinstance(problem, MaximumIndependentSet) else ~found

    def _call_package(self, graph: Graph, seed: int, limit_s: float) -> NDArray[np.bool_]:
        import chszlablib

        indptr, indices, _ = graph.csr
        search = getattr(chszlablib.IndependenceProblems, self.program)
        report(f"{self.name}, which Ctrl+C stops only when it ends, after about {limit_s:.3g} s")
        result = search(chszlablib.Graph.from_csr(indptr, indices), time_limit=limit_s, seed=seed % SEEDS)
        found = np.zeros(graph.num_nodes, dtype=np.bool_)
        found[np.asarray(result.vertices, dtype=np.int64)] = True
        return found

    def _run_program(self, graph: Graph, seed: int, limit_s: float) -> NDArray[np.bool_]:
        """A program reads METIS and writes one line per node: 1 if it is in the set."""
        plain = Graph(graph.num_nodes, graph.edges)
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "graph.metis", Path(folder) / "set.txt"
            write_graph(plain, source, "metis")
            options = (f"--output={target}", f"--seed={seed % SEEDS}", f"--time_limit={limit_s}")
            done = subprocess.run([self.program, str(source), *options], capture_output=True, text=True, check=False)
            if done.returncode or not target.exists():
                lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
                raise InputError(f"{self.program} failed with code {done.returncode}: {lines[-1]}")
            is_chosen: NDArray[np.bool_] = np.loadtxt(target, dtype=np.int64, ndmin=1) == 1
            return is_chosen


class OnlineMis(Kamis):
    """OnlineMIS, which reduces a graph while it searches."""

    name = "online-mis"
    summary = "KaMIS: iterated local search for large sparse graphs, 10 s per graph unless told otherwise"
    time_limit = "used"
    program = "online_mis"
