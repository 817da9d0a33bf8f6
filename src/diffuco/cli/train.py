"""`diffuco train`: run a recipe, or train on a folder of graphs."""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli import options
from diffuco.cli.console import make_folder, print_json, print_result
from diffuco.foundation.errors import InputError
from diffuco.foundation.values import check_seed
from diffuco.foundation.wording import counted

if TYPE_CHECKING:
    import torch

    from diffuco.graphs.collection import Collection
    from diffuco.training.config import TrainConfig
    from diffuco.training.fitting import Fit


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco train --graphs FOLDER --problem mis",
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
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="Name of the recipe; --list shows them.", show_default=False),
    ] = None,
    graphs: Annotated[
        Path | None,
        typer.Option(help="Train on the graphs of this folder or file, with a recipe that suits them."),
    ] = None,
    problem: Annotated[str | None, typer.Option(help="Problem to solve on --graphs.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the run.", show_default="runs/RECIPE or runs/PROBLEM-FOLDER")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    max_minutes: Annotated[
        float | None,
        typer.Option(help="Shorten the schedules so that the run takes at most about this long.", show_default="none"),
    ] = None,
    stop_after: Annotated[
        float | None,
        typer.Option(help="Stop after this many minutes, whatever is left; --resume continues.", show_default="none"),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the parameters, the order of the data and the samples.", show_default="0"),
    ] = None,
    device: options.Device = "auto",
    as_json: options.Json = False,
    _list: Annotated[
        bool, typer.Option("--list", callback=_list_recipes, is_eager=True, help="List the recipes and exit.")
    ] = False,
) -> None:
    """Train a model by a recipe, or on your own graphs.

    A tenth of your own graphs is held back for `diffuco evaluate --graphs FOLDER`, and a tenth for validation. The
    folder of the run gets best.safetensors and last.safetensors, which --model accepts, and what --resume needs.
    """
    from diffuco.foundation.distributed import leads
    from diffuco.training.loop import train as run
    from diffuco.training.recipes import get_recipe

    _check_choice(recipe, graphs, problem)
    _check_minutes(max_minutes, "--max-minutes")
    _check_minutes(stop_after, "--stop-after")
    chosen = [*(settings or []), *([] if seed is None else [f"seed={check_seed(seed)}"])]
    speaks = leads() and not as_json
    collection = None
    if graphs is None:
        assert recipe is not None
        folder, config = out or Path("runs") / recipe, _with_settings(get_recipe(recipe), chosen)
        _check_folder(folder, problem, resume=resume)
    else:
        assert problem is not None
        from diffuco.cli.inputs import collection_name, load_collection

        # Reading and measuring take a while, so what can be refused is refused before.
        _with_settings(_some_config(problem), chosen)
        folder = out or Path("runs") / f"{problem}-{collection_name(graphs)}"
        _check_folder(folder, problem, resume=resume)
        collection = load_collection(graphs)
        fitted = _fitted(collection, problem, folder if resume else None, device, speaks=speaks)
        config = _with_settings(fitted, chosen)
    make_folder(folder)
    if speaks:
        print_result(_description(config))
    summary = run(
        config,
        folder,
        graphs=collection,
        resume=resume,
        max_minutes=max_minutes,
        stop_after_minutes=stop_after,
        device=device,
        progress=True,
    )
    if not leads():
        return
    if as_json:
        print_json(summary)
    else:
        print_result(_result(summary, graphs))


def _check_choice(recipe: str | None, graphs: Path | None, problem: str | None) -> None:
    if graphs is None:
        if problem is not None:
            raise InputError("--problem is for --graphs; a recipe knows its problem")
        if recipe is None:
            raise InputError("nothing to train; name a recipe (--list shows them) or give --graphs and --problem")
    elif recipe is not None:
        raise InputError("a recipe brings its own graphs; give RECIPE or --graphs, not both")
    elif problem is None:
        raise InputError("--graphs needs --problem, such as mis")


def _check_minutes(minutes: float | None, option: str) -> None:
    if minutes is not None and not 0 <= minutes < math.inf:
        raise InputError(f"{option} is {minutes:g}; give minutes, 0 or more")


def _check_folder(folder: Path, problem: str | None, *, resume: bool) -> None:
    """Refuse a folder that the run cannot have; the rest is checked when the run begins."""
    from diffuco.training.folder import claimed
    from diffuco.training.resume import started_config

    if folder.exists():
        make_folder(folder)  # refuses a file, and a folder that cannot be written
    if folder.exists() or resume:
        with claimed(folder, None, resume=resume):
            before = started_config(folder).problem if resume else problem
        if problem not in (None, before):
            told = f"this run is for {before}, not {problem}; give --problem {before} or another --out"
            raise InputError(f"{folder}: {told}")


