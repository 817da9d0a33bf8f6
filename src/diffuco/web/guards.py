"""What every request passes first: limits on the size and speed of its body, safe headers, a counter and a log."""

import asyncio
import logging
import secrets
import time
from collections.abc import Collection, MutableMapping
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diffuco.web.limits import Limits, RefusalError
from diffuco.web.metrics import Metrics

access = logging.getLogger("diffuco.web.access")
"""A line for every request: id, client, method, path, status (0 if the client left), milliseconds."""
failures = logging.getLogger("uvicorn.error")
"""Tracebacks."""
MAX_LOGGED = 200
"""Longest path in a line."""

HEADERS = [
    # The page needs nothing from other sites, so the browser must not load anything from them.
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


class BodyLimit:
    """Refuses a body that is too large or too slow, and keeps nothing beyond the limit."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the body while it is read."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most, size, is_complete = self.limits.max_body_bytes, 0, False
        ends = asyncio.get_running_loop().time() + self.limits.max_seconds
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        too_large = RefusalError(413, f"the body is larger than {most} bytes; send a smaller graph")

        async def counted() -> Message:
            nonlocal size, is_complete
            if is_complete:
                return await receive()
            if declared.isdigit() and int(declared) > most:
                raise too_large
            try:
                async with asyncio.timeout_at(ends):
                    message = await receive()
            except TimeoutError:
                raise RefusalError(408, "the body did not arrive in time; send it without pauses") from None
            size += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if size > most:
                raise too_large
            return message

        await self.app(scope, counted, send)


class KnownHosts:
    """Refuses requests that name another host: a page of another site could have its own name lead to this machine."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compare the host without its port."""
        if scope["type"] == "http":
            named = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            host = named.lower().rpartition("]")[0].lstrip("[") or named.lower().partition(":")[0]
            if host not in self.hosts:
                refusal = JSONResponse(
                    {"error": f"this server answers to {', '.join(self.hosts)} only; use one of these names"}, 421
                )
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


class Envelope:
    """Adds the headers that keep browsers safe and an id, and counts and logs answers by address and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers and count when the answer starts; log when it ends."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, started, status = secrets.token_hex(8), time.perf_counter(), 0

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [*HEADERS, (b"x-request-id", request_id.encode())]
                message["headers"] = [*message.get("headers", []), *own]
                # Count known addresses only, or anybody could create new counters.
                path = getattr(scope.get("route"), "path", "other")
                self.metrics.requests.labels(path, str(status)).inc()
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            failures.exception("request %s failed", request_id)
            if status:
                raise
            reason = f"the server failed; its log says why, at the request {request_id}"
            await JSONResponse({"error": reason}, 500)(scope, receive, watched)
        finally:
            path = scope.get("raw_path", b"")[:MAX_LOGGED].decode("ascii", "backslashreplace")
            client, milliseconds = (scope.get("client") or ["-"])[0], 1000 * (time.perf_counter() - started)
            access.info("%s %s %s %s %s %.0f ms", request_id, client, scope["method"], path, status, milliseconds)
