"""The one set of options under which loops are compiled for the CPU.

Imported by kernel modules only, which their callers import when first needed: numba takes a third of a second.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """`numba.njit` without the GIL and with a cache on disk, typed so that callers keep the signature."""
    return cast(Kernel, numba.njit(cache=True, nogil=True)(function))