def _some_config(problem: str) -> "TrainConfig":
    """A configuration on which settings are tried while the real one is not known."""
    from diffuco.problems import get_problem
    from diffuco.training.config import TrainConfig

    some: dict[str, Any] = {"num_steps": 1, "start_temperature": 0.0, "anneal_epochs": 1}
    return TrainConfig(get_problem(problem).name, "", **some, graphs_per_batch=1, num_train_graphs=2**31)


def _with_settings(config: "TrainConfig", settings: list[str]) -> "TrainConfig":
    """The configuration with `key=value` settings applied; numbers that no setting can have are refused."""
    from diffuco.training.config import with_settings

    changed = with_settings(config, settings)
    for name, value in asdict(changed).items():
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise InputError(f"{name} is {value}; give a number, 0 or more")
    check_seed(changed.seed)
    return changed


def _fitted(graphs: "Collection", problem: str, resumed: Path | None, device: str, *, speaks: bool) -> "TrainConfig":
    """The recipe that the resumed run was started with, or a new one that suits the graphs."""
    from diffuco.foundation.devices import pick_device
    from diffuco.problems import check_weights, get_problem
    from diffuco.training.fitting import fit_recipe
    from diffuco.training.resume import started_config

    check_weights(get_problem(problem), graphs.members)
    if resumed is not None:
        return started_config(resumed)
    place = pick_device(device)
    fit = fit_recipe(problem, graphs, place)
    if speaks:
        fit = replace(fit, seconds=_measured_seconds(fit.config, graphs, place))
        print_result(_announcement(graphs, fit, place.type))
    return fit.config


def _measured_seconds(config: "TrainConfig", graphs: "Collection", place: "torch.device") -> float:
    """How long the run will take here, from some steps of it."""
    from diffuco.foundation.distributed import Group
    from diffuco.training.pace import measured_pace
    from diffuco.training.parts import choose_parts

    parts = choose_parts(config)
    train_graphs, held_out = graphs.graphs("train"), graphs.graphs("validation", config.num_validation_graphs)
    return measured_pace(parts, train_graphs, held_out, Group(place)).seconds(config)


def _announcement(graphs: "Collection", fit: "Fit", device: str) -> str:
    """What was read and what was chosen, for people."""
    config = fit.config
    num_validated, num_held_back = (len(graphs.graphs(split)) for split in ("validation", "test"))
    left_out = "".join(
        f"; {count} {why} left out"
        for count, why in ((graphs.num_repeated, "repeated"), (graphs.num_edgeless, "without edges"))
        if count
    )
    minutes = max(1, round(fit.seconds / 60))
    lines = (
        f"{graphs.name}: learns from {fit.statistics}",
        f"{num_validated} more to validate, {num_held_back} held back for `diffuco evaluate`{left_out}",
        f"network: {counted(config.num_layers, 'layer')} of {config.num_hidden} features, "
        f"{counted(config.num_steps, 'diffusion step')}",
        f"batches: {counted(config.graphs_per_batch, 'graph')} x {counted(config.samples_per_graph, 'sample')}, "
        f"about {fit.num_bytes / 2**30:.2g} GiB",
        f"run: {config.total_steps:,} steps, {counted(config.anneal_epochs, 'time')} through the graphs, "
        f"about {minutes} {'minute' if minutes == 1 else 'minutes'} on this {'GPU' if device == 'cuda' else 'CPU'}",
    )
    return "\n".join(lines) + "\n"


def _description(config: "TrainConfig") -> str:
    return "\n".join(f"{name} = {value}" for name, value in asdict(config).items())


def _result(summary: dict[str, Any], graphs: Path | None) -> str:
    done = f"step {summary['step']} of {summary['num_steps_total']} after {summary['seconds'] / 60:.1f} minutes"
    if not summary["finished"]:
        left = next(name for name in ("best", "last") if (Path(summary["out"]) / f"{name}.safetensors").exists())
        model = Path(summary["out"]) / f"{left}.safetensors"
        return f"{done}; the model so far is {model}; continue with the same command and --resume"
    model = Path(summary["out"]) / "best.safetensors"
    result = f"{done}, best validation energy {summary['best_energy']:.4f}: {model}"
    if graphs is not None:
        result += f"\nmeasure it: diffuco evaluate --model {model} --graphs {graphs} --reference best-known"
    return result
