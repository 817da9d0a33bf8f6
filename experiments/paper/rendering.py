"""Records as Markdown: the sections of experiments/README.md, each between its own marks."""

import re
import textwrap
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from diffuco.foundation.files import replacing
from diffuco.foundation.wording import counted, with_error
from diffuco.pretrained import load_model, model_files
from experiments.paper.ablations import over_seeds
from experiments.paper.records import Row
from experiments.paper.reported import GSET_GROUPS

Cell = Callable[[Row], str]

WIDTH = 120
"""Characters in a line of a page."""


def benchmark_table(rows: Sequence[Row]) -> str:
    """Tables 1, 3 and 6: one table per benchmark."""
    letters = _letters(rows)
    parts = []
    for name in dict.fromkeys(row["benchmark"] for row in rows):
        cells: dict[str, Cell] = {
            name: _method,
            "type": lambda row: row["kind"],
            "paper": lambda row: _value(row.get("paper")),
            "its gap": lambda row: _percent(row.get("paper", {}).get("gap")),
            "ours": lambda row: _value(row.get("ours")) or _missing(row),
            "our gap": lambda row: _gap(row.get("ours")),
            "best of samples": lambda row: _percent(_of_several(row).get("gap_of_best")),
            "graphs x samples, models": lambda row: _counts(row.get("ours")),
            "s per graph: paper": lambda row: _seconds(row.get("paper")),
            "ours ": lambda row: _seconds(row.get("ours")),
            "run": lambda row: letters.get(_origin(row), ""),
        }
        parts.append(_table([row for row in rows if row["benchmark"] == name], cells))
    return "\n".join([*parts, _origins(letters)])


def ratio_table(rows: Sequence[Row]) -> str:
    """Fig. 2 left: AR* by p."""
    letters = _letters(rows)
    places = sorted({point["x"] for row in rows for side in ("paper", "ours") for point in _points(row, side)})
    cells: dict[str, Cell] = {"AR* by p": lambda row: row["method"] + (" (r)" if row["side"] == "paper" else "")}
    cells |= {f"{place:.3g}": partial(_point, place) for place in places}
    cells |= {
        "s per graph": lambda row: _seconds(row.get(row["side"])),
        "run": lambda row: letters.get(_origin(row), "") if row["side"] == "ours" else "",
        "": lambda row: _missing(row) if row["side"] == "ours" else "",
    }
    sides = [
        row | {"side": side}
        for row in rows
        for side in ("paper", "ours")
        if side in row or (side == "ours" and "missing" in row)
    ]
    return "\n".join([_table(sides, cells), _origins(letters)])


def sweep_table(name: str, label: str) -> Callable[[Sequence[Row]], str]:
    """Fig. 2 right and Fig. 3 left: a line per value of the setting `name`."""
    cells: dict[str, Cell] = {
        label: lambda row: f"{row[name]}, {counted(row['rounds'], 'round')}" if "rounds" in row else str(row[name]),
        "steps": lambda row: str(row.get("ours", {}).get("steps", "")),
        "mean gap": lambda row: _gap(row.get("ours")) or _missing(row),
        "gap of the best": lambda row: _percent(row.get("ours", {}).get("gap_of_best")),
        "graphs x samples, models": lambda row: _counts(row.get("ours")),
        "s per graph": lambda row: _seconds(row.get("ours")),
    }
    return partial(_table_with_runs, cells)


def ablation_table(rows: Sequence[Row]) -> str:
    """Fig. 2 middle: a line per number of steps, a column per noise and temperature."""
    letters = _letters(rows)
    by_place = {(row["noise"], row["temperature"], row["num_steps"]): row for row in over_seeds(rows)}

    def show(noise: str, temperature: str, line: Row) -> str:
        return _ablation(by_place.get((noise, temperature, line["num_steps"]), {}), letters)

    cells: dict[str, Cell] = {"steps": lambda line: str(line["num_steps"])}
    for noise, temperature in dict.fromkeys((row["noise"], row["temperature"]) for row in rows):
        cells[f"{noise} noise, {temperature} temperature"] = partial(show, noise, temperature)
    lines = [{"num_steps": steps} for steps in dict.fromkeys(row["num_steps"] for row in rows)]
    return "\n".join([_table(lines, cells), _origins(letters)])


def likelihood_table(rows: Sequence[Row]) -> str:
    """Fig. 3 right: where the curve begins and where it ends."""
    cells: dict[str, Cell] = {
        "noise": lambda row: row["noise"],
        "temperature": lambda row: f"{row['ours']['temperature']:g}" if "ours" in row else _missing(row),
        "first": lambda row: _ends(row, 0),
        "last": lambda row: _ends(row, -1),
    }
    return _table_with_runs(cells, rows)


