"""Solutions as files: a text file with one node label per line, or JSON.

A text file begins with comments that describe the solution (`# problem: mis`). A label that a plain line cannot hold
(spaces at its ends, a line break, a leading `#` or `"`) is written as a JSON string. If the path ends in `.json`, the
file holds the object that `diffuco solve --json` prints.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import as_utf8
from diffuco.graphs.formats.output import open_for_writing
from diffuco.graphs.formats.source import Source, quoted
from diffuco.graphs.graph import Graph

TITLE = "# diffuco solution"


@dataclass(frozen=True, eq=False)
class SolutionFile:
    """The content of a solution file. Only `chosen` counts; the claims are for comparison."""

    chosen: NDArray[np.bool_]
    """[num_nodes] the nodes in the solution."""
    claims: dict[str, Any]
    """What else the file says, such as `problem` and `objective`. In text files all values are text."""


def write_solution(path: str | Path, record: dict[str, Any]) -> None:
    """Write the record of a solution (`Solution.to_dict()`), completely or not at all."""
    if _is_json(path):
        text = json.dumps(record, indent=1) + "\n"
    else:
        claims = {"problem": record["problem"], "graph": record["file"], "objective": record["objective"]}
        claims |= {
            "feasible": "yes" if record["feasible"] else "no",
            "found_by": record["found_by"],
            "seed": record["seed"],
        }
        header = [f"# {name}: {' '.join(str(value).split())}" for name, value in claims.items()]
        text = "\n".join([TITLE, *header, *map(label_line, record["solution"])]) + "\n"
    with open_for_writing(path) as out:
        out.write(as_utf8(text).encode())


def read_solution(path: str | Path, graph: Graph) -> SolutionFile:
    """Read a solution of a graph. A label that the graph does not have raises InputError, which names the line."""
    with Source(path) as source:
        index_of = {str(label): index for index, label in enumerate(graph.labels)}
        if len(index_of) < graph.num_nodes:
            raise InputError("two node labels of the graph look the same as text; rename one")
        claims, entries = _read_json(source) if _is_json(path) else _read_text(source)
        chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
        for place, label in entries:
            if label not in index_of:
                raise InputError(f"{place}: the graph has no node {quoted(label)}; do the two files belong together?")
            if chosen[index_of[label]]:
                raise InputError(f"{place}: node {quoted(label)} is listed twice; remove one")
            chosen[index_of[label]] = True
    return SolutionFile(chosen, claims)


def label_line(label: object) -> str:
    """A label as one line of text that reads back as the same text.

    >>> label_line(7), label_line("New York"), label_line("#1 ")
    ('7', 'New York', '"#1 "')
    """
    text = str(label)
    is_plain = text.isprintable() and text == text.strip() and text[:1] not in ("", "#", '"')
    return text if is_plain else json.dumps(text)


def _is_json(path: str | Path) -> bool:
    return str(path).lower().endswith(".json")


def _read_text(source: Source) -> tuple[dict[str, Any], Iterator[tuple[str, str]]]:
    claims: dict[str, Any] = {}
    entries: list[tuple[str, str]] = []
    for number, line in enumerate(_decoded(source).split("\n"), start=1):
        text = line.strip()
        if text.startswith("#"):
            name, separator, value = text[1:].partition(":")
            if separator:
                claims[name.strip()] = value.strip()
        elif text:
            entries.append((f"{source.shown}:{number}", _label(source, number, text)))
    return claims, iter(entries)


def _label(source: Source, number: int, text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        label = json.loads(text)
    except ValueError:
        raise source.error(f"{quoted(text)} is not a complete JSON string; close the quotes", number) from None
    return str(label)


def _read_json(source: Source) -> tuple[dict[str, Any], Iterator[tuple[str, str]]]:
    record = source.from_json(_decoded(source), "check the file")
    if not isinstance(record, dict) or not isinstance(record.get("solution"), list):
        raise source.error("it has no list 'solution'; give what `diffuco solve --json` prints for one graph")
    claims = {name: value for name, value in record.items() if name != "solution"}
    entries = ((f"{source.shown}: entry {i}", str(label)) for i, label in enumerate(record["solution"], start=1))
    return claims, entries


def _decoded(source: Source) -> str:
    problem = "this is not UTF-8 text; give a file written by `diffuco solve --output`"
    return source.decoded(b"".join(source.chunks()), problem)
