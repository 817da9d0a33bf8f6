"""Triton kernels in tests: compiled where there is a GPU, interpreted elsewhere."""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
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
            spare_the_interpreter()
        yield


def spare_the_interpreter() -> None:
    """What takes the interpreter most of its time and changes no result is done once."""
    from triton.runtime import interpreter

    if interpreter._patch_lang.__module__ != __name__:
        _patch_functions_once_per_launch(interpreter)
        _make_types_once(interpreter)
        # An operation on integers was computed again for an assertion that is only made in debug mode.
        options = interpreter.interpreter_builder.options
        interpreter.interpreter_builder.options = replace(options, sanitize_overflow=options.debug)


def _patch_functions_once_per_launch(interpreter: Any) -> None:
    """The interpreter patches its language again in every call of a function, looking anew for what to patch."""
    launch, patch = interpreter.GridExecutor.__call__, interpreter._patch_lang
    is_builtin = interpreter.tl.core.is_builtin
    prepared: set[Callable[..., Any]] = set()
    names: dict[Any, list[str]] = {}

    def launch_anew(executor: Any, *args: Any, **options: Any) -> None:
        prepared.clear()
        launch(executor, *args, **options)

    def patch_once(function: Callable[..., Any]) -> Any:
        if function in prepared:
            return None
        prepared.add(function)
        return patch(function)

    def patch_builtin(owner: Any, builder: Any, scope: Any) -> None:
        if owner not in names:
            names[owner] = [name for name, member in inspect.getmembers(owner) if is_builtin(member)]
        for name in names[owner]:
            if is_builtin(member := getattr(owner, name)):  # and not patched for another function of this launch
                interpreter._patch_attr(owner, name, member, builder, scope)

    interpreter._patch_builtin = patch_builtin
    interpreter.GridExecutor.__call__, interpreter._patch_lang = launch_anew, patch_once


def _make_types_once(interpreter: Any) -> None:
    """Every operation makes the type of its result with its name, its shape in constants and its dtype in numpy."""
    language = interpreter.tl
    make_block, numpy_type = language.block_type.__init__, interpreter._get_np_dtype
    blocks: dict[tuple[str, tuple[int, ...]], dict[str, Any]] = {}
    shapes: dict[tuple[int, ...], tuple[Any, Any]] = {}
    numpy_types: dict[str, Any] = {}

    def make_block_once(block: Any, element: Any, shape: Any) -> None:
        key = element.name, tuple(getattr(size, "value", size) for size in shape)
        if key not in blocks:
            make_block(block, element, shape)
            blocks[key] = vars(block)
        block.__dict__.update(blocks[key])

    def make_tensor(tensor: Any, handle: Any, type: Any) -> None:
        sizes = tuple(type.shape) if type.is_block() else ()
        if sizes not in shapes:
            constants = language.tuple([language.constexpr(size) for size in sizes])
            shapes[sizes] = constants, language.constexpr(math.prod(sizes))
        tensor.handle, tensor.type, tensor.dtype = handle, type, type.scalar
        tensor.shape, tensor.numel = shapes[sizes]

    def numpy_type_once(type: Any) -> Any:
        name = type.scalar.name
        if name not in numpy_types:
            numpy_types[name] = numpy_type(type)
        return numpy_types[name]

    language.block_type.__init__, language.tensor.__init__ = make_block_once, make_tensor
    interpreter._get_np_dtype = numpy_type_once


USE_DIGESTS_OF_THE_INSTALLER = """
from importlib.metadata import distribution
from triton.runtime import cache

if digests := distribution("triton").read_text("RECORD"):
    cache.triton_key = lambda: digests
"""
"""Triton's key holds digests of its files, half a gigabyte; the installer has left the same ones."""


def compile_in_a_process(program: str, config: pytest.Config, output: Path) -> None:
    """Run a program that compiles kernels for a GPU, which needs none, where nothing is interpreted.

    What has not changed since the last run of the tests is not compiled again: Triton's key is all it depends on.
    """
    environment = {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(config.cache.mkdir("triton"))}
    process = start(exec, USE_DIGESTS_OF_THE_INSTALLER + program, {}, output=output, **environment)
    process.join()
    assert process.exitcode == 0, output.read_text()
