"""`diffuco models`: the models that ship with the package."""

from typing import TYPE_CHECKING, Any

import typer

from diffuco.cli.console import print_json, print_result
from diffuco.cli.options import Json, examples

if TYPE_CHECKING:
    from rich.table import Table


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("diffuco models", "diffuco models --json"))(models)


def models(as_json: Json = False) -> None:
    """List the models that ship with diffuco."""
    from diffuco.pretrained import list_models, load_model

    cards = list_models()
    for card in cards:
        card["parameters"] = sum(weights.numel() for weights in load_model(card["name"]).model.parameters())
    if as_json:
        print_json(cards)
    elif cards:
        print_result(_table(cards))
    else:
        print_result("no models are shipped; train one with `diffuco train`")


def _table(cards: list[dict[str, Any]]) -> "Table":
    from rich.table import Table

    table = Table("model", "problem", "trained on")
    for heading in ("parameters", "steps", "layers"):
        table.add_column(heading, justify="right")
    table.add_column("validation")
    for card in cards:
        shape = card["model"]
        counts = (f"{card['parameters']:,}", str(shape["num_steps"]), str(shape["num_layers"]))
        scores = ", ".join(f"{name} {value:.4g}" for name, value in card.get("validation", {}).items())
        table.add_row(card["name"], card["problem"], card.get("dataset", ""), *counts, scores)
    return table
