"""Watch the reverse diffusion solve a graph, step by step, as text.

    python examples/stream_reverse_diffusion.py [FILE]

Each line is the state after one reverse step: the mean energy of all samples, and of the sample that ends best how many
nodes it has chosen and how many edges lie inside its set, which a solution must not have.
"""

import sys
from pathlib import Path

import numpy as np

import diffuco

BUNDLED = Path(__file__).parent / "rb-small.clq"


def main(file: Path) -> None:
    """Stream, print, then solve from the same noise and compare."""
    graph = diffuco.read_graph(file)
    solver = diffuco.Solver("mis")
    steps = list(solver.stream(graph, samples=8, seed=0))
    best = int(np.argmin(steps[-1].energies))
    for step in steps:
        chosen = step.states[:, best]
        conflicts = int(chosen[graph.edges].all(axis=1).sum())
        print(
            f"step {step.index:2} of {step.num_steps}: mean energy {step.energies.mean():8.2f}, "
            f"{chosen.sum():3} nodes chosen, {conflicts:4} conflicts"
        )
    [solution] = solver.solve([graph], samples=8, seed=0)
    print(f"decoded and refined: {solution.objective:.0f} nodes, {solution.violations} conflicts")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else BUNDLED)
