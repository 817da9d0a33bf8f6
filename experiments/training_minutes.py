"""How soon a good model is trained: a short run with few diffusion steps, then many more steps at once, cold.

    python -m experiments.training_minutes RUNS mis mds max-cut --json FILE.json

The runs take the device one after the other; give it to nothing else. Those that are there go on. Afterwards the model
is measured on the test graphs as `diffuco evaluate` does it. EARLIER is how the rows were trained before: a chain of
runs, most with twice the steps of the one before. What it takes now follows from its optimiser steps and the time of
one in the runs of today, without compiling and validating, which count for the runs of today.
"""

import argparse
import json
import statistics
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from diffuco.evaluation.evaluate import evaluate
from diffuco.evaluation.references import find_references
from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware, source_commit
from diffuco.graphs.datasets import get_dataset
from diffuco.training.config import TrainConfig
from diffuco.training.loop import train
from diffuco.training.recipes import get_recipe

Stage = tuple[str, dict[str, Any]]
FIRST: dict[str, Any] = {"optimizer": "muon", "learning_rate": 0.002}
THEN: dict[str, Any] = {"optimizer": "muon", "learning_rate": 0.0005}
ROWS: dict[str, tuple[Stage, ...]] = {
    "mis": (
        ("mis-rb-small", {"anneal_epochs": 70}),
        ("mis-rb-small-32", {"anneal_epochs": 26, "start_temperature": 0.003}),
    ),
    "mds": (
        ("mds-ba-small", {"anneal_epochs": 45}),
        ("mds-ba-small-48", {"anneal_epochs": 22}),
    ),
    "max-cut": (
        ("max-cut-ba-small", {"anneal_epochs": 50, **FIRST}),
        ("max-cut-ba-small-24", {"anneal_epochs": 34, "start_temperature": 0.005, **THEN}),
    ),
    "max-clique": (
        ("max-clique-rb-small", {"anneal_epochs": 46, **FIRST}),
        ("max-clique-rb-small-32", {"anneal_epochs": 21, **THEN}),
    ),
    "mis-large": (
        ("mis-rb-small", {"anneal_epochs": 40, **FIRST}),
        ("mis-rb-large", {"anneal_epochs": 48, "start_temperature": 0.05, **FIRST}),
        ("mis-rb-large-64", {"anneal_epochs": 9, "num_steps": 32, "start_temperature": 0.003, **THEN}),
    ),
}
"""Recipes of the runs of each row, and what changes in them; each starts from the model of the one before."""
EARLIER: dict[str, tuple[tuple[tuple[str, int, int], ...], float]] = {
    "mis": ((("rb-small", 8, 26_600), ("rb-small", 16, 9_310)), 0.0309),
    "mds": ((("ba-small", 6, 15_960), ("ba-small", 12, 7_980), ("ba-small", 24, 6_650)), 0.0062),
    "max-cut": ((("ba-small", 6, 15_960), ("ba-small", 12, 7_980), ("ba-small", 24, 6_650)), 0.0017),
    "max-clique": ((("rb-small", 16, 13_300), ("rb-small", 32, 7_980)), 0.0242),
    "mis-large": (
        (("rb-small", 8, 26_600), ("rb-large", 8, 7_992), ("rb-large", 16, 5_328), ("rb-large", 32, 4_440)),
        0.0583,
    ),
}
"""Dataset, diffusion steps and optimiser steps of the chains before, and the gap that they ended at, for dominating
sets the mean of three seeds."""
NUM_GRAPHS = {"rb-large": 100}
"""Test graphs with a reference, where not all have one."""


def main() -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs go")
    parser.add_argument("rows", nargs="+", choices=ROWS)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    about = {"commit": source_commit(), "hardware": hardware(pick_device("auto"))}
    rows = {}
    for row in arguments.rows:
        rows[row] = measure(row, arguments.folder)
        arguments.json.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")


def measure(row: str, folder: Path) -> dict[str, Any]:
    """Train one row and compare it with the chain of runs before."""
    runs, seconds_before, start, name = [], 0.0, "", ""
    for recipe, changes in ROWS[row]:
        config = replace(get_recipe(recipe), **changes, start_from=start)
        told = asdict(config) | {"start_from": name}  # not where it lies
        name = f"{config.problem}-{config.dataset}-{config.num_steps}"
        run = folder / row / name
        seconds = train(config, run, resume=run.exists(), progress=False)["seconds"] - seconds_before
        pace = milliseconds_per_step(run / "log.jsonl")
        runs.append({"config": told, "seconds": seconds, "optimiser_steps": config.total_steps, "milliseconds": pace})
        seconds_before, start = seconds_before + seconds, str(run / "best.safetensors")
    chain, gap_before = EARLIER[row]
    minutes_before = sum(steps * milliseconds_of(*shape, runs) for *shape, steps in chain) / 60_000
    result: dict[str, Any] = {
        "minutes": seconds_before / 60,
        "minutes_before_estimated": minutes_before,
        "gap_before": gap_before,
        "evaluation": measured_on_test_graphs(config, start) | {"model": name},
        "runs": runs,
    }
    print(
        f"{row}: {result['minutes']:.1f} instead of {minutes_before:.1f} minutes, gap "
        f"{result['evaluation']['reference']['gap']:.3%} instead of {gap_before:.2%}",
        flush=True,
    )
    return result


def milliseconds_per_step(log: Path) -> float:
    """Of a run, without what it compiled and validated: rows tell the mean since the start, of which this is undone."""
    rows = [row for row in map(json.loads, log.read_text().splitlines()) if row["kind"] == "train"]
    ends = [(row["step"], row["step"] * row["milliseconds_per_step"]) for row in rows]
    return statistics.median((later - earlier) / (b - a) for (a, earlier), (b, later) in pairwise(ends))


def milliseconds_of(dataset: str, num_steps: int, runs: list[dict[str, Any]]) -> float:
    """Of an optimiser step with so many diffusion steps: linear in these, from the runs on that dataset.

    >>> short = {"config": {"dataset": "rb-small", "num_steps": 6}, "milliseconds": 6.0}
    >>> long = {"config": {"dataset": "rb-small", "num_steps": 24}, "milliseconds": 24.0}
    >>> milliseconds_of("rb-small", 12, [short, long]), milliseconds_of("rb-small", 8, [short])
    (12.0, 8.0)
    """
    own = [run for run in runs if run["config"]["dataset"] == dataset]
    (few, short), (many, long) = ((run["config"]["num_steps"], run["milliseconds"]) for run in (own[0], own[-1]))
    slope = (long - short) / (many - few) if many > few else short / few
    return float(short + slope * (num_steps - few))


def measured_on_test_graphs(config: TrainConfig, model: str) -> dict[str, Any]:
    """The gap on the test graphs: 8 samples, three times the steps."""
    graphs = get_dataset(config.dataset).graphs("test", NUM_GRAPHS.get(config.dataset))
    references = [known.objective for known in find_references(config.problem, graphs)]
    return evaluate(graphs, model=model, references=references).to_dict()


if __name__ == "__main__":
    main()
