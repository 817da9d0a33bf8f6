"""Does a model know its training graphs better than others? If so, more training graphs would help.

    python -m experiments.known_graphs max-clique-rb-small-32 mis-rb-small-32 --graphs 500 --json FILE.json

Mean gaps of 8 samples on graphs that the model was trained on and on as many test graphs, to what annealing finds in
both; for cliques, to what a search proves.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import diffuco
from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware, source_commit
from diffuco.graphs.datasets import get_dataset


def main() -> None:
    """Measure the models, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--graphs", type=int, default=500, help="of either kind")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    about = {"commit": source_commit(), "hardware": hardware(pick_device("auto")), "graphs": arguments.graphs}
    rows = {}
    for model in arguments.models:
        rows[model] = {split: gaps(model, split, arguments.graphs) for split in ("train", "test")}
        print(model, rows[model], flush=True)
        arguments.json.write_text(json.dumps(about | {"models": rows}, indent=1) + "\n")


def gaps(model: str, split: str, num_graphs: int) -> dict[str, Any]:
    """The mean gap on graphs of a split, and the mean gap of the best of 8 samples."""
    checkpoint = diffuco.load_model(model)
    problem = checkpoint.problem
    graphs = get_dataset(checkpoint.card["dataset"]).graphs(split, num_graphs)
    method = "clique-search" if problem == "max-clique" else "anneal"
    references = [solution.objective for solution in diffuco.solve(graphs, problem, method=method)]
    measured = diffuco.evaluate(graphs, model=model, references=references).reference
    assert measured is not None
    return {"gap": measured.gap, "standard_error": measured.gap_standard_error, "gap_of_best": measured.gap_of_best}


if __name__ == "__main__":
    main()
