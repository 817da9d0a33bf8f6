"""A server of `diffuco serve` on this machine, for tests."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI

from diffuco.web.server import Server


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """Serve the app on a free port; gives its address."""
    server = Server(app, port=0, log_level="error", timeout_graceful_shutdown=1)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
