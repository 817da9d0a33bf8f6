"""Examples for objectives that imitate: annealed solutions of the training graphs. None comes from outside."""

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from diffuco.graphs.graph import Graph
from diffuco.methods import Settings, get_method
from diffuco.training.parts import Parts


def find_examples(
    parts: Parts, graphs: Sequence[Graph], device: torch.device, *, show: bool = False
) -> list[NDArray[np.bool_]]:
    """The best solutions of the chains that anneal each graph, as many as the objective learns from. [n, K].

    They depend on the graphs and the seed alone, so a run that is resumed finds the same.
    """
    with Progress(console=Console(stderr=True), transient=True, disable=not (show and sys.stderr.isatty())) as bar:
        task = bar.add_task("annealing examples", total=len(graphs))
        tell = partial(bar.advance, task)
        settings = Settings(seed=parts.config.seed, place=device, on_solved=tell)
        solutions = get_method("anneal").solve(parts.problem, graphs, settings)
    # A large graph has fewer chains than that, so some of its solutions count twice.
    best = [np.resize(np.argsort(solution.energies, kind="stable"), parts.num_examples) for solution in solutions]
    return [solution.states[:, order] for solution, order in zip(solutions, best, strict=True)]
