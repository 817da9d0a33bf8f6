"""The HTTP server beneath the app: limits on connections and on silence, and a stop that answers whoever waits."""

import asyncio
from functools import partial
from socket import socket
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from diffuco.web.limits import Limits


class Connection(H11Protocol):
    """A connection that is closed if there are too many, or if it sends no complete request for a while."""

    def __init__(self, *args: Any, limits: Limits, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse it, or begin to listen."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            transport.abort()
        else:
            self._close_if_silent_since(self.cycle, is_first=True)

    def _close_if_silent_since(self, last_request: object, is_first: bool = False) -> None:
        """Close if no headers were complete since the last look, which was `max_header_seconds` ago."""
        if self.transport.is_closing():
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is last_request and not is_first:
            self.transport.close()
            return
        self.loop.call_later(self.limits.max_header_seconds, self._close_if_silent_since, self.cycle)


class Server(uvicorn.Server):
    """A server that tells waiting clients when it stops."""

    def __init__(self, app: FastAPI, **settings: Any) -> None:
        connection: Any = partial(Connection, limits=app.state.limits)
        super().__init__(uvicorn.Config(app, http=connection, access_log=False, **settings))
        self.queue = app.state.queue

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Answer whoever waits, then let the connections end."""
        self.queue.refuse_all()
        await super().shutdown(sockets)
