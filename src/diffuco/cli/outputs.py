"""What `diffuco solve` prints and writes: the record, the table and the names of the files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diffuco.cli.console import make_folder, print_result
from diffuco.cli.inputs import Inputs, LoadedGraph
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import as_utf8, counted

if TYPE_CHECKING:
    from rich.table import Table

    from diffuco.solution.result import Solution

MAX_LABEL_CHARACTERS = 300
OF_EACH = ("objective", "feasible", "violations", "optimal", "gap", "found_by", "solution")
"""What a record says of each of several solutions."""


def as_record(loaded: LoadedGraph, found: "Solution | list[Solution]") -> dict[str, Any]:
    """What `--json` prints. The file is named as the user named it, in UTF-8; reading it counts as loading.

    Of several solutions, the record is that of the first, with a list of all.
    """
    solution = found[0] if isinstance(found, list) else found
    record = solution.to_dict() | {"file": as_utf8(loaded.file)}
    record["seconds"] = record["seconds"] | {"load": record["seconds"]["load"] + loaded.seconds}
    if isinstance(found, list):
        record["solutions"] = [{name: one.to_dict()[name] for name in OF_EACH} for one in found]
    return record


def rows_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record per solution, where graphs have several."""
    return [record | one for record in records for one in record.get("solutions", [record])]


def solution_paths(inputs: Inputs, output: Path) -> list[Path]:
    """One path per graph: the given file or, for several graphs, distinct names in the given folder."""
    if inputs.is_single and not output.is_dir():
        make_folder(output.absolute().parent)
        return [output]
    is_name_of_file = output.suffix and not output.suffix[1:].isdecimal()  # a folder may be called v1.2
    if output.is_file() or (is_name_of_file and not output.is_dir()):
        raise InputError(f"{output}: several solutions go into a folder; give one, or a .jsonl or .parquet file")
    make_folder(output)
    paths: list[Path] = []
    for loaded in inputs.graphs:
        name = loaded.graph.name.replace("/", "-") or "graph"
        candidates = [f"{name}.sol", *(f"{name}.{number}.sol" for number in range(2, len(inputs.graphs) + 1))]
        paths.append(next(output / candidate for candidate in candidates if output / candidate not in paths))
    return paths


def print_solutions(records: list[dict[str, Any]], title: str, *, show_mean: bool) -> None:
    """Print a row per solution, with the mean of the samples on request; for a single graph also the labels."""
    rows = rows_of(records)
    print_result(_table(rows, title, len(records[0]["objectives"]) if show_mean else None))
    if len(records) == 1:
        for row in rows:
            print_result(_solution_line(row))


def _table(records: list[dict[str, Any]], title: str, num_samples: int | None) -> "Table":
    from rich.table import Table

    mean_heading = () if num_samples is None else (f"mean of {num_samples}",)
    # A proven objective is its own bound; the column is for those that are not.
    has_bounds = any(record["bound"] is not None and not record["optimal"] for record in records)
    bound_heading = ("bound (gap)",) if has_bounds else ()
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("graph", overflow="fold")
    for heading in ("nodes", "edges", "objective", *bound_heading, *mean_heading, "feasible", "seconds"):
        table.add_column(heading, justify="right")
    for record in records:
        feasible = (
            ("yes, optimal" if record["optimal"] else "yes")
            if record["feasible"]
            else f"NO: {record['violations']} violated"
        )
        mean = f"{sum(record['objectives']) / len(record['objectives']):.6g}"
        table.add_row(
            record["file"],
            *(str(record[name]) for name in ("nodes", "edges", "objective")),
            *([_bound(record)] if has_bounds else []),
            *([] if num_samples is None else [mean]),
            *(feasible, f"{sum(record['seconds'].values()):.2f}"),
        )
    return table


def _bound(record: dict[str, Any]) -> str:
    """The bound, and how much better than the objective a solution could still be, as a share of the objective.

    >>> _bound({"bound": 21.0, "gap": 0.05}), _bound({"bound": 1, "gap": None}), _bound({"bound": None, "gap": None})
    ('21 (5.0 %)', '1', '')
    """
    if record["bound"] is None:
        return ""
    text = f"{record['bound']:.6g}"
    return text if record["gap"] is None else f"{text} ({100 * record['gap']:.1f} %)"


def _solution_line(record: dict[str, Any]) -> str:
    """The labels of the solution; for a cut, of one side.

    >>> _solution_line({"problem": "mis", "nodes": 3, "solution": ["Ann", "New York"]})
    '2 nodes: Ann "New York"'
    >>> _solution_line({"problem": "max-cut", "nodes": 3, "solution": [7]})
    '1 node on one side of the cut, 2 on the other; the one side: 7'
    """
    labels, shown, length = record["solution"], [], 0
    for label in labels:
        text = _shown_label(label)
        length += len(text) + 1
        if length > MAX_LABEL_CHARACTERS:
            break
        shown.append(text)
    rest = len(labels) - len(shown)
    more = f" ... and {rest} more (all of them with --output FILE or --json)" if rest else ""
    start = counted(len(labels), "node")
    if record["problem"] == "max-cut":
        start += f" on one side of the cut, {record['nodes'] - len(labels):,} on the other; the one side"
    return f"{start}: {' '.join(shown)}{more}"


def _shown_label(label: object) -> str:
    """A label that cannot be mistaken for two: one with blanks is quoted."""
    from diffuco.solution.files import label_line

    text = label_line(label)
    return text if len(text.split()) == 1 or text.startswith('"') else json.dumps(text, ensure_ascii=False)
