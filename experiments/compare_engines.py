"""Whether the fused engine trains as well as the float32 reference: equal short runs, several seeds each, side by side.

    python experiments/compare_engines.py RUNS --json compare-engines.json

Every run takes 2,000 optimiser steps on RB-small MIS with a small network. The runs share the device, so their times
mean nothing; what counts is the energy on the validation graphs at the end, and how much it varies from seed to seed.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware, source_commit

SETTINGS = {
    "graphs_per_batch": 10,
    "samples_per_graph": 6,
    "num_steps": 4,
    "num_layers": 5,
    "num_train_graphs": 2000,
    "anneal_epochs": 10,
}


def main() -> None:
    """Train, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs go")
    parser.add_argument("--engines", nargs="+", default=["reference", "fused"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    runs = {(engine, seed): _start(arguments.folder, engine, seed)
            for engine in arguments.engines for seed in range(arguments.seeds)}  # fmt: skip
    for process in runs.values():
        if process.wait():
            raise SystemExit("a run failed; its output says why")
    results = {}
    for engine in arguments.engines:
        energies = [_last_energy(arguments.folder / f"{engine}-{seed}") for seed in range(arguments.seeds)]
        results[engine] = {"energies": energies, "mean": statistics.fmean(energies)}
        print(f"{engine:<10} validation energy {results[engine]['mean']:.3f}  seeds {energies}")
    if arguments.json:
        record = {"commit": source_commit(), "hardware": hardware(pick_device("auto")), "settings": SETTINGS}
        arguments.json.write_text(json.dumps(record | {"results": results}, indent=2) + "\n")


def _start(folder: Path, engine: str, seed: int) -> "subprocess.Popen[bytes]":
    settings = SETTINGS | {"engine": engine, "seed": seed}
    options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    out = folder / f"{engine}-{seed}"
    command = [sys.executable, "-m", "diffuco", "train", "mis-rb-small", "--out", str(out), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _last_energy(run: Path) -> float:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    energy: float = [line["energy"] for line in lines if line["kind"] == "validation"][-1]
    return energy


if __name__ == "__main__":
    main()
