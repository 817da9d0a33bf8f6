"""Measure the tables and figures of the paper, and put our numbers beside its own.

usage: python -m experiments.reproduce ITEM

Torch is imported inside the functions, as in `diffuco.cli`: `--help` answers at once, and torch finds its environment.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli import options, run_app
from diffuco.cli.console import make_folder, print_json, print_note, print_result, progress_bar
from diffuco.foundation.errors import InputError

if TYPE_CHECKING:
    from experiments.paper.items import Item
    from experiments.paper.workspace import Options

COMMAND = "python -m experiments.reproduce"
OUT = Path(__file__).parent
QUICK_OUT = Path("runs/reproduce-quick")

ITEM_HELP = "Table or figure, or all; --list shows them."
QUICK_HELP = "Few graphs and samples, tiny ablations: minutes on a CPU."
MODELS_HELP = "Folder of runs RECIPE/, RECIPE-seed1/, ... to take before the shipped models."
METHODS_HELP = "Other methods to measure, with commas between them, or none; `diffuco methods` lists them."
ONLY_HELP = "Only rows, or runs to train, whose name holds this text, such as RB-small or 'MIS RB-small | DiffUCO'."
TRAIN_HELP = "Train the runs that an ablation needs and are not finished; measure nothing."
SHARE_HELP = "With --train: take the first of four shares of the runs with 1/4, so that four processes divide them."
OUT_HELP = "Folder for README.md, results/ and figures/."

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_app(app, sys.argv[1:] if arguments is None else list(arguments), name=COMMAND)


def _list_items(asked: bool) -> None:
    if asked:
        from rich.table import Table

        from experiments.paper.items import ITEMS

        table = Table("item", "shows")
        for item in ITEMS.values():
            table.add_row(item.name, item.title)
        print_result(table)
        raise typer.Exit


@app.command(
    epilog=options.examples(
        f"{COMMAND} --list",
        f"{COMMAND} fig-2-right --quick",
        f"{COMMAND} table-1 --models runs --only RB-small",
        f"{COMMAND} gset --graphs gset/ --time-limit 180",
        f"{COMMAND} fig-2-middle --train --max-minutes 9",
        f"{COMMAND} all --show",
    )
)
def reproduce(
    item: Annotated[str, typer.Argument(metavar="ITEM", help=ITEM_HELP)],
    quick: Annotated[bool, typer.Option("--quick", help=QUICK_HELP)] = False,
    models: Annotated[
        Path | None, typer.Option(help=MODELS_HELP, show_default="runs, where no model is shipped")
    ] = None,
    graphs: Annotated[Path | None, typer.Option(help="Folder of Gset files G1.txt, G2.txt.gz, ..., for gset.")] = None,
    count: Annotated[
        int | None, typer.Option(help="Graphs of every set, or of every p or group.", show_default="the item's own")
    ] = None,
    methods: Annotated[str | None, typer.Option(help=METHODS_HELP, show_default="the item's own")] = None,
    only: Annotated[str, typer.Option(help=ONLY_HELP, show_default="all rows")] = "",
    unmeasured: Annotated[bool, typer.Option("--unmeasured", help="Leave out rows measured before.")] = False,
    train: Annotated[bool, typer.Option("--train", help=TRAIN_HELP)] = False,
    share: Annotated[str, typer.Option(metavar="I/N", help=SHARE_HELP)] = "1/1",
    max_minutes: Annotated[
        float | None, typer.Option(help="Stop training after this time; the same command continues.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds a graph, for gset.", show_default="one round of samples")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Measure nothing; write page and figures anew.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help=OUT_HELP, show_default=f"the folder of this script, with --quick {QUICK_OUT}"),
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
    _list: Annotated[
        bool, typer.Option("--list", callback=_list_items, is_eager=True, help="List the items and exit.")
    ] = False,
) -> None:
    """Measure a table or figure of the paper.

    Reads stored models and references, writes a JSON record, a figure and a section of a page with the paper's numbers
    beside ours. Every row is kept at once with hardware, date, commit and command; rows that cannot be measured here
    say what they need, and those of an earlier run, on another machine perhaps, are kept.
    """
    from diffuco.plotting import check_plot_path
    from experiments.paper.items import ITEMS, get_item
    from experiments.paper.reproduction import record_path
    from experiments.paper.reproduction import show as show_again
    from experiments.paper.workspace import Options

    chosen = list(ITEMS.values()) if item == "all" else [get_item(item)]
    folder = make_folder(out or (QUICK_OUT if quick else OUT))
    for name in ("results", "figures"):
        make_folder(folder / name)
    check_plot_path(folder / "figures" / "any.png")
    if count is not None and count < 1:
        raise InputError(f"--count is {count}; give 1 or more")
    if time_limit is not None and time_limit <= 0:
        raise InputError(f"--time-limit is {time_limit:g}; give seconds above 0")
    settings = Options(
        quick=quick,
        count=count,
        methods=_methods(methods),
        models=models,
        graphs=graphs,
        time_limit_s=time_limit,
        share=_share(share),
        max_minutes=max_minutes,
        device=device,
        seed=seed,
    )
    if train:
        _train(chosen, settings, only)
        return
    records = {}
    for one in chosen:
        if not show:
            _measure(one, settings, folder, only=only, unmeasured=unmeasured)
        elif item == "all" and not record_path(one, folder).exists():
            continue
        records[one.name] = show_again(one, folder)
    if as_json:
        print_json(records)
    else:
        for name, rows in records.items():
            print_result(ITEMS[name].markdown(rows))
        print_note(f"page, records and figures are in {folder}")


def _train(items: "Sequence[Item]", settings: "Options", only: str) -> None:
    from experiments.paper.reproduction import train_runs, unfinished_runs

    with progress_bar() as bar:
        task = bar.add_task("training", total=None)
        for name in train_runs(items, settings, only=only):
            bar.update(task, description=f"trained {name}")
    left = unfinished_runs(items, settings, only=only)
    print_note(f"{len(left)} runs are left to train, {left[0]} is the first" if left else "all runs are finished")


def _measure(item: "Item", settings: "Options", folder: Path, *, only: str, unmeasured: bool) -> None:
    from experiments.paper.reproduction import measure

    command = _command(item.name, settings, only=only, unmeasured=unmeasured)
    with progress_bar() as bar:
        task = bar.add_task(item.name, total=None)
        for done in measure(item, settings, folder, command=command, only=only, unmeasured=unmeasured):
            bar.update(task, description=f"{item.name}: {done}")


def _methods(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    from diffuco.methods import get_method

    names = () if text == "none" else dict.fromkeys(part.strip() for part in text.split(","))
    return tuple(get_method(name).name for name in names)


def _share(text: str) -> tuple[int, int]:
    first, _, second = text.partition("/")
    if not (first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)):
        raise InputError(f"--share is '{text}'; give a number and how many there are, such as 1/4")
    return int(first), int(second)


def _command(item: str, settings: "Options", *, only: str, unmeasured: bool) -> str:
    """What was typed, without the paths of this machine."""
    values: dict[str, Any] = {
        "--models": settings.models and "FOLDER",
        "--graphs": settings.graphs and "FOLDER",
        "--count": settings.count,
        "--methods": None if settings.methods is None else ",".join(settings.methods) or "none",
        "--only": only or None,
        "--time-limit": settings.time_limit_s,
        "--seed": settings.seed or None,
    }
    words = [item, *(["--quick"] if settings.quick else [])]
    words += [word for name, value in values.items() if value is not None for word in (name, f"{value}")]
    return f"{COMMAND} {shlex.join(words + (['--unmeasured'] if unmeasured else []))}"


if __name__ == "__main__":
    sys.exit(main())
