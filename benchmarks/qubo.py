"""The QUBO model against simulated annealing and tabu search of dwave-samplers, at equal time on the same instances.

The method `anneal` shows what the model's samples are worth: it is the annealing that refines them, started from random
states.

    python benchmarks/qubo.py biqmac/ --budgets 0.1 1 --json qubo.json

FOLDER and its subfolders hold QUBO files, for example of the Biq Mac library; a subfolder is a family. Gaps are
relative to the values in FOLDER/best_known.csv (columns `instance` and `best_known`), or to the best value that any
method found, if that is lower or there is no such file. A budget is in seconds per instance; the model solves all
instances together and gets the sum of their budgets. This benchmark needs the extra `dwave`.
"""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from evidence import Record, add_options, measured_limits, require_green, write_record
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from diffuco.evaluation.compare import Run, best_known, run_methods, summary
from diffuco.foundation.files import finite
from diffuco.foundation.provenance import hardware
from diffuco.graphs.formats import read_graph
from diffuco.inference.solver import Solver
from diffuco.methods.anneal import FlipAnnealing
from diffuco.methods.dwave import SimulatedAnnealing, TabuSearch
from diffuco.methods.model import ModelMethod
from diffuco.problems import get_problem

TESTS = ("tests/test_dimod_sampler.py", "tests/test_compare.py")
SUFFIXES = (".sparse", ".qubo")


def main() -> None:
    """Measure, print a table, and write JSON if a path is given."""
    arguments = _arguments()
    paths = instances(arguments.folder)[: arguments.count]
    if not paths:
        raise SystemExit(f"{arguments.folder}: no file ends in {' or '.join(SUFFIXES)}, with or without .gz")
    tests = require_green(TESTS, skip=arguments.skip_tests)
    solver = Solver("qubo", arguments.model, device=arguments.device)
    graphs = [read_graph(path) for path in paths]
    methods = [ModelMethod(solver), FlipAnnealing(), SimulatedAnnealing(), TabuSearch()]
    problem = get_problem("qubo")
    runs = list(run_methods(problem, graphs, methods, arguments.budgets, seed=arguments.seed, device=solver.device))
    optima = _known(arguments.folder, paths, best_known(runs))
    records = list(_records(runs, optima, [path.parent.name for path in paths]))
    _print(records, f"{len(graphs)} QUBOs, {hardware(solver.device)}")
    arguments.folder = arguments.folder.name
    write_record(arguments, solver.device, tests, measured_limits(solver.device), records)


def instances(folder: Path) -> list[Path]:
    """The QUBO files of a folder and its subfolders."""
    return sorted(path for path in folder.rglob("*") if path.name.removesuffix(".gz").endswith(SUFFIXES))


def _known(folder: Path, paths: Sequence[Path], found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Best known values: from the folder's list or as found here, whichever is lower. [G]."""
    table = folder / "best_known.csv"
    if not table.exists():
        return found
    with table.open() as lines:
        values = {row["instance"]: float(row["best_known"]) for row in csv.DictReader(lines)}
    listed = [values.get(path.name.split(".sparse")[0].split(".qubo")[0], np.inf) for path in paths]
    return np.minimum(found, listed)


def _records(runs: Sequence[Run], optima: NDArray[np.float64], families: Sequence[str]) -> list[Record]:
    """Records of every run, on all instances and on each family."""
    records: list[Record] = []
    for family in ("all", *sorted(set(families))):
        chosen = np.array([family in ("all", name) for name in families])
        for run in runs:
            part = replace(run, energies=run.energies[chosen], objectives=run.objectives[chosen])
            # The standard error of a single instance is not finite.
            values = finite(summary(part, optima[chosen]))
            records.append({"family": family, "instances": int(chosen.sum())} | values)
    return records


def _print(records: Sequence[Record], title: str) -> None:
    table = Table("family", "instances", "method", "budget s", "gap", "solved to best known", title=title)
    for record in records:
        cells = (record["family"], record["instances"], record["method"], record["budget_s"])
        shares = (f"{record['gap']:.3%}", f"{record['solved_to_reference']:.1%}")
        table.add_row(*map(str, cells), *shares)
    Console(width=120).print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--budgets", nargs="+", type=float, default=[0.1, 1.0], metavar="S")
    parser.add_argument("--count", type=int, help="use only this many instances, from the first on")
    parser.add_argument("--model", help="default: the model that ships with the package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
