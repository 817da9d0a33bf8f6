"""Near-optimal solutions of graph problems, sampled by a diffusion model that learned without solved examples.

The names in `__all__` are the whole public API. They are imported when first used, so that `import diffuco` and the
command line's `--help` do not wait for torch.

>>> import diffuco
>>> solution = diffuco.solve([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], "mis")
>>> solution.objective, solution.feasible
(2.0, True)
"""

from typing import TYPE_CHECKING

from diffuco.foundation.lazy import lazy_names
from diffuco.foundation.version import __version__ as __version__

if TYPE_CHECKING:
    from diffuco import problems
    from diffuco.diffusion.noise import Noise
    from diffuco.evaluation.compare import compare
    from diffuco.evaluation.evaluate import Measurement, evaluate
    from diffuco.foundation.errors import InputError
    from diffuco.graphs.batch import Batch
    from diffuco.graphs.collection import Collection
    from diffuco.graphs.formats import Format, read_graph, register_format, write_graph
    from diffuco.graphs.graph import Graph
    from diffuco.inference.solver import Solver
    from diffuco.integrations.dimod_sampler import DiffUCOSampler
    from diffuco.methods import Deadline, GraphByGraph, Method, Settings, register_method
    from diffuco.model import Checkpoint, Network, NetworkConfig, register_network
    from diffuco.pretrained import list_models, load_model, save_model
    from diffuco.problems import (
        Annealing,
        CoverForm,
        LinearModel,
        Problem,
        QuadraticForm,
        Verdict,
        register_problem,
    )
    from diffuco.problems.conformance import check_problem
    from diffuco.solution.result import Solution
    from diffuco.solution.samples import BoltzmannSamples
    from diffuco.solution.verification import check
    from diffuco.solving.entry import solve
    from diffuco.solving.sampling import sample
    from diffuco.training.config import TrainConfig
    from diffuco.training.loop import train
    from diffuco.training.objectives import Objective


_HOME = {
    "Annealing": "diffuco.problems",
    "Batch": "diffuco.graphs.batch",
    "BoltzmannSamples": "diffuco.solution.samples",
    "Checkpoint": "diffuco.model",
    "Collection": "diffuco.graphs.collection",
    "CoverForm": "diffuco.problems",
    "Deadline": "diffuco.methods",
    "DiffUCOSampler": "diffuco.integrations.dimod_sampler",
    "Format": "diffuco.graphs.formats",
    "Graph": "diffuco.graphs.graph",
    "GraphByGraph": "diffuco.methods",
    "InputError": "diffuco.foundation.errors",
    "LinearModel": "diffuco.problems",
    "Measurement": "diffuco.evaluation.evaluate",
    "Method": "diffuco.methods",
    "Network": "diffuco.model",
    "NetworkConfig": "diffuco.model",
    "Noise": "diffuco.diffusion.noise",
    "Objective": "diffuco.training.objectives",
    "Problem": "diffuco.problems",
    "QuadraticForm": "diffuco.problems",
    "Settings": "diffuco.methods",
    "Solution": "diffuco.solution.result",
    "Solver": "diffuco.inference.solver",
    "TrainConfig": "diffuco.training.config",
    "Verdict": "diffuco.problems",
    "check": "diffuco.solution.verification",
    "check_problem": "diffuco.problems.conformance",
    "compare": "diffuco.evaluation.compare",
    "evaluate": "diffuco.evaluation.evaluate",
    "list_models": "diffuco.pretrained",
    "load_model": "diffuco.pretrained",
    "problems": "diffuco.problems",
    "read_graph": "diffuco.graphs.formats",
    "register_format": "diffuco.graphs.formats",
    "register_method": "diffuco.methods",
    "register_network": "diffuco.model",
    "register_problem": "diffuco.problems",
    "sample": "diffuco.solving.sampling",
    "save_model": "diffuco.pretrained",
    "solve": "diffuco.solving.entry",
    "train": "diffuco.training.loop",
    "write_graph": "diffuco.graphs.formats",
}

__all__ = [
    "Annealing",
    "Batch",
    "BoltzmannSamples",
    "Checkpoint",
    "Collection",
    "CoverForm",
    "Deadline",
    "DiffUCOSampler",
    "Format",
    "Graph",
    "GraphByGraph",
    "InputError",
    "LinearModel",
    "Measurement",
    "Method",
    "Network",
    "NetworkConfig",
    "Noise",
    "Objective",
    "Problem",
    "QuadraticForm",
    "Settings",
    "Solution",
    "Solver",
    "TrainConfig",
    "Verdict",
    "check",
    "check_problem",
    "compare",
    "evaluate",
    "list_models",
    "load_model",
    "problems",
    "read_graph",
    "register_format",
    "register_method",
    "register_network",
    "register_problem",
    "sample",
    "save_model",
    "solve",
    "train",
    "write_graph",
]


__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
