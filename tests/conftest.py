"""What several test files share: the command line run in-process, tiny untrained models and small graph files."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from filelock import FileLock
from hypothesis import settings
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from diffuco.cli import main
from diffuco.graphs.graph import Graph
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.base import Settings
from diffuco.model import Gnn, GnnConfig, save_checkpoint
from diffuco.problems import Problem, all_problems
from diffuco.solution.result import Solution

# There is memory, and a look through all that torch and numba have made takes a quarter of a second.
gc.set_threshold(100_000, 50, 50)
# The same examples in every run; `make fuzz` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("error: ")]

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("warning: ")]


Run = Callable[..., Outcome]


def pytest_collection_finish() -> None:
    """Spare the garbage collector all that is imported and collected; it would look through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end it may look: what is left then is reported as a leak."""
    gc.unfreeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without a GPU its tests would be interpreted, for hours, or fail."""
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor fill the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIFFUCO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of several processes that run tests, one compiles a loop for the CPU, and the others wait and load it."""
    compile_at_once, folder = Dispatcher.compile, tmp_path_factory.getbasetemp().parent

    def compile_alone(self: Dispatcher, signature: object) -> object:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}.lock"
        # Threads first: one that waits for another process must not keep numba's own lock from the one that compiles.
        with global_compiler_lock, FileLock(folder / name, is_singleton=True):
            return compile_at_once(self, signature)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", compile_alone)
        yield


@pytest.fixture
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are interpreted."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")


@pytest.fixture
def _whole_graphs() -> Iterator[None]:
    """`auto` takes no nodes out of graphs, also after `monkeypatch.undo()`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diffuco.methods.cores.EDGES_PER_S", {})
        yield


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """The graphs that are annealed."""
    graphs: list[Graph] = []
    solve = FlipAnnealing.solve

    def recording(self: FlipAnnealing, problem: Problem, chosen: Sequence[Graph], given: Settings) -> list[Solution]:
        graphs.extend(chosen)
        return solve(self, problem, chosen, given)

    monkeypatch.setattr(FlipAnnealing, "solve", recording)
    return graphs


@pytest.fixture
def _highs_alone() -> Iterator[None]:
    """`auto` gives all sparse graphs to HiGHS, also after `monkeypatch.undo()`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diffuco.methods.proofs.CP_SAT_NODES", 0)
        yield


@pytest.fixture
def _poisoned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that nobody wrote is NaN."""
    for name in ("empty", "empty_like"):
        make = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda *args, _make=make, **options: _make(*args, **options).fill_(torch.nan))


@pytest.fixture
def run_program(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the main function of a program with arguments, in this process."""

    def run_main(main: Callable[[list[str]], int], *arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run_main


@pytest.fixture
def run(run_program: Run) -> Run:
    """Run `diffuco ARGUMENTS...` in this process."""
    return partial(run_program, main)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An untrained model for every problem."""
    folder = tmp_path_factory.mktemp("models")
    paths = {problem.name: folder / f"{problem.name}-untrained.safetensors" for problem in all_problems()}
    for problem, path in paths.items():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = Gnn(GnnConfig(num_steps=2, num_layers=2, num_hidden=16, weighted=problem == "qubo"))
        save_checkpoint(path, model, problem=problem, card={"dataset": "none", "validation": {"energy": 0.0}})
    return paths


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A square with a roof: five nodes, six edges, numbered from 1."""
    path = tmp_path / "house.clq"
    path.write_text("p edge 5 6\ne 1 2\ne 2 3\ne 3 4\ne 4 1\ne 1 5\ne 2 5\n")
    return path