def query_table(rows: Sequence[Row]) -> str:
    """Table 4."""

    def number(row: Row, name: str) -> str:
        if "ours" not in row:
            return ""
        if f"{name}_seconds_per_graph" not in row["ours"]:
            return "time unknown"
        count = row["ours"].get(f"n_query_{name}")
        return "never" if count is None else f"{count:,.0f}"

    cells: dict[str, Cell] = {
        "benchmark": lambda row: row["benchmark"],
        "paper": lambda row: f"{row['paper']['n_query']:,}" if row["paper"].get("n_query") else "",
        "against the paper's Gurobi (r)": lambda row: number(row, "gurobi") or _missing(row),
        "against our reference": lambda row: number(row, "reference"),
        "training minutes": lambda row: f"{row['ours']['training_minutes']:g}" if "ours" in row else "",
        "s per graph": lambda row: _seconds(row.get("ours")),
    }
    return _table_with_runs(cells, rows)


def gset_table(rows: Sequence[Row]) -> str:
    """Table 5: a line per method, a column per group."""
    letters = _letters(rows)
    by_place = {(row["method"], row["group"]): row for row in rows}

    def show(group: str, line: Row) -> str:
        return _distance(by_place.get((line["method"], group), {}), line["side"], letters)

    cells: dict[str, Cell] = {"mean distance to the best known cut": lambda line: line["label"]}
    cells |= {f"{group} nodes": partial(show, group) for group in GSET_GROUPS}
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        of_method = [row for row in rows if row["method"] == method]
        if any("paper" in row for row in of_method):
            lines.append({"method": method, "side": "paper", "label": f"{method} (r)"})
        if any("ours" in row or "missing" in row for row in of_method):
            lines.append({"method": method, "side": "ours", "label": f"{method}, ours"})
    return "\n".join([_table(lines, cells), _origins(letters)])


def write_section(page: Path, name: str, heading: str, text: str) -> None:
    """Put a section into a page, in place of the one of this name or at the end."""
    section = f"<!-- {name} -->\n## {heading}\n\n{text.rstrip()}\n<!-- end of {name} -->"
    old = page.read_text() if page.exists() else "# Experiments\n"
    pattern = re.compile(rf"<!-- {re.escape(name)} -->\n.*?<!-- end of {re.escape(name)} -->", re.DOTALL)
    new = pattern.sub(lambda _: section, old) if pattern.search(old) else f"{old.rstrip()}\n\n{section}\n"
    with replacing(page) as out:
        out.write(new.encode())


def wrapped(text: str) -> str:
    """The lines of a text, broken where they are too long but not inside code or the words of a link.

    >>> print(wrapped("- " + "word " * 23 + "`two words`"))
    - word word word word word word word word word word word word word word word word word word word word word word word
      `two words`
    """
    return "\n".join(_wrapped(line) for line in text.splitlines())


