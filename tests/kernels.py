"""Triton kernels in tests: compiled where there is a GPU, interpreted elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = DEVICE == "cpu"


@contextmanager
def importing_kernels() -> Iterator[None]:
    """Around the import of a module with kernels, which are what Triton is told to make of them at that moment."""
    with pytest.MonkeyPatch.context() as environment:
        if INTERPRETED:
            environment.setenv("TRITON_INTERPRET", "1")
        triton = pytest.importorskip("triton", reason="triton is not installed")
        if INTERPRETED and type(triton.language.sum).__name__ != "InterpretedFunction":
            pytest.skip("triton was imported before it could be told to interpret kernels", allow_module_level=True)
        yield
