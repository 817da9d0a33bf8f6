"""Train a model for a folder of graphs and compare it with the shipped one on graphs that were held back.

    python examples/train_on_own_graphs.py [FOLDER] [--epochs 50]

Without a folder, small Barabasi-Albert graphs are written to one first. `diffuco train --graphs FOLDER --problem mds`
does the same with progress, resuming and a run folder that stays.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import diffuco
from diffuco.foundation.devices import pick_device
from diffuco.graphs.collection import Collection
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import ba_graph
from diffuco.training.config import with_settings
from diffuco.training.fitting import fit_recipe
from diffuco.training.loop import train

PROBLEM = "mds"


def main() -> None:
    """Read, train, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="graph files of your own")
    parser.add_argument("--epochs", type=int, default=50, help="times through the graphs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or write_graphs(Path(scratch) / "graphs", count=100)
        mine = Collection.of(folder.name, [diffuco.read_graph(path) for path in sorted(folder.iterdir())])
        recipe = fit_recipe(PROBLEM, mine, pick_device("auto"))
        print(f"learns from {recipe.statistics}")
        config = with_settings(recipe.config, [f"anneal_epochs={arguments.epochs}"])
        train(config, Path(scratch) / "run", graphs=mine, progress=False)
        for name, model in (("shipped", None), ("own", Path(scratch) / "run" / "best.safetensors")):
            # As drawn and decoded, without the annealing that would hide what was learned.
            solutions = diffuco.Solver(PROBLEM, model).solve(mine.graphs("test"), refine=0)
            mean = np.mean([np.mean(solution.objectives) for solution in solutions])
            print(f"{name} model: dominating sets of {mean:.2f} nodes on average, on {len(solutions)} graphs held back")


def write_graphs(folder: Path, count: int) -> Path:
    """Graphs to learn from, where nobody has brought any."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for index in range(count):
        write_graph(ba_graph(int(rng.integers(20, 40)), 2, rng), folder / f"{index:03}.clq")
    return folder


if __name__ == "__main__":
    main()
