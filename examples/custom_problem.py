"""Problems of your own: state an energy, then check, train, solve and compare without touching the package.

    python examples/custom_problem.py [--epochs 40]

bisection.py is a quadratic problem with a fast form, total_domination.py one that is not quadratic and states nothing
but its energy and its check. Training takes about a minute on a CPU.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from bisection import MinimumBisection
from total_domination import MinimumTotalDominatingSet

import diffuco
from diffuco.graphs.datasets import get_dataset
from diffuco.problems import Problem

NUM_TEST = 10


def main() -> None:
    """Show both problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40, help="passes over the training graphs")
    epochs = parser.parse_args().epochs
    for problem in (MinimumBisection(), MinimumTotalDominatingSet()):
        show(problem, epochs)


def show(problem: Problem, epochs: int) -> None:
    """Check the problem, train a small network for it, solve graphs it has not seen, compare with other methods."""
    diffuco.check_problem(problem)  # against the enumeration of all states of small graphs
    graphs = get_dataset("ba-tiny").graphs("test", NUM_TEST)
    config = diffuco.TrainConfig(
        problem=problem.name,
        dataset="ba-tiny",
        num_steps=4,
        start_temperature=problem.annealing.temperature / 2,
        anneal_epochs=epochs,
        noise="exponential",
        num_layers=3,
        num_hidden=32,
        graphs_per_batch=16,
        samples_per_graph=6,
        num_train_graphs=160,
        num_validation_graphs=16,
        validate_every=100,
    )
    with tempfile.TemporaryDirectory() as folder:
        diffuco.train(config, Path(folder), problem=problem, device="cpu", progress=False)
        model = diffuco.load_model(Path(folder) / "best.safetensors")
    samples = diffuco.solve(graphs, problem, model=model, refine=0)
    for solution in samples:
        assert solution.feasible == diffuco.check(solution.graph, problem, solution).feasible
    print(f"{problem.title} of {NUM_TEST} graphs, mean size or number of cut edges")
    print(f"  best of 8 samples  {mean_objective(samples):.2f}")
    for run in diffuco.compare(graphs, problem, ["greedy", "anneal"], [0.2], device="cpu"):
        print(f"  {run.method:<18} {run.objectives.mean():.2f}")


def mean_objective(solutions: list[diffuco.Solution]) -> float:
    """Mean over the feasible solutions."""
    return float(np.mean([solution.objective for solution in solutions if solution.feasible]))


if __name__ == "__main__":
    main()
