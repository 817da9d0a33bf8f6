"""Compiled loops on all cores."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from diffuco.foundation.progress import report


def on_all_threads(function: Callable[..., None], items: Sequence[tuple[Any, ...]], *, doing: str = "") -> None:
    """Call `function(*item)` for every item, on as many threads as torch uses; `function` should release the GIL.

    `doing` says what an item is, for whoever follows the progress.

    >>> squares = [0, 0, 0]
    >>> on_all_threads(lambda position, value: squares.__setitem__(position, value**2), [(0, 2), (2, 3)])
    >>> squares
    [4, 0, 9]
    """

    waiting = iter(range(len(items)))

    def work(*, reports: bool) -> None:
        for position in waiting:
            function(*items[position])
            if reports:
                report(doing, position + 1, len(items))

    # This thread works too: it would take longer to wake up than some loops take.
    num_others = min(torch.get_num_threads(), len(items)) - 1
    with ThreadPoolExecutor(max(1, num_others)) as threads:
        others = [threads.submit(work, reports=False) for _ in range(num_others)]
        try:
            work(reports=bool(doing))
        finally:
            for _ in waiting:  # after an error, nothing more is begun
                pass
        for other in others:
            other.result()
    if doing and items:
        report(doing, len(items), len(items))
