"""The addresses of the server: the page, the API, and what operators look at."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from diffuco.foundation.errors import InputError
from diffuco.foundation.version import __version__
from diffuco.foundation.wording import as_utf8
from diffuco.graphs.by_size import rows_per_batch
from diffuco.graphs.datasets import available_cores
from diffuco.web.events import DESCRIPTION, EventResponse, JobEvents, shown_states
from diffuco.web.guards import BodyLimit, Envelope, KnownHosts
from diffuco.web.limits import Limits, RefusalError, too_slow
from diffuco.web.messages import (
    About,
    Answer,
    Event,
    GraphRequest,
    GraphShown,
    Health,
    Models,
    SolveRequest,
    refusals,
)
from diffuco.web.metrics import CONTENT_TYPE, Metrics
from diffuco.web.queue import DeviceQueue, Job, Solved
from diffuco.web.reference import as_page
from diffuco.web.service import ReadGraph, Service, shown_graph

CONTENT_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def create_app(
    limits: Limits | None = None, *, models: Sequence[str] = (), device: str = "auto", hosts: Sequence[str] = ()
) -> FastAPI:
    """The server as an ASGI application; `models` are paths of models to serve beside the shipped ones.

    Requests have to name one of `hosts`, if any are given.
    """
    limits = limits or Limits()
    service, metrics = Service(limits, models, device), Metrics()
    queue = DeviceQueue(
        service.device,
        max_waiting=limits.max_waiting,
        max_rows=rows_per_batch(service.device),
        metrics=metrics,
        # An exact solver has up to eight threads of its own.
        num_threads=max(2, available_cores() // 4) if service.device.type == "cpu" else 1,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        queue.start()
        yield
        await anyio.to_thread.run_sync(queue.close)

    # FastAPI's own documentation pages load scripts from other sites.
    app = FastAPI(
        title="diffuco",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.limits, app.state.queue = limits, queue
    app.add_middleware(BodyLimit, limits=limits)
    if hosts:
        app.add_middleware(KnownHosts, hosts=hosts)
    app.add_middleware(Envelope, metrics=metrics)
    _add_refusals(app)
    _add_pages(app)
    _add_operations(app, queue, metrics)
    _add_api(app, service, queue)
    _add_reference(app)
    return app


def _add_api(app: FastAPI, service: Service, queue: DeviceQueue) -> None:
    limits = service.limits

    @app.get("/api/about", response_model=About, tags=["what there is"])
    async def about() -> Response:
        """The problems, text formats and limits of this server."""
        return JSONResponse(service.about)

    @app.get("/api/models", response_model=Models, tags=["what there is"])
    async def models() -> Response:
        """The models that requests may name."""
        return JSONResponse(service.models)

    @app.post("/api/graph", response_model=GraphShown, responses=refusals(400, 408, 413, 422), tags=["solving"])
    def graph(body: GraphRequest) -> Response:
        """Read or generate a graph and return its nodes and edges, to look at before solving."""
        return JSONResponse(shown_graph(service.read_graph(body.graph)))

    @app.post("/api/solve", response_model=Answer, responses=refusals(400, 408, 413, 422, 429, 503), tags=["solving"])
    async def solve(body: SolveRequest, request: Request) -> Response:
        """Solve a graph. Waiting requests that differ only in their graphs are solved as one batch."""
        read, job = await anyio.to_thread.run_sync(_prepare, service, body)
        queue.submit(job)
        try:
            solved = await _result(job, limits.max_seconds, _gone(request))
        finally:
            if not job.result.done():
                queue.abandon(job)
        answer = await anyio.to_thread.run_sync(service.answer, body, read, solved)
        queue.metrics.solved.labels(body.problem).inc()
        return JSONResponse(answer)

    @app.post(
        "/api/solve/stream",
        response_class=StreamingResponse,
        responses={
            200: {"description": DESCRIPTION, "content": {"text/event-stream": {"schema": Event.model_json_schema()}}},
            **refusals(400, 408, 413, 422, 429, 503),
        },
        tags=["solving"],
    )
    async def stream(body: SolveRequest) -> Response:
        """Draw samples of one graph with a model and report every step as a server-sent event."""
        read, job = await anyio.to_thread.run_sync(_prepare, service, body, True)
        service.check_watchable(read.graph, job.options)
        events = JobEvents(job, service.watched(job.options))
        ahead = queue.submit(job)

        def last(solved: Solved) -> dict[str, Any]:
            return service.answer(body, read, solved) | shown_states(solved.solution)

        return EventResponse(events.tell(queue.metrics, limits.max_seconds, ahead, last), job, queue)


def _prepare(service: Service, body: SolveRequest, is_watched: bool = False) -> tuple[ReadGraph, Job]:
    """Read the request; whatever can be refused is refused here, before the device is used."""
    read = service.relevant(body.problem, service.read_graph(body.graph))
    return read, Job(read.graph, service.options(body, read.graph, is_watched=is_watched), body.seed)


async def _result(job: Job, max_seconds: float, gone: "asyncio.Task[None]") -> Solved:
    """What the device finds, unless the time runs out or the client leaves first."""
    result = asyncio.wrap_future(job.result)
    waiting: list[asyncio.Future[Any]] = [result, gone]
    try:
        await asyncio.wait(waiting, timeout=max_seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    if result.done():
        return result.result()
    raise too_slow(max_seconds)


def _gone(request: Request) -> "asyncio.Task[None]":
    """A task that ends when the client closes the connection."""

    async def wait() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return asyncio.create_task(wait())


def _add_pages(app: FastAPI) -> None:
    """Serve the files of the page. They are read once, so that no request ever reads from the disk."""
    for file in files("diffuco.web").joinpath("static").iterdir():
        kind = CONTENT_TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/static/{file.name}"
            app.add_api_route(path, _serve(file.read_bytes(), kind), methods=["GET"], include_in_schema=False)


def _add_reference(app: FastAPI) -> None:
    """The API for people, from the same description that /openapi.json gives to programs."""
    page = _serve(as_page(app.openapi()).encode(), "text/html")
    app.add_api_route("/docs", page, methods=["GET"], include_in_schema=False)


def _serve(content: bytes, kind: str) -> Callable[[], Response]:
    headers = {"Cache-Control": "no-cache"}
    return lambda: Response(content, media_type=kind, headers=headers)


def _add_operations(app: FastAPI, queue: DeviceQueue, metrics: Metrics) -> None:
    @app.get("/healthz", response_model=Health, tags=["operation"])
    async def healthz() -> Response:
        """Whether the server is running."""
        return JSONResponse({"status": "ok", "waiting": len(queue.waiting), "running": len(queue.running)})

    @app.get("/metrics", response_class=Response, tags=["operation"])
    async def show_metrics() -> Response:
        """What the server counts, for Prometheus."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)


def _add_refusals(app: FastAPI) -> None:
    """Every refusal has the same form: one line that says why."""

    def refuse(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
        return JSONResponse({"error": as_utf8(reason)}, status, headers)

    @app.exception_handler(RefusalError)
    async def on_refusal(request: Request, error: RefusalError) -> Response:
        return refuse(error.status, error.reason, error.headers)

    @app.exception_handler(InputError)
    async def on_bad_input(request: Request, error: InputError) -> Response:
        return refuse(422, str(error))

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        if isinstance(error.__context__, RefusalError):
            return refuse(error.__context__.status, error.__context__.reason)
        return refuse(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return refuse(400, "the body is not JSON; send an object as /openapi.json describes it")
        if "json" not in request.headers.get("content-type", ""):
            header = "Content-Type: application/json"
            return refuse(422, f"the body was not sent as JSON; add the header {header} (curl --json does)")
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return refuse(422, f"{place or 'body'}: {first['msg'].removeprefix('Value error, ')}")
