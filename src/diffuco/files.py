"""Files that are there whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream that becomes the file `path`, safe on disk, when the block ends without error.

    A reader, a crash or a second writer sees the old content or the new, never a part of it.
    """
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.unfinished")
    try:
        with unfinished.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
