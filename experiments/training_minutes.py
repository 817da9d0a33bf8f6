"""How soon a good model is trained: a short run with few diffusion steps, then four or eight times as many, cold.

    python -m experiments.training_minutes RUNS mis mds max-cut --json FILE.json

The runs take the device one after the other; give it to nothing else. Afterwards the model is measured on the test
graphs as `diffuco evaluate` does it. EARLIER is how the rows were trained before: a chain of runs, each with twice the
steps of the one before. What it takes now follows from its optimiser steps and the time of one in the runs of today.
"""

import argparse
import json
from dataclasses import asdict, replace
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

ROWS = {
    "mis": (("mis-rb-small", 70, 8, 0.1), ("mis-rb-small-32", 26, 32, 0.003)),
    "mds": (("mds-ba-small", 45, 6, 0.1), ("mds-ba-small-48", 22, 48, 0.003)),
    "max-cut": (("max-cut-ba-small", 60, 6, 0.1), ("max-cut-ba-small-48", 34, 24, 0.005)),
}
"""Recipe, epochs, diffusion steps and start temperature of the two runs; the second has half the learning rate."""
EARLIER = {
    "mis": ({8: 26_600, 16: 9_310}, 0.0309),
    "mds": ({6: 15_960, 12: 7_980, 24: 6_650}, 0.0062),
    "max-cut": ({6: 15_960, 12: 7_980, 24: 6_650}, 0.0017),
}
"""Optimiser steps by diffusion steps of the chains before, and the gap that they ended at, for dominating sets the mean
of three seeds."""


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
    for recipe, epochs, num_steps, temperature in ROWS[row]:
        config = replace(
            get_recipe(recipe),
            anneal_epochs=epochs,
            num_steps=num_steps,
            start_temperature=temperature,
            start_from=start,
        )
        told = asdict(config) | {"start_from": name}  # not where it lies
        name = f"{row}-{num_steps}"
        seconds = train(config, folder / name, progress=False)["seconds"] - seconds_before
        runs.append({"config": told, "seconds": seconds, "optimiser_steps": config.total_steps})
        seconds_before, start = seconds_before + seconds, str(folder / name / "best.safetensors")
    steps_before, gap_before = EARLIER[row]
    minutes_before = sum(steps * seconds_per_step(num, runs) for num, steps in steps_before.items()) / 60
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


def seconds_per_step(num_steps: int, runs: list[dict[str, Any]]) -> float:
    """Of an optimiser step with so many diffusion steps: linear between those of the two runs.

    >>> short = {"config": {"num_steps": 6}, "seconds": 60.0, "optimiser_steps": 10}
    >>> seconds_per_step(12, [short, {"config": {"num_steps": 24}, "seconds": 240.0, "optimiser_steps": 10}])
    12.0
    """
    (few, short), (many, long) = ((run["config"]["num_steps"], run["seconds"] / run["optimiser_steps"]) for run in runs)
    return float(short + (long - short) * (num_steps - few) / (many - few))


def measured_on_test_graphs(config: TrainConfig, model: str) -> dict[str, Any]:
    """The gap on the test graphs: 8 samples, three times the steps."""
    graphs = get_dataset(config.dataset).graphs("test")
    references = [known.objective for known in find_references(config.problem, graphs)]
    return evaluate(graphs, model=model, references=references).to_dict()


if __name__ == "__main__":
    main()
