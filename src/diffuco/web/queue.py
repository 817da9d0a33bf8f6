"""One thread works for the device. Waiting requests with the same options are solved as one batch.

Batches form by themselves: requests that arrive while the device is busy wait and are taken together when it is free.
A request that finds the device free starts at once.
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
from diffuco.web.limits import RefusalError
from diffuco.web.metrics import Metrics


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
    """The jobs that wait for a device, and the thread that solves them, oldest first."""

    def __init__(self, device: torch.device, *, max_waiting: int, max_rows: int, metrics: Metrics) -> None:
        self.device, self.max_waiting, self.max_rows, self.metrics = device, max_waiting, max_rows, metrics
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.seconds_per_job = 0.1
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="diffuco-device", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop after the current step; waiting jobs are dropped."""
        with self._changed:
            self._is_closed = True
            for job in (*self.waiting, *self.running):
                job.is_abandoned = True
            self.waiting.clear()
            self._changed.notify_all()
        self._thread.join()

    def submit(self, job: Job) -> int:
        """Add a job to the queue; returns how many are ahead of it."""
        with self._changed:
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
            started = time.monotonic()
            try:
                solutions = self._solve(jobs)
            except _AbandonedError:
                solutions = []
            except Exception as error:
                for job in jobs:
                    job.result.set_exception(error)
                solutions = []
            seconds = time.monotonic() - started
            self._record(jobs, seconds, len(solutions))
            for job, solution in zip(jobs, solutions, strict=False):
                job.result.set_result(Solved(solution, len(jobs), started - job.arrived))

    def _take(self) -> list[Job]:
        """Wait for jobs and take the oldest with those that can be solved together with it; none once closed."""
        with self._changed:
            self.running = []
            self._changed.wait_for(lambda: self.waiting or self._is_closed)
            if self._is_closed:
                return []
            first = self.waiting[0]
            jobs = [first]
            if not first.is_alone:
                like_it = [job for job in self.waiting[1:] if job.options == first.options and not job.is_alone]
                jobs += _that_fit(first, like_it, self.max_rows)
            taken = set(map(id, jobs))
            self.waiting = [job for job in self.waiting if id(job) not in taken]
            self.running = jobs
            self.metrics.waiting.set(len(self.waiting))
            return jobs

    def _solve(self, jobs: list[Job]) -> list[Solution]:
        first = jobs[0]
        method, options = first.options.method, first.options

        def on_step(batch: Batch, step: ReverseStep) -> None:
            if all(job.is_abandoned for job in jobs):
                raise _AbandonedError
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
            seed=secrets.randbits(32) if first.seed is None else first.seed,
            device=str(self.device),
        )
        return solutions

    def _record(self, jobs: list[Job], seconds: float, num_solved: int) -> None:
        self.metrics.batch_graphs.observe(len(jobs))
        self.metrics.device_seconds.observe(seconds)
        for job in jobs:
            self.metrics.waiting_seconds.observe(max(0.0, time.monotonic() - seconds - job.arrived))
        if num_solved:
            self.seconds_per_job += 0.2 * (seconds / num_solved - self.seconds_per_job)


def _that_fit(first: Job, others: list[Job], max_rows: int) -> list[Job]:
    """The oldest jobs that fit into a batch of at most `max_rows` rows, padded to its largest graph."""
    jobs, largest = [first], max(1, first.graph.num_nodes)
    for job in others:
        padded = max(largest, job.graph.num_nodes)
        if padded * (len(jobs) + 1) * first.options.num_columns <= max_rows:
            jobs.append(job)
            largest = padded
    return jobs[1:]
