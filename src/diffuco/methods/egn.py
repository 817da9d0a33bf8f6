"""EGN and EGN-Anneal: a network that decides in one step, trained by this project's own trainer (Sec. 4.2 and 4.3).

Models with one diffusion step, so that random node features are all that tells samples apart. EGN minimises the energy,
EGN-Anneal the free energy at a falling temperature; recipes `*-egn` and `*-egn-anneal` train them. The weights are in
the folder `models` of the source.
"""

from collections.abc import Sequence

from diffuco.graphs.graph import Graph
from diffuco.inference.answers import SampleOptions
from diffuco.methods.base import Method, Settings
from diffuco.methods.model import solver_with
from diffuco.pretrained import FIND_BASELINES, list_models
from diffuco.pretrained.choice import choose_model
from diffuco.problems import Problem
from diffuco.solution.result import Solution

OPTIONS = SampleOptions(samples=8, step_factor=1, refine=0)


class Egn(Method):
    """Eight samples of one step each, decoded with Conditional Expectation; the best is kept."""

    name = "egn"
    summary = "a network that decides in one step, trained without annealing; best of 8"

    def missing(self) -> str | None:
        """Its models, which are not in the package."""
        return None if self._trained_for() else f"its models; {FIND_BASELINES}"

    def solves(self, problem: Problem) -> bool:
        """The problems it was trained for; any, where its models are missing."""
        return problem.name in (self._trained_for() or [problem.name])

    def _trained_for(self) -> list[str]:
        return [card["problem"] for card in list_models() if card["baseline"] == self.name]

    def solve(self, problem: Problem, graphs: Sequence[Graph], settings: Settings) -> list[Solution]:
        """Sample and decode."""
        model = choose_model(problem, graphs, baseline=self.name).name
        solver = solver_with(problem, model, settings.device)
        return solver.solve_graphs(graphs, OPTIONS, seed=settings.seed, on_solved=settings.on_solved)


class EgnAnneal(Egn):
    """The same with weights that were trained at a falling temperature."""

    name = "egn-anneal"
    summary = "a network that decides in one step, trained at a falling temperature; best of 8"
