"""Threads work for the device. Waiting requests for samples with the same options are solved as one batch.

Batches form by themselves: requests that arrive while the device is busy wait and are taken together when it is free.
A request that finds the device free starts at once. On a CPU, only one thread draws samples at a time, because more
would wait for each other. Proofs and searches of single graphs run beside it, several at a time.
"""

import math
import secrets
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from diffuco.diffusion.reverse import ReverseStep
from diffuco.foundation.wording import counted
from diffuco.graphs.batch import Batch
from diffuco.graphs.graph import Graph
from diffuco.inference.sampler import OnStep
from diffuco.methods import Method, ModelMethod
from diffuco.problems import Problem
from diffuco.solution.result import Solution
from diffuco.solving.entry import solve
from diffuco.web.limits import RefusalError, stopping
from diffuco.web.metrics import Metrics

CLOSING_S = 1.0
"""Seconds that each thread has to end when the server stops."""


@dataclass(frozen=True)
class Options:
    """What two requests must agree on to be solved together."""

    problem: Problem
    method: Method
    time_limit_s: float | None = None

    @property
    def num_columns(self) -> int:
        """Samples of each graph that are computed at once."""
        return self.method.options.samples if isinstance(self.method, ModelMethod) else 1


class Solved(NamedTuple):
    """The result of a job."""

    solution: Solution
    solved_together: int
    waited_s: float
    seed: int | None
    """With which the answer can be repeated; None if it shared a batch."""


@dataclass(eq=False)
class Job:
    """One request on its way through the device."""

    graph: Graph
    options: Options
    seed: int | None = None
    """A job with a seed is solved alone, because the random numbers of a batch depend on all of its graphs."""
    on_step: OnStep | None = None
    """Called at every reverse step; such a job is solved alone too."""
    result: "Future[Solved]" = field(default_factory=Future)
    is_abandoned: bool = False
    """Whether nobody waits for the result any more."""
    arrived: float = field(default_factory=time.monotonic)

    @property
    def is_alone(self) -> bool:
        """Whether it must not share a batch."""
        return self.seed is not None or self.on_step is not None


class _AbandonedError(Exception):
    """Ends a solve that nobody waits for any more."""


