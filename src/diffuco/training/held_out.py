"""Which of a user's own graphs a run learns from and which it never sees, in a file that anyone can check."""

import json
from pathlib import Path

from diffuco.foundation.errors import InputError
from diffuco.foundation.files import replacing
from diffuco.graphs.collection import SPLITS, Collection

FILE = "graphs.json"


def publish(folder: Path, graphs: Collection) -> None:
    """Write the name and digest of every graph, by split."""
    parts = {
        split: [{"name": graph.name, "digest": graph.digest} for graph in graphs.graphs(split)] for split in SPLITS
    }
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / FILE) as stream:
        stream.write((json.dumps({"digest": graphs.digest, "splits": parts}, indent=1) + "\n").encode())


def check_unchanged(folder: Path, graphs: Collection) -> None:
    """Refuse to resume a run on other graphs than it was started with."""
    try:
        before = json.loads((folder / FILE).read_text())["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{folder / FILE}: not readable; start the run anew in another folder") from None
    if before != graphs.digest:
        raise InputError(f"{folder}: this run was started with other graphs than {graphs.name} has now; restore them")
