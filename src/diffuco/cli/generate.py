"""`diffuco generate`: the graphs of a named dataset as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diffuco.cli import options
from diffuco.cli.console import make_folder, print_json, print_result, progress_bar, shows_progress
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted

if TYPE_CHECKING:
    from diffuco.graphs.formats import Format


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco generate --list",
            "diffuco generate rb-small --out graphs/ --count 10",
            "diffuco generate ba-large --out graphs/ --split validation --format edge-list --seed 1",
        )
    )(generate)


def _list_datasets(asked: bool) -> None:
    if asked:
        from rich.table import Table

        from diffuco.graphs.datasets import DATASETS

        table = Table("dataset", "graphs")
        for dataset in DATASETS.values():
            table.add_row(dataset.name, dataset.description)
        print_result(table)
        raise typer.Exit


def generate(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Name of the dataset; --list shows them.")],
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    split: options.Split = "test",
    count: options.Count = None,
    file_format: Annotated[str, typer.Option("--format", help="Format of the files.")] = "npz",
    seed: options.Seed = 0,
    as_json: options.Json = False,
    _list: Annotated[
        bool, typer.Option("--list", callback=_list_datasets, is_eager=True, help="List the datasets and exit.")
    ] = False,
) -> None:
    """Write the graphs of a dataset to files.

    The same dataset, split and seed give the same graphs on every machine.
    """
    from diffuco.graphs.datasets import get_dataset
    from diffuco.graphs.formats import write_graph

    chosen = _writable_format(file_format)
    graphs = get_dataset(dataset).graphs(split, count, seed, progress=shows_progress())
    make_folder(out)
    files = [out / f"{dataset.lower()}-{split}-{index:04d}{chosen.suffixes[0]}" for index in range(len(graphs))]
    with progress_bar() as bar:
        for path, graph in bar.track(list(zip(files, graphs, strict=True)), description="writing"):
            write_graph(graph, path, file_format)
    if as_json:
        names = [str(path) for path in files]
        print_json({"dataset": dataset, "split": split, "seed": seed, "count": len(files), "files": names})
    else:
        print_result(f"{counted(len(files), 'graph')} of {dataset}/{split} (seed {seed}) written to {out}")


def _writable_format(name: str) -> "Format":
    from diffuco.graphs.formats import FORMATS

    for known in FORMATS:
        if known.name == name and known.write is not None:
            return known
    names = ", ".join(known.name for known in FORMATS if known.write)
    raise InputError(f"no format '{name}' to write; choose one of {names}")