class DeviceQueue:
    """The jobs that wait for a device, and the threads that solve them, oldest first."""

    def __init__(
        self, device: torch.device, *, max_waiting: int, max_rows: int, metrics: Metrics, num_threads: int = 1
    ) -> None:
        self.device, self.max_waiting, self.max_rows, self.metrics = device, max_waiting, max_rows, metrics
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.seconds_per_job = 0.1
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(num_threads)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def refuse_all(self) -> None:
        """Tell whoever waits that the server stops, and take no more."""
        with self._changed:
            self._is_closed = True
            for job in (*self.waiting, *self.running):
                job.is_abandoned = True
                _settle(job, error=stopping())
            self.waiting.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Stop after the current step. A solve that has no steps is left to end with the process."""
        self.refuse_all()
        for thread in self._threads:
            thread.join(CLOSING_S)

    def submit(self, job: Job) -> int:
        """Add a job to the queue; returns how many are ahead of it."""
        with self._changed:
            if self._is_closed:
                raise stopping()
            if len(self.waiting) >= self.max_waiting:
                seconds = max(1, math.ceil(self.seconds_per_job * len(self.waiting)))
                reason = f"{counted(len(self.waiting), 'request')} already waiting; try again in {seconds} s"
                raise RefusalError(429, reason, {"Retry-After": str(seconds)})
            job.result.set_running_or_notify_cancel()  # from now on only `abandon` can end it
            self.waiting.append(job)
            self.metrics.waiting.set(len(self.waiting))
            self._changed.notify()
            return len(self.waiting) - 1 + len(self.running)

    def abandon(self, job: Job) -> None:
        """Drop a waiting job. A running one stops at its next step unless others share its batch."""
        with self._changed:
            job.is_abandoned = True
            if job in self.waiting:
                self.waiting.remove(job)
                self.metrics.waiting.set(len(self.waiting))
        self.metrics.abandoned.inc()

    def _work(self) -> None:
        while jobs := self._take():
            started, seed = time.monotonic(), jobs[0].seed
            seed = secrets.randbits(32) if seed is None else seed
            try:
                solutions = self._solve(jobs, seed)
            except _AbandonedError:
                solutions = []
            except Exception as error:
                for job in jobs:
                    _settle(job, error=error)
                solutions = []
            seconds = time.monotonic() - started
            self._record(jobs, seconds, len(solutions))
            for job, solution in zip(jobs, solutions, strict=False):
                _settle(job, Solved(solution, len(jobs), started - job.arrived, seed if len(jobs) == 1 else None))
            with self._changed:
                self.running = [job for job in self.running if job not in jobs]
                self._changed.notify_all()

    def _take(self) -> list[Job]:
        """Wait for jobs and take the oldest with those that can be solved together with it; none once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._next() or self._is_closed)
            first = self._next()
            if self._is_closed or first is None:
                return []
            jobs = [first]
            if self._is_batched(first) and not first.is_alone:
                like_it = [job for job in self.waiting[1:] if job.options == first.options and not job.is_alone]
                jobs += _that_fit(first, like_it, self.max_rows)
            taken = set(map(id, jobs))
            self.waiting = [job for job in self.waiting if id(job) not in taken]
            self.running += jobs
            self.metrics.waiting.set(len(self.waiting))
            return jobs

    def _next(self) -> Job | None:
        """The oldest job that may start now."""
        is_sampling = any(self._is_batched(job) for job in self.running)
        return next((job for job in self.waiting if not (is_sampling and self._is_batched(job))), None)

    def _is_batched(self, job: Job) -> bool:
        """Whether a job gains from a batch: samples do, and on a GPU everything."""
        return isinstance(job.options.method, ModelMethod) or self.device.type != "cpu"

    def _solve(self, jobs: list[Job], seed: int) -> list[Solution]:
        first = jobs[0]
        method, options = first.options.method, first.options

        def go_on(_: object) -> None:
            if all(job.is_abandoned for job in jobs):
                raise _AbandonedError

        def on_step(batch: Batch, step: ReverseStep) -> None:
            go_on(step)
            if first.on_step:
                first.on_step(batch, step)

        # A GPU replays all steps of a draw at once, so the client cannot leave in between.
        if isinstance(method, ModelMethod) and (first.on_step is not None or self.device.type != "cuda"):
            method = replace(method, on_step=on_step)
        solutions: list[Solution] = solve(
            [job.graph for job in jobs],
            options.problem,
            method=method,
            time_limit_s=options.time_limit_s,
            seed=seed,
            device=str(self.device),
            on_progress=go_on if self.device.type == "cpu" else None,
        )
        return solutions

    def _record(self, jobs: list[Job], seconds: float, num_solved: int) -> None:
        self.metrics.batch_graphs.observe(len(jobs))
        self.metrics.device_seconds.observe(seconds)
        for job in jobs:
            self.metrics.waiting_seconds.observe(max(0.0, time.monotonic() - seconds - job.arrived))
        if num_solved:
            self.seconds_per_job += 0.2 * (seconds / num_solved - self.seconds_per_job)


def _settle(job: Job, solved: Solved | None = None, *, error: Exception | None = None) -> None:
    """End a job, unless it was refused before."""
    if job.result.done():
        return
    if solved is None:
        job.result.set_exception(error)
    else:
        job.result.set_result(solved)


def _that_fit(first: Job, others: list[Job], max_rows: int) -> list[Job]:
    """The oldest jobs that fit into a batch of at most `max_rows` rows, padded to its largest graph."""
    jobs, largest = [first], max(1, first.graph.num_nodes)
    for job in others:
        padded = max(largest, job.graph.num_nodes)
        if padded * (len(jobs) + 1) * first.options.num_columns <= max_rows:
            jobs.append(job)
            largest = padded
    return jobs[1:]
