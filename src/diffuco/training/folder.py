"""The folder of a run, which belongs to one training at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diffuco.foundation.distributed import leads
from diffuco.foundation.errors import InputError
from diffuco.foundation.files import lock
from diffuco.graphs.collection import Collection
from diffuco.training.held_out import check_unchanged
from diffuco.training.resume import FILE


@contextmanager
def claimed(folder: Path, graphs: Collection | None, *, resume: bool) -> Iterator[None]:
    """Hold the folder while a run writes into it; one that is in use, or not what the user thinks, is an InputError.

    The lock ends with the process, however that ends. Of several processes that share a run, the leader holds it.
    """
    if resume and not (folder / FILE).exists():
        raise InputError(f"{folder / FILE}: no such file; start the run without --resume or check the path")
    folder.mkdir(parents=True, exist_ok=True)
    held = lock(folder) if leads() else None
    try:
        if (folder / FILE).exists() and not resume:
            raise InputError(f"{folder} already holds a run; continue it with --resume or choose another --out")
        if resume and graphs is not None:
            check_unchanged(folder, graphs)
        yield
    finally:
        if held is not None:
            held.release()
