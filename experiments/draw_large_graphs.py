"""Draw what methods find on large graphs against time, from records of benchmarks/large_graphs.py, a panel each.

usage: python experiments/draw_large_graphs.py docs/large-graphs.png cuts.json covers.json:uniform,regular

After a colon stand the families that are taken from a record; without one, it is all of them. The picture of the docs
takes these records, which begin with large- and end with -h200.json: 100000-preferential, 100000-auto-max-cut:uniform,
100000-bifurcation-max-cut:preferential,uniform, 100000-auto-mis:uniform,preferential, 100000-three-mds:preferential,
uniform, 100000-mds-16s:preferential,uniform, 1000000-max-cut and 1000000-mds:preferential.
"""

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from diffuco.plotting import plot_comparisons
from diffuco.problems import get_problem


def main() -> None:
    """Draw the records named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("picture", type=Path)
    parser.add_argument("records", nargs="+", metavar="RECORD[:FAMILY,...]")
    options = parser.parse_args()
    panels: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for path, _, families in (argument.partition(":") for argument in options.records):
        record = json.loads(Path(path).read_text())
        for found in record["measurements"]:
            if families and found["family"] not in families.split(","):
                continue
            graph = f"the family {found['family']}, {found['nodes']:,} nodes"
            panels[found["problem"], graph].append(found | {"hardware": record["hardware"]})
    plot_comparisons([panel(*about, found) for about, found in panels.items()], options.picture)


def panel(problem: str, graph: str, measurements: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of a comparison; gaps are those to the best objective of all methods and seeds."""
    sign = get_problem(problem).sign
    best = min(sign * objective for found in measurements for objective in found["objectives"])

    def run(found: dict[str, Any]) -> dict[str, Any]:
        gaps = [(sign * objective - best) / abs(best) for objective in found["objectives"]]
        error = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
        about = {"method": found["method"], "seconds": found["seconds"]}
        return about | {"gap": statistics.mean(gaps), "gap_standard_error": error}

    runs = [run(found) for found in measurements]
    return {
        **{"problem": problem, "graphs": 1, "dataset": graph, "hardware": measurements[0]["hardware"]},
        **{"reference": "the best of all", "runs": runs},
    }


if __name__ == "__main__":
    main()
