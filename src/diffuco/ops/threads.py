"""Compiled loops on all cores."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from diffuco.foundation.progress import report

CHUNKS_PER_THREAD = 8
"""Enough for threads to finish at the same time, few enough for handing out work to cost nothing."""


def on_all_threads(function: Callable[..., None], items: Sequence[tuple[Any, ...]], *, doing: str = "") -> None:
    """Call `function(*item)` for every item, on as many threads as torch uses; `function` should release the GIL.

    `doing` says what an item is, for whoever follows the progress.

    >>> squares = [0, 0, 0]
    >>> on_all_threads(lambda position, value: squares.__setitem__(position, value**2), [(0, 2), (2, 3)])
    >>> squares
    [4, 0, 9]
    """

    def work(first: int, last: int) -> None:
        for item in items[first:last]:
            function(*item)

    num_threads = torch.get_num_threads()
    chunk_size = max(1, math.ceil(len(items) / (num_threads * CHUNKS_PER_THREAD)))
    chunks = [(first, first + chunk_size) for first in range(0, len(items), chunk_size)]
    with ThreadPoolExecutor(num_threads) as threads:
        done = threads.map(work, *zip(*chunks, strict=True)) if chunks else ()
        for (_, last), _ in zip(chunks, done, strict=True):
            if doing:
                report(doing, min(last, len(items)), len(items))
