"""Make a finished run a model that ships with the package, with a card that says how good it is.

usage: python -m experiments.ship_model runs/NAME [--name NAME] [--evaluation JSON...] [--earlier runs/FIRST...]
                                        [--round-percent N]

Takes best.safetensors, which holds no optimiser state, puts the training curve of log.jsonl and the records that
`diffuco evaluate --output` wrote into its card, writes it to the package, or to `models` if it is a baseline or there
already, and renews docs/models.md. Of several records, the first is of these weights and the others are of the same run
with other seeds. A shipped file in place of the folder keeps its weights and curve and gets a new evaluation. A run
that continues earlier ones keeps their configurations in its card, too.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from diffuco import pretrained
from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.statistics import describe
from diffuco.model import Checkpoint, load_checkpoint, read_card, save_checkpoint
from experiments import model_cards
from experiments.model_cards import THE_RUN_BEFORE

ROOT = Path(__file__).parents[1]
BUDGET_BYTES = 20_000_000
"""Of all weights in the package, and of those beside it."""
CURVE_POINTS = 60
FROM_RECORD = ("dataset", "split", "graphs", "mean_edges", "samples", "steps", "decode", "mean", "best", "hardware")
ALIKE = ("dataset", "split", "graphs", "samples", "steps", "decode")
FROM_REFERENCE = ("gap", "gap_standard_error", "gap_of_best", "solver", "proven")
NUM_DESCRIBED = 500
"""Graphs that are generated again to describe the training set of a run that did not."""


def main(arguments: list[str] | None = None) -> None:
    """Ship one model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a finished run, or a shipped file")
    parser.add_argument("--name", help="name of the model; default: the folder's")
    parser.add_argument("--evaluation", type=Path, nargs="+", default=[], help="records of `diffuco evaluate --output`")
    parser.add_argument("--earlier", type=Path, nargs="+", default=[], help="folders of the runs before, in order")
    parser.add_argument("--round-percent", type=int, help="how far rounds go back, if not as is usual for the problem")
    options = parser.parse_args(arguments)
    name = options.name or options.run.resolve().stem
    try:
        path = ship(options.run, name, options.evaluation, options.earlier, round_percent=options.round_percent)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")
    model_cards.main()
    files = list(path.parent.glob("*.safetensors"))
    own, total = (sum(file.stat().st_size for file in some) / 1e6 for some in ([path], files))
    print(f"{path.name}: {own:.2f} MB; {len(files)} models there, {total:.1f} of {BUDGET_BYTES / 1e6:.0f} MB")


def ship(
    run: Path,
    name: str,
    evaluations: list[Path],
    earlier: Sequence[Path] = (),
    *,
    round_percent: int | None = None,
) -> Path:
    """Write the model's file with its full card; nothing is written where something does not fit together."""
    checkpoint = load_checkpoint(run if run.is_file() else run / "best.safetensors")
    card = dict(checkpoint.card)
    if run.is_dir():
        card |= _about_the_run(run, card)
    if "graphs" not in card:
        training = card["training"]
        graphs = get_dataset(training["dataset"]).graphs("train", min(NUM_DESCRIBED, training["num_train_graphs"]))
        card["graphs"] = asdict(describe(graphs)) | {"count": training["num_train_graphs"]}
    if earlier:
        before = [read_card(folder / "best.safetensors")["training"] for folder in earlier]
        first, *others = [*before, card["training"]]
        *card["earlier"], card["training"] = [first, *(run | {"start_from": THE_RUN_BEFORE} for run in others)]
    if evaluations:
        card["evaluations"] = _evaluations(evaluations, checkpoint, name)
    if round_percent is not None:
        card["round_percent"] = round_percent
    is_further = checkpoint.model.config.num_steps == 1 or (pretrained.FURTHER / f"{name}.safetensors").exists()
    folder = pretrained.FURTHER if is_further else pretrained.FOLDER
    target = folder / f"{name}.safetensors"
    others = sum(file.stat().st_size for file in folder.glob("*.safetensors") if file != target)
    own = sum(weights.numel() * weights.element_size() for weights in checkpoint.model.state_dict().values())
    if others + own > BUDGET_BYTES:
        raise InputError(f"{name}: with its {own / 1e6:.1f} MB, its folder would hold {(others + own) / 1e6:.1f} MB")
    save_checkpoint(target, checkpoint.model, problem=checkpoint.problem, card=card)
    return target


def _about_the_run(run: Path, card: dict[str, Any]) -> dict[str, Any]:
    """The training curve, and the time of the whole run instead of that until its best step."""
    if json.loads((run / "config.json").read_text()) != card["training"]:
        raise InputError(f"{run}: config.json is not the configuration of best.safetensors; find the run it belongs to")
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    # A run that was killed and resumed logs some steps twice.
    by_step = {line["step"]: line["energy"] for line in lines if line["kind"] == "validation"}
    steps = sorted(by_step)
    stride = -(-len(steps) // CURVE_POINTS)
    kept = sorted({*steps[::stride], *steps[-1:]})
    return {
        "curve": [[step, round(by_step[step], 4)] for step in kept],
        "minutes": read_card(run / "last.safetensors")["minutes"],
    }


def _evaluations(paths: list[Path], checkpoint: Checkpoint, name: str) -> list[dict[str, Any]]:
    """What the card keeps of the records, which have to differ in the seed of the training alone."""
    first = json.loads(paths[0].read_text())
    # Older records do not name the weights; then the name of the model has to do.
    named = first["weights"] == checkpoint.digest if "weights" in first else first.get("model") == name
    if not named:
        raise InputError(f"{paths[0]}: measured with other weights; evaluate this model")
    kept = [_evaluation(path, checkpoint) for path in paths]
    for path, record in zip(paths, kept, strict=True):
        differs = [key for key in ALIKE if record[key] != kept[0][key]]
        if differs:
            raise InputError(f"{path}: another {', '.join(differs)} than in {paths[0]}; measure all seeds alike")
    return kept


def _evaluation(path: Path, checkpoint: Checkpoint) -> dict[str, Any]:
    """What the card keeps of a record."""
    record = json.loads(path.read_text())
    if not path.resolve().is_relative_to(ROOT):
        raise InputError(f"{path}: not in the repository; put it into experiments/results")
    if record["problem"] != checkpoint.problem:
        raise InputError(f"{path}: measured on {record['problem']}, the model is for {checkpoint.problem}")
    if "model" not in record:
        raise InputError(f"{path}: measured of a method, not of a model")
    if record.get("sweeps"):
        raise InputError(f"{path}: measured with refinement, which hides what the model can do; evaluate without it")
    reference = record.get("reference", {})
    kept = {key: record[key] for key in (*FROM_RECORD, "commit")}
    kept |= {key: reference[key] for key in FROM_REFERENCE if key in reference}
    return kept | {"file": path.resolve().relative_to(ROOT).as_posix()}


if __name__ == "__main__":
    main()
