"""Processes for tests, forked from a server that has imported what they need: a fresh one takes seconds to do so."""

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

CONTEXT = multiprocessing.get_context("forkserver")
# Typer imports Pydantic with the first command.
CONTEXT.set_forkserver_preload(
    ["diffuco.cli.train", "diffuco.training.loop", "diffuco.graphs.kernels", "pydantic.type_adapter", "triton"]
)


def start(function: Callable[..., Any], *arguments: Any, output: Path, **environment: str) -> BaseProcess:
    """Call a function in a process of its own, which ends with what it returns and prints to a file."""
    with pytest.MonkeyPatch.context() as patch:  # a server that was told to interpret kernels could not compile them
        patch.delenv("TRITON_INTERPRET", raising=False)
        ensure_running()
    process = CONTEXT.Process(target=_call, args=(function, arguments, output, dict(os.environ) | environment))
    process.start()
    return process


def start_group(size: int, function: Callable[..., Any], *arguments: Any, folder: Path) -> str:
    """Call a function in several processes with the environment that torchrun gives them; gives what all print."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)} for rank in range(size)]
    outputs = [folder / f"rank-{rank}.txt" for rank in range(size)]
    processes = [
        start(function, *arguments, output=output, **place, **rank) for output, rank in zip(outputs, ranks, strict=True)
    ]
    for process in processes:
        process.join()
    printed = "".join(output.read_text() for output in outputs)
    assert [process.exitcode for process in processes] == [0] * size, printed
    return printed


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], output: Path, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with output.open("w") as stream:
        for descriptor in (1, 2):
            os.dup2(stream.fileno(), descriptor)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        try:
            sys.exit(function(*arguments))
        finally:
            sys.stdout.flush()
