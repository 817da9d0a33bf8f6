"""`diffuco train`: run a recipe."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli import options
from diffuco.cli.console import make_folder, print_json, print_result, shows_progress

if TYPE_CHECKING:
    from diffuco.training.config import TrainConfig


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco train --list",
            "diffuco train mis-tiny --out runs/mis",
            "diffuco train mis-rb-small --set num_steps=6 --set learning_rate=0.002 --max-minutes 30",
            "diffuco train mis-rb-small --resume",
            "torchrun --nproc-per-node 4 -m diffuco train mis-rb-small",
        )
    )(train)


def _list_recipes(asked: bool) -> None:
    if asked:
        from rich.table import Table

        from diffuco.training.recipes import RECIPES

        table = Table("recipe", "trains")
        for name, recipe in RECIPES.items():
            table.add_row(name, (recipe.__doc__ or "").splitlines()[0])
        print_result(table)
        raise typer.Exit


def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="Name of the recipe; --list shows them.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the run.", show_default="runs/RECIPE")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    max_minutes: Annotated[
        float | None, typer.Option(help="Stop after this time; --resume continues.", show_default="none")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the recipe.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, data order and samples.", show_default="0")] = None,
    device: options.Device = "auto",
    as_json: options.Json = False,
    _list: Annotated[
        bool, typer.Option("--list", callback=_list_recipes, is_eager=True, help="List the recipes and exit.")
    ] = False,
) -> None:
    """Train a model by a recipe.

    The folder gets best.safetensors and last.safetensors, which --model takes, and what --resume needs.
    """
    from diffuco.training.config import with_settings
    from diffuco.training.distributed import leads
    from diffuco.training.loop import train as run
    from diffuco.training.recipes import get_recipe

    chosen = settings or []
    config = with_settings(get_recipe(recipe), chosen if seed is None else [*chosen, f"seed={seed}"])
    folder = out or Path("runs") / recipe
    make_folder(folder)
    if not as_json and leads():
        print_result(_description(config))
    summary = run(config, folder, resume=resume, max_minutes=max_minutes, device=device, progress=shows_progress())
    if not leads():
        return
    if as_json:
        print_json(summary)
    else:
        print_result(_result(summary))


def _description(config: "TrainConfig") -> str:
    from dataclasses import asdict

    return "\n".join(f"{name} = {value}" for name, value in asdict(config).items())


def _result(summary: dict[str, Any]) -> str:
    done = f"step {summary['step']} of {summary['num_steps_total']} after {summary['seconds'] / 60:.1f} minutes"
    if not summary["finished"]:
        return f"{done}; continue with the same command and --resume"
    return f"{done}, best validation energy {summary['best_energy']:.4f}: {Path(summary['out']) / 'best.safetensors'}"
