"""`diffuco serve`: a page on which to watch the diffusion, and an HTTP API."""

import os
import socket
import sys
from typing import Annotated

import typer

from diffuco.cli.console import print_note, print_result
from diffuco.cli.options import Device, examples
from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint

LOOPBACK = ("127.0.0.1", "localhost", "::1")
Model = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="PATH", help="A model of your own beside the shipped ones; may be repeated."),
]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines reach it.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)]
MaxNodes = Annotated[int, typer.Option(help="Most nodes of a graph.", min=1)]
MaxSamples = Annotated[int, typer.Option(help="Most samples that a request may ask for.", min=1)]
MaxWaiting = Annotated[int, typer.Option(help="Most requests that may wait; further ones get status 429.", min=1)]
MaxBody = Annotated[int, typer.Option(help="Largest request, in MiB.", min=1)]
MaxSeconds = Annotated[float, typer.Option(help="Most seconds a request may take, including its wait.", min=0.1)]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=examples(
            "diffuco serve",
            "diffuco serve --port 8080 --model runs/mine/best.safetensors",
            "diffuco serve --host 0.0.0.0 --max-nodes 2000 --max-seconds 20",
            'curl localhost:8000/api/solve --json \'{"problem": "mis", "graph": {"kind": "ba"}}\'',
        )
    )(serve)


def serve(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    model: Model = None,
    device: Device = "auto",
    max_nodes: MaxNodes = 50_000,
    max_samples: MaxSamples = 32,
    max_waiting: MaxWaiting = 256,
    max_body: MaxBody = 8,
    max_seconds: MaxSeconds = 60.0,
) -> None:
    """Watch and solve in the browser, or over HTTP.

    Serves a page on which to watch the reverse diffusion, and an API to solve graphs. Only this machine can reach it
    unless --host says otherwise. There is no login: before you open it to others, put it behind a server that has one.
    """
    try:
        from diffuco.web.app import create_app
        from diffuco.web.server import Server
    except ImportError as error:
        if error.name is not None and error.name.startswith("diffuco"):
            raise
        raise InputError(f"serving needs {error.name}; {install_hint('serve')}") from None
    from diffuco.web.limits import Limits

    limits = Limits(
        max_nodes=max_nodes,
        max_samples=max_samples,
        max_waiting=max_waiting,
        max_body_bytes=max_body * 2**20,
        max_seconds=max_seconds,
    )
    _leave_a_core()
    # On this machine alone, a request that names another host comes from a page of another site.
    app = create_app(limits, models=model or [], device=device, hosts=LOOPBACK if host in LOOPBACK else ())
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    print_result(f"diffuco is at http://{shown}:{listener.getsockname()[1]} (stop with Ctrl+C)")
    sys.stdout.flush()
    if host not in LOOPBACK:
        print_note("other machines can reach this address, and there is no login")
    _log_requests()
    with listener:
        Server(app, log_level="warning", timeout_graceful_shutdown=2).run([listener])


def _log_requests() -> None:
    """A line for every request on standard error, with the time."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    access = logging.getLogger("diffuco.web.access")
    access.handlers, access.propagate = [handler], False


def _leave_a_core() -> None:
    """Keep one core free to read and answer requests: compute threads that share a core slow down the whole batch."""
    import torch

    from diffuco.graphs.datasets import available_cores

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, available_cores() - 1))


def _listen(host: str, port: int) -> socket.socket:
    """Open the socket first, so that a port in use is reported before anything else."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise InputError(f"cannot listen on {host} port {port} ({error.strerror or error}); try another port") from None
