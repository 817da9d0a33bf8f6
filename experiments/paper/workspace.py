"""What a reproduction works with: options, trained models found by recipe, graphs and stored references."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from diffuco.evaluation.reference_store import Reference
from diffuco.evaluation.references import stored_references
from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.inference.solver import Solver
from diffuco.pretrained import list_models, load_model
from diffuco.training.recipes import RECIPES

Value = TypeVar("Value")


@dataclass(frozen=True)
class Options:
    """How much is measured, and with what."""

    quick: bool = False
    """Few graphs and samples, and tiny trained models: minutes on a CPU."""
    count: int | None = None
    """Graphs of every set; None: the item's own choice."""
    methods: tuple[str, ...] | None = None
    """Other methods to measure; None: the item's own choice."""
    models: Path | None = None
    """Folder of training runs to take before the shipped models; None: `runs`, after the shipped models."""
    graphs: Path | None = None
    """Folder of graph files, for Gset."""
    time_limit_s: float | None = None
    """Seconds per graph, for Gset."""
    share: tuple[int, int] = (1, 1)
    """Which of how many equal parts of an ablation's runs to train."""
    max_minutes: float | None = None
    """Training stops after this time; the same command continues it."""
    device: str = "auto"
    seed: int = 0


@dataclass
class Workspace:
    """The options and everything loaded with them."""

    options: Options
    _kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """Samples per graph."""
        return 2 if self.options.quick else 8

    @property
    def runs(self) -> Path:
        """The folder of training runs."""
        return self.options.models or Path("runs")

    def methods(self, usual: Sequence[str], *, quick: str) -> tuple[str, ...]:
        """Names of the other methods to measure: those asked for, else the usual ones or, in a hurry, the quick one."""
        if self.options.methods is not None:
            return self.options.methods
        return (quick,) if self.options.quick else tuple(usual)

    def graphs(self, dataset: str, count: int | None = None) -> list[Graph]:
        """The first test graphs of a dataset."""
        return self._once(("graphs", dataset, count), lambda: get_dataset(dataset).graphs("test", count))

    def references(self, problem: str, dataset: str, count: int | None = None) -> list[Reference | None]:
        """What is stored about the optima of these graphs."""
        graphs = self.graphs(dataset, count)
        return self._once(("references", problem, dataset, count), lambda: stored_references(problem, graphs))

    def solvers(self, recipe: str) -> list[Solver]:
        """The models trained by a recipe, one per seed; an InputError names the command that trains one."""
        return [self.solver(path) for path in self.model_paths(recipe)]

    def solver(self, model: str | Path) -> Solver:
        """A model ready to solve."""

        def load() -> Solver:
            checkpoint = load_model(model)
            if isinstance(model, Path):
                checkpoint = replace(checkpoint, name=model.parent.name)  # the run, not this machine's path to it
            return Solver(checkpoint.problem, checkpoint, device=self.options.device)

        return self._once(("solver", str(model)), load)

    def model_paths(self, recipe: str) -> list[str | Path]:
        """Runs `RECIPE` and `RECIPE-seedN` in the folder of runs, and shipped models of these names."""
        shipped: dict[str, str | Path] = {card["name"]: card["name"] for card in list_models()}
        trained: dict[str, str | Path] = {
            path.parent.name: path for path in self.runs.glob(f"{recipe}*/best.safetensors")
        }
        found = trained | shipped if self.options.models is None else shipped | trained
        named = re.compile(rf"{re.escape(recipe)}(-seed\d+)?")
        paths = [found[name] for name in sorted(found) if named.fullmatch(name)]
        if not paths:
            raise InputError(f"no model; `diffuco train {recipe}`" if recipe in RECIPES else f"no recipe '{recipe}'")
        return paths

    def _once(self, key: Any, make: Callable[[], Value]) -> Value:
        if key not in self._kept:
            self._kept[key] = make()
        value: Value = self._kept[key]
        return value
