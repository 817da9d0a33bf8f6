"""Where output goes: results to standard output, everything else to standard error, one line per message."""

import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.foundation.files import finite
from diffuco.foundation.progress import Progress, following
from diffuco.foundation.wording import as_utf8

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as Bar

PIPE_WIDTH = 160
"""Columns of a table that is not shown on a terminal: wide enough that nothing is cut."""
SHOWN_AFTER_S = 2.0
"""Seconds after which a search says what it is doing."""


def print_result(result: "RenderableType") -> None:
    """Print text or a table on standard output."""
    if isinstance(result, str):
        result = as_utf8(result)
    _console().print(result, soft_wrap=isinstance(result, str), markup=False, highlight=False)


def print_json(record: Any) -> None:
    """Print a value as one line of JSON on standard output."""
    print(json.dumps(finite(record), allow_nan=False))


def print_error(message: object) -> None:
    """Print `error: ...` as exactly one line on standard error."""
    _print_line("error", message)


def print_note(message: object) -> None:
    """Print `note: ...` as one line on standard error."""
    _print_line("note", message)


def print_warning(message: object) -> None:
    """Print `warning: ...` as one line on standard error."""
    _print_line("warning", message)


def progress_bar() -> "Bar":
    """A progress bar on standard error. It appears only on a terminal and disappears when done."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    return Bar(console=Console(stderr=True), transient=True, disable=not shows_progress())


@contextmanager
def search_progress() -> Iterator[None]:
    """What a search inside is doing, for how long and the best objective so far, once it has taken two seconds.

    A line on standard error. It appears only on a terminal and disappears when done.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True, disable=not shows_progress()) as bar:
        task = bar.add_task("solving", total=None, visible=False)
        best = ""

        def show(seen: Progress) -> None:
            nonlocal best
            if seen.best is not None:
                best = f", best so far {seen.best:.10g}"
            bar.update(task, description=f"{seen}{best}")

        timer = threading.Timer(SHOWN_AFTER_S, lambda: bar.update(task, visible=True))
        timer.daemon = True
        timer.start()
        try:
            with following(show) if shows_progress() else nullcontext():
                yield
        finally:
            timer.cancel()


def shows_progress() -> bool:
    """Whether standard error is a terminal; progress bars would clutter a log file."""
    return sys.stderr.isatty()


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show every `GraphWarning` as one line `warning: ...` on standard error, and other warnings as Python does."""
    with warnings.catch_warnings():
        as_python_does = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, GraphWarning):
                print_warning(message)
            else:
                as_python_does(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


@contextmanager
def one_line_notes() -> Iterator[None]:
    """Show what the package logs, such as how much memory a graph needs, as lines `note: ...` on standard error."""
    log, handler = logging.getLogger("diffuco"), logging.Handler(logging.INFO)
    handler.emit = lambda record: print_note(record.getMessage())  # type: ignore[method-assign]
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


def make_folder(path: Path) -> Path:
    """Create a folder for results, with its parents; raises InputError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot create this folder ({error.strerror}); choose another path") from error
    if not os.access(path, os.W_OK):
        raise InputError(f"{path}: no permission to write into this folder; choose another path")
    return path


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written before the work, not after it; its folder is made."""
    make_folder(path.absolute().parent)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give a file")


def check_not_read(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse to write over a graph that is read."""
    read = {path.resolve() for path in inputs}
    for path in outputs:
        if path.resolve() in read:
            raise InputError(f"{path}: this graph would be overwritten; give --output another name")


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write what a command has measured as JSON."""
    from diffuco.graphs.formats.output import open_for_writing

    with open_for_writing(path) as out:
        out.write((json.dumps(finite(record), allow_nan=False, indent=1) + "\n").encode())


def _print_line(kind: str, message: object) -> None:
    sys.stdout.flush()
    print(as_utf8(f"{kind}: {' '.join(str(message).split())}"), file=sys.stderr)


def _console() -> "Console":
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=PIPE_WIDTH)
