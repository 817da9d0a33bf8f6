"""Every table and figure of the paper, measured with this package: `diffuco reproduce ITEM`.

A row of an item holds the paper's number, ours, and where and how ours was measured; one whose model or graphs are not
there says what it needs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from diffuco.foundation.errors import InputError
from diffuco.reproduction import rendering
from diffuco.reproduction.ablations import AblationRun, train_missing
from diffuco.reproduction.items import ITEMS, Item, get_item
from diffuco.reproduction.records import Row, Task, read_rows, run_tasks, write_record
from diffuco.reproduction.workspace import Options, Workspace

__all__ = ["ITEMS", "Item", "Options", "get_item", "reproduce", "show", "train_runs", "unfinished_runs"]


def train_runs(items: Sequence[Item], options: Options, *, only: str = "") -> Iterator[str]:
    """Train this process's share of the runs that items need and that are not finished; yield the name of each.

    `only` is a part of a run's name.
    """
    yield from train_missing(Workspace(options), _runs(items, options, only))


def unfinished_runs(items: Sequence[Item], options: Options, *, only: str = "") -> list[str]:
    """Names of the runs that items need and that are not finished, of all shares."""
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


def reproduce(
    item: Item, options: Options, out: Path, *, command: str, only: str = "", unmeasured: bool = False
) -> Iterator[str]:
    """Measure the rows of an item one by one and keep each at once; yield what was done. Quick ablations train first.

    `only` is a part of a row's key, in any case; `unmeasured` leaves out rows that the record holds already.
    """
    space = Workspace(options)
    if item.runs is not None and options.quick:
        for name in train_missing(space, item.runs(options.quick)):
            yield f"trained {name}"

    def wanted(task: Task, row: Row) -> bool:
        return only.lower() in task.key.lower() and not (unmeasured and "ours" in row)

    path = record_path(out, item)
    tasks = item.tasks(space)
    for task, rows in run_tasks(tasks, read_rows(path), wanted=wanted, command=command, device=options.device):
        write_record(path, item.name, item.title, rows)
        if task is not None:
            yield task.key
    show(item, out)


def show(item: Item, out: Path) -> list[Row]:
    """Draw the figure and write the section of the page from the record; returns its rows."""
    rows = read_rows(record_path(out, item))
    if not rows:
        raise InputError(f"{record_path(out, item)}: no record yet; run `diffuco reproduce {item.name}`")
    text = f"{item.about}\n\n{item.markdown(rows)}"
    if item.plot is not None and any("ours" in row for row in rows):
        picture = out / "figures" / f"{item.name}.png"
        picture.parent.mkdir(exist_ok=True)
        item.plot(rows, picture)
        text += f"\n![{item.title}](figures/{item.name}.png)\n"
    text += f"\nKept in [results/reproduce-{item.name}.json](results/reproduce-{item.name}.json).\n"
    rendering.write_section(out / "README.md", item.name, item.title, text)
    return rows


def record_path(out: Path, item: Item) -> Path:
    """Where an item's record lies."""
    return out / "results" / f"reproduce-{item.name}.json"
