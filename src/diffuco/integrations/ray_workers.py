"""Work spread over a Ray cluster (extra `ray`): one worker per GPU or CPU slot; one that dies costs only what it had.

The cluster is the one that RAY_ADDRESS names, else the one that runs on this machine, else one of this machine's cores
and GPUs that lives as long as the work. Workers join and leave as the slots of the cluster do.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from diffuco.foundation.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_DEATHS = 3
"""Workers that a task may cost before it is split or given up."""


class Death(NamedTuple):
    """What stands in place of a result where workers died of the task, again and again."""

    reason: str


@contextmanager
def cluster() -> Iterator[None]:
    """Be connected to a Ray cluster, which is started if there is none; one that was connected to before stays so."""
    ray = import_ray()
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError as error:
        remedy = "check RAY_ADDRESS and, if the cluster wants a token, RAY_AUTH_MODE and RAY_AUTH_TOKEN"
        raise InputError(f"{error}; {remedy}") from error
    try:
        yield
    finally:
        ray.shutdown()


def num_slots(resource: str) -> int:
    """Workers that the cluster has room for; `resource` is "CPU" or "GPU"."""
    return int(import_ray().cluster_resources().get(resource, 0))


def spread(
    work: Callable[[Sequence[Item]], Result], tasks: Iterable[Sequence[Item]], resource: str
) -> Iterator[tuple[Sequence[Item], Result | Death]]:
    """Yield every task with what `work` makes of it, in the order they are done.

    A task is a sequence of items. Where its worker dies it is given to a new one; a task that has cost several workers
    is split, so that an item that kills them costs only itself. `work` and items are pickled; each worker keeps its
    copy of `work`, and whatever that has loaded, from task to task.
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
                idle.clear()  # slots for workers that wait for one
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
                raise InputError(f"workers cannot start ({reason}); is diffuco on all machines?") from error
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
    """A task and how many workers have died of it."""

    task: Sequence[Any]
    num_deaths: int


class _Worker:
    """A process of the cluster that keeps its copy of the work."""

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
    """The package; where it is missing, an InputError with the remedy."""
    try:
        import ray
    except ImportError as error:
        raise InputError("--engine ray needs Ray; pip install 'diffuco[ray]'") from error
    return ray
