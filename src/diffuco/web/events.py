"""A solve as server-sent events: every reverse step as it is taken, then the answer."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple

import anyio.to_thread
import numpy as np
from fastapi.responses import StreamingResponse
from numpy.typing import NDArray
from starlette.types import Receive, Scope, Send

from diffuco.diffusion.reverse import ReverseStep
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch
from diffuco.inference.streaming import streamed_step
from diffuco.solution.result import Solution
from diffuco.web.limits import RefusalError, too_slow
from diffuco.web.metrics import Metrics
from diffuco.web.queue import DeviceQueue, Job, Solved

HEARTBEAT_S = 5.0
"""Seconds between signs of life on an idle stream, which also show whether the client has gone."""
DESCRIPTION = (
    "Server-sent events: `start` {num_steps, samples, model, ahead}, one `step` {index, states, energies} for the "
    "noise and every reverse step, then `solution`, the answer with `states` and `chosen`; or `error` {error}. "
    "`states` are the bits of every sample, most significant first, in base64."
)

Content = dict[str, Any]


class Watched(NamedTuple):
    """What a client can watch."""

    model: str
    samples: int
    num_steps: int
    """Reverse steps."""


class JobEvents:
    """The events of one job. It is created on the event loop and filled by the thread of the device."""

    def __init__(self, job: Job, watched: Watched) -> None:
        self.job, self.problem, self.watched = job, job.options.problem, watched
        self.loop = asyncio.get_running_loop()
        self.waiting: asyncio.Queue[Content | None] = asyncio.Queue()
        self.num_taken = 0
        job.on_step = self._on_step
        job.result.add_done_callback(lambda _: self._put(None))

    async def tell(
        self, metrics: Metrics, max_seconds: float, ahead: int, last: Callable[[Solved], Content]
    ) -> AsyncGenerator[str, None]:
        """The events as text, until the job is solved or its time has run out."""
        ends = self.loop.time() + max_seconds
        start = self.watched._asdict() | {"ahead": ahead}
        try:
            yield as_text("start", start)
            while (left := ends - self.loop.time()) > 0:
                try:
                    step = await asyncio.wait_for(self.waiting.get(), min(HEARTBEAT_S, left))
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if step is None:
                    solved = self.job.result.result()
                    yield as_text("solution", await anyio.to_thread.run_sync(last, solved))
                    metrics.solved.labels(solved.solution.problem.name).inc()
                    return
                yield as_text("step", step)
            yield as_text("error", {"error": too_slow(max_seconds).reason})
        except (InputError, RefusalError) as error:
            yield as_text("error", {"error": str(error)})

    def _on_step(self, batch: Batch, step: ReverseStep) -> None:
        for x in [step.x, step.next_x] if self.num_taken == 0 else [step.next_x]:
            place = {"index": self.num_taken, "num_steps": self.watched.num_steps}
            shown = streamed_step(self.problem, self.job.graph, batch, x, **place)
            energies = shown.energies.tolist()
            self._put({"index": shown.index, "states": packed(shown.states), "energies": energies})
            self.num_taken += 1

    def _put(self, event: Content | None) -> None:
        self.loop.call_soon_threadsafe(self.waiting.put_nowait, event)


class EventResponse(StreamingResponse):
    """Sends events. If the client leaves, even before the first event or during one, the job ends."""

    def __init__(self, events: AsyncGenerator[str, None], job: Job, queue: DeviceQueue) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self.events, self.job, self.queue = events, job, queue

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until all events are sent or nobody listens."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if not self.job.result.done():
                self.queue.abandon(self.job)
            await self.events.aclose()


def shown_states(solution: Solution) -> Content:
    """The final states of all samples, and the nodes of the answer."""
    return {"states": packed(solution.states), "chosen": packed(solution.chosen[:, None])[0]}


def packed(states: NDArray[np.bool_]) -> list[str]:
    """For each sample, the states of its nodes as bits, most significant first, in base64. [num_nodes, S].

    >>> packed(np.array([[True], [False], [True]]))
    ['oA==']
    """
    return [base64.b64encode(row.tobytes()).decode() for row in np.packbits(states.T, axis=1)]


def as_text(kind: str, content: Content) -> str:
    """One event as text.

    >>> as_text("error", {"error": "no"})
    'event: error\\ndata: {"error": "no"}\\n\\n'
    """
    return f"event: {kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n"
