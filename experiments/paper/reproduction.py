"""Measure an item of the paper; keep what was found as a record, a figure and a section of a page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from diffuco.foundation.errors import InputError
from experiments.paper import rendering
from experiments.paper.ablations import AblationRun, train_missing
from experiments.paper.items import Item
from experiments.paper.records import Row, Task, read_rows, run_tasks, write_record
from experiments.paper.workspace import Options, Workspace


def measure(
    item: Item, options: Options, out: Path, *, command: str, only: str = "", unmeasured: bool = False
) -> Iterator[str]:
    """Measure the rows of an item and write each at once; yield what was done. Quick ablations are trained first.

    `only` is a part of a row's key, in any case. `unmeasured` leaves out rows that the record holds already.
    """
    space = Workspace(options)
    if item.runs is not None and options.quick:
        for name in train_missing(space, item.runs(options.quick)):
            yield f"trained {name}"

    def wanted(task: Task, row: Row) -> bool:
        return only.lower() in task.key.lower() and not (unmeasured and "ours" in row)

    path = record_path(item, out)
    tasks = item.tasks(space)
    for task, rows in run_tasks(tasks, read_rows(path), wanted=wanted, command=command, device=options.device):
        write_record(path, item.name, item.title, rows)
        if task is not None:
            yield task.key


def show(item: Item, out: Path) -> list[Row]:
    """Draw the figure and write the section of the page from the record; return its rows."""
    path = record_path(item, out)
    rows = read_rows(path)
    if not rows:
        raise InputError(f"{path}: no record yet; run `python -m experiments.reproduce {item.name}`")
    text = f"{rendering.wrapped(item.about)}\n\n{item.markdown(rows)}"
    if item.plot is not None and any("ours" in row for row in rows):
        picture = out / "figures" / f"{item.name}.png"
        picture.parent.mkdir(exist_ok=True)
        item.plot(rows, picture)
        text += f"\n![{item.title}](figures/{item.name}.png)\n"
    text += f"\nRecord: [results/{path.name}](results/{path.name})\n"
    rendering.write_section(out / "README.md", item.name, item.title, text)
    return rows


def record_path(item: Item, out: Path) -> Path:
    """Where the record of an item lies."""
    return out / "results" / f"reproduce-{item.name}.json"


def train_runs(items: Sequence[Item], options: Options, *, only: str = "") -> Iterator[str]:
    """Train the unfinished runs of the items, this process's share of them; yield the name of each.

    `only` is a part of a run's name.
    """
    yield from train_missing(Workspace(options), _runs(items, options, only))


def unfinished_runs(items: Sequence[Item], options: Options, *, only: str = "") -> list[str]:
    """Names of the unfinished runs of the items, of all shares."""
    space = Workspace(options)
    return [run.name for run in _runs(items, options, only) if not run.is_finished(space)]


def _runs(items: Sequence[Item], options: Options, only: str) -> list[AblationRun]:
    runs = [run for item in items if item.runs is not None for run in item.runs(options.quick)]
    if not runs:
        raise InputError(f"{items[0].name} has no runs of its own; `diffuco train RECIPE` trains its models")
    runs = [run for run in runs if only in run.name]
    if not runs:
        raise InputError(f"--only is '{only}', which no run's name holds; a name is such as annealed-falling-3-seed0")
    return sorted(runs, key=lambda run: run.seed)  # so that every figure has points when the first seed is done