def _wrapped(line: str) -> str:
    whole = re.sub(r"`[^`]*`|\[[^]]*\]", lambda span: span[0].replace(" ", "\xa0"), line)
    indent = "  " if line.startswith("- ") else ""
    wrapper = textwrap.TextWrapper(WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(whole).replace("\xa0", " ")


def _table_with_runs(cells: dict[str, Cell], rows: Sequence[Row]) -> str:
    """A table whose last column is a letter for the run, explained below the table."""
    letters = _letters(rows)
    cells = cells | {"run": lambda row: letters.get(_origin(row), "")}
    return "\n".join([_table(rows, cells), _origins(letters)])


def _table(rows: Sequence[Row], cells: dict[str, Cell]) -> str:
    """A table without the columns that have no entry."""
    shown = {name: [cell(row) for row in rows] for name, cell in cells.items()}
    shown = {name: column for name, column in shown.items() if any(column)}
    lines = ["| " + " | ".join(name.strip() for name in shown) + " |", "| " + " | ".join("---" for _ in shown) + " |"]
    lines += ["| " + " | ".join(line) + " |" for line in zip(*shown.values(), strict=True)]
    return "\n".join(lines) + "\n"


def _method(row: Row) -> str:
    """The method, marked (r) if its numbers are only reported."""
    return f"{row['method']}{'' if 'ours' in row or 'missing' in row else ' (r)'}"


def _value(numbers: Row | None) -> str:
    if not numbers:
        return ""
    mean = numbers["mean"] if "mean" in numbers else numbers["value"]
    text = with_error(mean, numbers.get("error"))
    return text + (f", {numbers['cut_over_edges']:.4f} of edges" if "cut_over_edges" in numbers else "")


def _missing(row: Row) -> str:
    return f"missing: {row['missing']}" if "missing" in row else ""


def _of_several(row: Row) -> Row:
    """Our numbers if more than one sample was drawn."""
    ours: Row = row.get("ours", {})
    return ours if ours.get("samples", 1) > 1 else {}


def _gap(numbers: Row | None) -> str:
    if not numbers or numbers.get("gap") is None:
        return ""
    error = numbers.get("gap_error")
    return with_error(100 * numbers["gap"], None if error is None else 100 * error, " %") + _share(numbers)


def _share(numbers: Row) -> str:
    """How many gaps are to references and proven optima, unless all are."""
    referenced, proven, graphs = numbers["referenced"], numbers["proven"], numbers["graphs"]
    notes = [f"of {referenced}"] if referenced < graphs else []
    notes += [f"{proven} proven"] if proven < referenced else []
    return f" ({', '.join(notes)})" if notes else ""


def _percent(number: float | None) -> str:
    return "" if number is None else with_error(100 * number, None, " %")


def _seconds(numbers: Row | None) -> str:
    seconds = (numbers or {}).get("seconds_per_graph")
    return "" if seconds is None else f"{seconds:.2g}" if seconds < 100 else f"{seconds:.0f}"


def _counts(numbers: Row | None) -> str:
    if not numbers:
        return ""
    samples = f" x {numbers['samples']}" if numbers.get("samples", 1) > 1 else ""
    models = f", {numbers['seeds']}" if "models" in numbers else ""
    proven = f", {numbers['proven']} proven by {', '.join(numbers['solvers'])}" if "solvers" in numbers else ""
    changed = "".join(f", {name} = {value}" for name, value in numbers.get("changed", {}).items())
    return f"{numbers['graphs']}{samples}{models}{proven}{changed}"


def _points(row: Row, side: str) -> list[Row]:
    points: list[Row] = row.get(side, {}).get("points", [])
    return points


def _point(place: float, row: Row) -> str:
    for point in _points(row, row["side"]):
        if abs(point["x"] - place) < 1e-9:
            return f"{point['y']:.4f}"
    return ""


def _ablation(row: Row, letters: dict[str, str]) -> str:
    if "ours" not in row:
        return _missing(row)
    marks = dict.fromkeys(letters[_place(origin)] for origin in row["origins"])
    return f"{_gap(row['ours'])} ({counted(row['ours']['seeds'], 'seed')}, {', '.join(marks)})"


def _ends(row: Row, place: int) -> str:
    points = _points(row, "ours")
    return f"{points[place]['y']:.1f} at step {points[place]['x']:,}" if points else ""


def _distance(row: Row, side: str, letters: dict[str, str]) -> str:
    numbers = row.get(side)
    if numbers is None:
        return _missing(row) if side == "ours" else ""
    if side == "paper":
        return f"{numbers['deviation']:.2f}"
    seeds = f", {counted(numbers['seeds'], 'seed')}" if "seeds" in numbers else ""
    graphs = counted(numbers["graphs"], "graph")
    place = f"{graphs}{seeds}, {_seconds(numbers)} s per graph, {letters[_origin(row)]}"
    return f"{with_error(numbers['deviation'], numbers.get('error'))} ({place})"


def _origin(row: Row) -> str:
    """Where a row was measured, in words that are the same for all rows of a run."""
    if "origin" not in row:
        return ""
    return _place(row["origin"]) + ("; the models now ship with other weights" if _is_replaced(row) else "")


def _is_replaced(row: Row) -> bool:
    """Whether a measured model ships with other weights now."""
    ours, known = row.get("ours", {}), model_files()
    names, weights = ours.get("models", []), ours.get("weights", [])
    return any(name in known and _digest(name) != measured for name, measured in zip(names, weights, strict=True))


@cache
def _digest(name: str) -> str:
    return load_model(name).digest


def _place(origin: Row) -> str:
    place = f"{origin['hardware']}, torch {origin['torch']}, {origin['date']}, commit {origin['commit']}"
    return f"{place}: `{origin['command']}`"


def _letters(rows: Sequence[Row]) -> dict[str, str]:
    places = dict.fromkeys(_origin(row) for row in rows if "origin" in row)
    return {place: _letter(number) for number, place in enumerate(places)}


def _letter(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


def _origins(letters: dict[str, str]) -> str:
    if not letters:
        return "Not measured yet.\n"
    return "\n".join(wrapped(f"- {letter}: {place}") for place, letter in letters.items()) + "\n"
