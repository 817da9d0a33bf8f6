"""The record of an item: rows of the paper's numbers beside ours, each with its origin, kept as JSON.

A measured row replaces the one before. A row that cannot be measured here stays as it was, so that one record can hold
rows of several machines.
"""

import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import InputError
from diffuco.foundation.files import finite, replacing
from diffuco.foundation.provenance import hardware, source_commit

Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A row to measure: what is known beforehand, and how to measure the rest."""

    key: str
    """Name of the row within its item."""
    about: Row = field(default_factory=dict)
    """Labels and the paper's numbers."""
    measure: Callable[[], Row] | None = None
    """Returns our numbers, or raises an InputError that says what is missing. None: a system that we do not run.

    The numbers name their `hardware` if it is not the device asked for."""


def run_tasks(
    tasks: Sequence[Task], before: Sequence[Row], *, wanted: Callable[[Task, Row], bool], command: str, device: str
) -> Iterator[tuple[Task | None, list[Row]]]:
    """Measure the wanted tasks one after the other; yield each with all rows, first None with the rows as they are.

    Rows measured before stay, even those of methods that are not asked for now. Labels and the paper's numbers come
    from the code.
    """
    old = {row["key"]: row for row in before}
    rows = {task.key: _known(task, old.get(task.key, {})) for task in tasks}
    rows = _with_others(rows, before)
    yield None, list(rows.values())
    for task in tasks:
        if task.measure is not None and wanted(task, rows[task.key]):
            rows[task.key] = _measured(task, rows[task.key], command, device)
            yield task, list(rows.values())


def _known(task: Task, old: Row) -> Row:
    """A row before it is measured: its labels, and what was measured earlier."""
    row = {"key": task.key} | task.about
    if "ours" in old:
        return row | {"ours": old["ours"], "origin": old["origin"]}
    return row if task.measure is None else row | {"missing": "not measured yet"}


def _with_others(rows: dict[str, Row], before: Sequence[Row]) -> dict[str, Row]:
    """The rows, and those measured before under other keys, each after the row it followed."""
    order, all_rows = list(rows), dict(rows)
    previous = None
    for row in before:
        if "ours" in row and row["key"] not in rows:
            order.insert(order.index(previous) + 1 if previous in order else len(order), row["key"])
            all_rows[row["key"]] = row
        previous = row["key"]
    return {key: all_rows[key] for key in order}


def _measured(task: Task, row: Row, command: str, device: str) -> Row:
    assert task.measure is not None
    try:
        ours = task.measure()
    except InputError as error:
        return row if "ours" in row else row | {"missing": str(error)}
    measured = {name: value for name, value in row.items() if name != "missing"}
    where = origin(command, ours.pop("hardware", None) or hardware(pick_device(device)))
    return measured | {"ours": ours, "origin": where}


def origin(command: str, place: str) -> Row:
    """Where and when numbers were measured, by which command and source."""
    return {
        "hardware": place,
        "torch": torch.__version__,
        "commit": source_commit(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
    }


def read_rows(path: Path) -> list[Row]:
    """The rows of a record; none if there is no file."""
    try:
        rows: list[Row] = json.loads(path.read_text())["rows"]
        return rows
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not a record of experiments.reproduce; move it away and measure again") from None


def write_record(path: Path, item: str, title: str, rows: list[Row]) -> None:
    """Write a record, whole or not at all."""
    record = {"item": item, "title": title, "rows": finite(rows)}
    with replacing(path) as out:
        out.write((json.dumps(record, indent=1, allow_nan=False) + "\n").encode())
