"""Cut a graph with a million nodes, and follow the search.

    python examples/large_graph.py --nodes 1000000 --seconds 20

A GPU pays here, but a CPU will do.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.progress import Progress

import diffuco
from diffuco.graphs.generate import ba_graph


def main() -> None:
    """Generate, solve, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    graph = ba_graph(options.nodes, 4, np.random.default_rng(0))
    print(graph)
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None)
        solution = diffuco.solve(
            graph,
            "max-cut",
            time_limit_s=options.seconds,
            on_progress=lambda seen: bar.update(task, description=str(seen), completed=seen.done, total=seen.total),
        )
    print(f"{solution.objective:.0f} edges cut, found by {solution.found_by} in {sum(solution.seconds.values()):.1f} s")


if __name__ == "__main__":
    main()
