"""Writing files completely or not at all, locking them, and converting values to what JSON can hold."""

import glob
import hashlib
import math
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from diffuco.foundation.errors import InputError

ABANDONED_AFTER_S = 3600.0
"""A file of an unfinished write that nobody has touched for this long belongs to a run that was killed."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream that becomes the file `path`, flushed to disk, when the block ends without error.

    A reader, a crash or a second writer sees either the old content or the new, never a part of it. What a killed run
    has left of the same file is removed.
    """
    target = Path(os.path.realpath(path))
    _remove_abandoned(target)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.unfinished")
    try:
        with naming(path), unfinished.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error while a file is written name the file: a full disk does not say which."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _remove_abandoned(target: Path) -> None:
    """Remove unfinished copies of a file that no run writes any more."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.????????.unfinished"):
        with suppress(OSError):  # another run may have removed it first
            if time.time() - left.stat().st_mtime > ABANDONED_AFTER_S:
                left.unlink()


def lock(path: Path) -> FileLock:
    """Lock a file or folder for this process until it is released; raises InputError if another process holds it.

    The lock is a file in the temporary folder, so nothing is left next to the user's files.
    """
    folder = Path(tempfile.gettempdir()) / "diffuco-locks"
    folder.mkdir(exist_ok=True)
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    held = FileLock(folder / name, thread_local=False, mode=0o666)
    try:
        held.acquire(timeout=0)
    except Timeout:
        raise InputError(f"{path}: another run is writing to it; wait, or choose another path") from None
    return held


def finite(value: Any) -> Any:
    """The value with None instead of infinity and NaN, which JSON does not have.

    >>> finite({"gap": float("nan"), "sizes": [1, 2.5]})
    {'gap': None, 'sizes': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
