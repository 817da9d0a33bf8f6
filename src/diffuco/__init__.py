"""Near-optimal solutions of graph problems, sampled by a diffusion model that learned without solved examples.

The names in `__all__` are the whole public API. They are imported when first used, so that `import diffuco` and the
command line's `--help` do not wait for torch.

>>> import diffuco
>>> solution = diffuco.solve([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], "mis")
>>> solution.objective, solution.feasible
(2.0, True)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diffuco import problems
    from diffuco.graphs.formats import read_graph
    from diffuco.graphs.graph import Graph
    from diffuco.integrations.dimod_sampler import DiffUCOSampler
    from diffuco.pretrained import list_models, load_model, save_model
    from diffuco.solution.result import Solution
    from diffuco.inference.solver import Solver
    from diffuco.solving.entry import solve

__version__ = "0.1.0"

__all__ = [
    "DiffUCOSampler",
    "Graph",
    "Solution",
    "Solver",
    "list_models",
    "load_model",
    "problems",
    "read_graph",
    "save_model",
    "solve",
]

_HOME = {
    "DiffUCOSampler": "diffuco.integrations.dimod_sampler",
    "Graph": "diffuco.graphs.graph",
    "Solution": "diffuco.solution.result",
    "Solver": "diffuco.inference.solver",
    "list_models": "diffuco.pretrained",
    "load_model": "diffuco.pretrained",
    "read_graph": "diffuco.graphs.formats",
    "save_model": "diffuco.pretrained",
    "solve": "diffuco.solving.entry",
}


def __getattr__(name: str) -> Any:
    if name == "problems":
        return import_module("diffuco.problems")
    if name not in _HOME:
        raise AttributeError(f"module 'diffuco' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
