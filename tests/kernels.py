"""Triton kernels in tests: compiled where there is a GPU, interpreted elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from processes import start

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = DEVICE == "cpu"
MARKS = [pytest.mark.usefixtures("_interpreter")] if INTERPRETED else [pytest.mark.gpu]
"""For every test of kernels. Where they are compiled it needs the GPU, and `make gpu` runs it."""


@contextmanager
def importing_kernels() -> Iterator[None]:
    """Around the import of a module with kernels, which are what Triton is told to make of them at that moment."""
    with pytest.MonkeyPatch.context() as environment:
        if INTERPRETED:
            environment.setenv("TRITON_INTERPRET", "1")
        triton = pytest.importorskip("triton", reason="triton is not installed")
        if INTERPRETED and type(triton.language.sum).__name__ != "InterpretedFunction":
            pytest.skip("triton was imported before it could be told to interpret kernels", allow_module_level=True)
        if INTERPRETED:
            prepare_functions_once_per_launch()
        yield


def prepare_functions_once_per_launch() -> None:
    """Spare the interpreter what takes it half its time: to patch its language again in every call of a function."""
    from triton.runtime import interpreter

    launch, patch = interpreter.GridExecutor.__call__, interpreter._patch_lang
    if patch.__module__ == __name__:
        return
    prepared: set[Callable[..., Any]] = set()

    def launch_anew(executor: Any, *args: Any, **options: Any) -> None:
        prepared.clear()
        launch(executor, *args, **options)

    def patch_once(function: Callable[..., Any]) -> Any:
        if function in prepared:
            return None
        prepared.add(function)
        return patch(function)

    interpreter.GridExecutor.__call__, interpreter._patch_lang = launch_anew, patch_once


def compile_in_a_process(program: str, config: pytest.Config, output: Path) -> None:
    """Run a program that compiles kernels for a GPU, which needs none, where nothing is interpreted.

    What has not changed since the last run of the tests is not compiled again: Triton's key is all it depends on.
    """
    environment = {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(config.cache.mkdir("triton"))}
    process = start(exec, program, {}, output=output, **environment)
    process.join()
    assert process.exitcode == 0, output.read_text()
