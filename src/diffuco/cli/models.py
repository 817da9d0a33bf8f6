"""`diffuco models`: the models that ship with the package, and when to choose which."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli.console import print_json, print_note, print_result, print_warning
from diffuco.cli.options import Json, examples
from diffuco.foundation.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table


BASELINES_HELP = "List the baselines instead: models that decide in one step, for comparison."


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("diffuco models", "diffuco models --baselines", "diffuco models --json"))(models)


def models(
    baselines: Annotated[bool, typer.Option("--baselines", help=BASELINES_HELP)] = False,
    as_json: Json = False,
) -> None:
    """List the models that ship with diffuco.

    Shows what each model was trained on, how good it is and when to choose it. Gaps are to optimal or best known
    solutions of graphs that the model has not seen: the mean over all samples, and that of the best samples.
    """
    from diffuco.foundation.wording import counted
    from diffuco.pretrained import FIND_BASELINES, list_models

    shipped = list_models()
    cards = _loadable([card for card in shipped if bool(card["baseline"]) == baselines])
    if as_json:
        print_json(cards)
    elif cards:
        print_result(_table(cards))
        num_baselines = sum(bool(card["baseline"]) for card in shipped)
        if num_baselines and not baselines:
            print_note(f"--baselines lists {counted(num_baselines, 'model')} more, for comparison")
    elif baselines:
        print_result(f"no baselines here; {FIND_BASELINES}")
    else:
        print_result("no models are shipped; train one with `diffuco train`")


def _loadable(cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cards with the number of parameters; a model of a network that is not known is reported and left out."""
    from diffuco.pretrained import num_parameters

    loadable = []
    for card in cards:
        try:
            loadable.append(card | {"parameters": num_parameters(card["name"])})
        except InputError as error:
            print_warning(f"skipped {error}")
    return loadable


def _table(cards: list[dict[str, Any]]) -> "Table":
    from rich.table import Table

    from diffuco.pretrained.cards import measured, trained_on, when_to_choose

    table = Table("model", "problem", "trained on", "gap", "best of the samples", "choose it for")
    for card in cards:
        found = measured(card)
        scores = ("not measured", "") if found is None else (str(found), found.best_text)
        table.add_row(card["name"], card["problem"], trained_on(card), *scores, when_to_choose(card))
    return table
