"""The options with which all loops are compiled for the CPU.

Only kernel modules import this module, and their callers import them when first needed, because importing numba takes a
third of a second.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """`numba.njit` without the GIL and with a cache on disk, typed so that callers keep the signature."""
    return cast(Kernel, numba.njit(cache=True, nogil=True)(function))
