"""Progress of a search: whoever waits for it may follow what is being done and the best objective so far."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Progress(NamedTuple):
    """Where a search stands."""

    doing: str
    """What is being done, such as `sampling, steps`."""
    done: int | None
    """How often so far."""
    total: int | None
    """Of how many, if that is known."""
    best: float | None
    """The best objective so far, if it is known."""

    def __str__(self) -> str:
        if self.done is None:
            return self.doing
        return f"{self.doing} {self.done:,}" + (f" of {self.total:,}" if self.total is not None else "")


Follower = Callable[[Progress], None]

_follower: ContextVar[Follower | None] = ContextVar("follower", default=None)


@contextmanager
def following(follower: Follower) -> Iterator[None]:
    """Let a follower see the progress of what this thread does inside.

    >>> seen = []
    >>> with following(seen.append):
    ...     report("annealing, sweeps", 3, 10)
    >>> str(seen[0])
    'annealing, sweeps 3 of 10'
    """
    token = _follower.set(follower)
    try:
        yield
    finally:
        _follower.reset(token)


@contextmanager
def in_units(unit: float, plus: float = 0.0) -> Iterator[None]:
    """Objectives that are reported inside count this much, with what is known of the rest of the graph added.

    Searches take weights in units of the largest, and pieces of a graph that are proven are not searched.
    """
    follower = _follower.get()
    if follower is None:
        yield
        return
    whole = follower
    with following(lambda seen: whole(seen._replace(best=None if seen.best is None else unit * seen.best + plus))):
        yield


def report(
    doing: str, done: int | None = None, total: int | None = None, *, best: Callable[[], float | None] | None = None
) -> None:
    """Tell whoever follows; `best` is only called if somebody does."""
    if follower := _follower.get():
        follower(Progress(doing, done, total, best() if best else None))


def current_follower() -> Follower | None:
    """Who follows this thread, for code that reports from another thread."""
    return _follower.get()
