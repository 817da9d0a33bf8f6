"""Work on a Ray cluster (the extra `ray`): one worker per GPU or CPU; if one dies, only its current task is repeated.

The cluster is the one that RAY_ADDRESS names, or one that runs on this machine, or a new one of this machine's cores
and GPUs that ends with the work. Workers join and leave as the machines of the cluster do.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_DEATHS = 3
"""Workers that may die of a task before it is split or given up."""


class Death(NamedTuple):
    """Takes the place of a result if the task killed its workers again and again."""

    reason: str


@contextmanager
def cluster() -> Iterator[None]:
    """Connect to a Ray cluster, or start one if there is none. An existing connection stays open afterwards."""
    ray = import_ray()
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError as error:
        remedy = "check RAY_ADDRESS and, if the cluster needs a token, RAY_AUTH_MODE and RAY_AUTH_TOKEN"
        raise InputError(f"{error}; {remedy}") from error
    try:
        yield
    finally:
        ray.shutdown()


def num_slots(resource: str) -> int:
    """Number of workers that the cluster has room for; `resource` is "CPU" or "GPU"."""
    return int(import_ray().cluster_resources().get(resource, 0))


def spread(
    work: Callable[[Sequence[Item]], Result], tasks: Iterable[Sequence[Item]], resource: str
) -> Iterator[tuple[Sequence[Item], Result | Death]]:
    """Yield every task with the result of `work`, in the order in which they finish.

    A task is a sequence of items. If its worker dies, a new worker takes the task. A task that has killed several
    workers is split, so that only the item that kills them is lost. `work` and the items are pickled. Each worker keeps
    its copy of `work`, with whatever it has loaded, from task to task.
    """
    ray = import_ray()
    worker_class = ray.remote(num_cpus=1, num_gpus=int(resource == "GPU"))(_Worker)
    again: deque[_Attempt] = deque()
    fresh = (_Attempt(task, 0) for task in tasks)
    running: dict[Any, tuple[Any, _Attempt]] = {}
    idle: list[Any] = []
    while True:
        while len(running) < max(1, num_slots(resource)):
            attempt = again.popleft() if again else next(fresh, None)
            if attempt is None:
                idle.clear()  # frees slots for workers that wait for one
                break
            worker = idle.pop() if idle else worker_class.remote(work)
            running[worker.run.remote(attempt.task)] = worker, attempt
        if not running:
            return
        [done], _ = ray.wait(list(running), num_returns=1)
        worker, attempt = running.pop(done)
        try:
            result = ray.get(done)
        except _deaths() as error:
            if getattr(error, "actor_init_failed", False):
                reason = str(error).strip().splitlines()[-1]
                raise InputError(f"workers cannot start ({reason}); is diffuco installed on all machines?") from error
            if attempt.num_deaths + 1 < MAX_DEATHS:
                again.append(_Attempt(attempt.task, attempt.num_deaths + 1))
            elif len(attempt.task) > 1:
                again.extend(_Attempt([item], 0) for item in attempt.task)
            else:
                yield attempt.task, Death(str(error).partition("\n")[0])
            continue
        idle.append(worker)
        yield attempt.task, result


class _Attempt(NamedTuple):
    """A task, and how many workers have died of it."""

    task: Sequence[Any]
    num_deaths: int


class _Worker:
    """A process on the cluster that keeps its copy of the work."""

    def __init__(self, work: Callable[[Sequence[Any]], Any]) -> None:
        self.work = work

    def run(self, task: Sequence[Any]) -> Any:
        return self.work(task)


def _deaths() -> tuple[type[Exception], ...]:
    from ray import exceptions

    return (
        exceptions.RayActorError,
        exceptions.WorkerCrashedError,
        exceptions.OutOfMemoryError,
        exceptions.NodeDiedError,
    )


def import_ray() -> Any:
    """The package `ray`; raises InputError with the remedy if it is missing.

    Ray reads the variable when it is imported. A cluster that it starts then listens on the loopback address alone;
    one that is already running is found and used as ever.
    """
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        raise InputError(f"--engine ray needs Ray; {install_hint('ray')}") from error
    return ray
