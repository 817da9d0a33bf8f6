"""EGN and EGN-Anneal: a network that decides in one step, trained by this project's own trainer (Sec. 4.2 and 4.3).

Models with one diffusion step, so that random node features are all that tells samples apart. EGN minimises the energy,
EGN-Anneal the free energy at a falling temperature; recipes `*-egn` and `*-egn-anneal` train them. The weights are in
the folder `models` of the source.
"""

from collections.abc import Callable, Sequence

import torch

from diffuco.methods.base import Method
from diffuco.graphs.graph import Graph
from diffuco.pretrained import FIND_BASELINES, choose_model, model_files
from diffuco.problems import Problem
from diffuco.solution.result import Solution
from diffuco.inference.solver import Solver

NUM_SAMPLES = 8


class Egn(Method):
    """Eight samples of one step each, decoded with Conditional Expectation; the best is kept."""

    name = "egn"
    summary = "a network that decides in one step, trained without annealing; best of 8"
    problems = ("mis", "mvc", "max-clique", "max-cut", "mds")

    def missing(self) -> str | None:
        """Its models, which are not in the package."""
        if any(name.endswith(f"-{self.name}") for name in model_files()):
            return None
        return f"its models; {FIND_BASELINES}"

    def solve(
        self,
        problem: Problem,
        graphs: Sequence[Graph],
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        time_limit_s: float | None = None,
        on_solved: Callable[[int], None] | None = None,
    ) -> list[Solution]:
        """Sample and decode."""
        model = choose_model(problem.name, graphs, baseline=self.name).name
        solver = Solver(problem.name, model, device=str(device))
        return solver.solve(graphs, samples=NUM_SAMPLES, step_factor=1, refine=0, seed=seed, on_solved=on_solved)


class EgnAnneal(Egn):
    """The same with weights that were trained at a falling temperature."""

    name = "egn-anneal"
    summary = "a network that decides in one step, trained at a falling temperature; best of 8"
