"""A sampler of dimod: `DiffUCOSampler().sample(bqm, num_reads=8, seed=0)` (the extra `dwave`)."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.model.checkpoint import Checkpoint
from diffuco.inference.solver import Solver

try:
    import dimod
    from dimod.core.sampler import Sampler
except ImportError as error:
    raise InputError("dimod is not installed; run pip install 'diffuco[dwave]'") from error


class DiffUCOSampler(Sampler):
    """Low-energy states of any binary quadratic model, drawn by a diffusion model of QUBOs.

    One sampler may be used again and again, and from several threads. Each read is one sample of the model, decoded and
    refined.

    >>> sampler = DiffUCOSampler()
    >>> found = sampler.sample_ising({"a": 0.5}, {("a", "b"): -1}, num_reads=4, seed=0)
    >>> print(found.first.energy, found.first.sample["a"], found.first.sample["b"])
    -1.5 -1 -1
    >>> print(sampler.sample_qubo({(0, 0): -1, (0, 1): 2, (1, 1): -3}).first.energy)
    -3.0
    """

    def __init__(self, model: str | Path | Checkpoint | None = None, *, device: str = "auto") -> None:
        self._solver = Solver("qubo", model, device=device)

    @property
    def parameters(self) -> dict[str, list[str]]:
        """What `sample` takes."""
        return {"num_reads": [], "seed": [], "step_factor": []}

    @property
    def properties(self) -> dict[str, Any]:
        """The model and where it runs."""
        return {"model": self._solver.checkpoint.name, "device": str(self._solver.device)}

    def sample(
        self,
        bqm: "dimod.BinaryQuadraticModel",
        *,
        num_reads: int = 8,
        seed: int | None = None,
        step_factor: int = 3,
        **unknown: object,
    ) -> "dimod.SampleSet":
        """Draw `num_reads` samples; without a seed, other ones at every call.

        `info` of the result holds the model, the seed and `timing` in nanoseconds.
        """
        self.remove_unknown_kwargs(**unknown)
        started = time.perf_counter_ns()
        if seed is None:
            seed = int(np.random.default_rng().integers(2**31))
        graph = as_qubo(bqm)
        prepared = time.perf_counter_ns()
        (solution,) = self._solver.solve([graph], samples=num_reads, step_factor=step_factor, seed=seed)
        solved = time.perf_counter_ns()
        states = solution.states.T.astype(np.int8)
        values = 2 * states - 1 if bqm.vartype is dimod.SPIN else states
        samples = (values, list(graph.labels))
        found: dimod.SampleSet = dimod.SampleSet.from_samples_bqm(samples, bqm)  # type: ignore[no-untyped-call]
        timing = {
            "preprocessing_ns": prepared - started,
            "sampling_ns": solved - prepared,
            "postprocessing_ns": time.perf_counter_ns() - solved,
        }
        found.info.update(model=solution.model, seed=seed, timing=timing)
        return found


def as_qubo(bqm: "dimod.BinaryQuadraticModel") -> Graph:
    """The model over binary variables, without its constant, as a graph whose weights are the biases.

    >>> graph = as_qubo(dimod.BinaryQuadraticModel({"a": 1.0}, {("a", "b"): -2.0}, 5.0, "BINARY"))
    >>> graph.node_weights.tolist(), graph.edge_weights.tolist(), list(graph.labels)
    ([1.0, 0.0], [-2.0], ['a', 'b'])
    """
    binary = bqm.change_vartype(dimod.BINARY, inplace=False)
    labels = list(bqm.variables)
    vectors: Any = binary.to_numpy_vectors(variable_order=labels)
    linear, (rows, columns, couplings), _ = vectors
    pairs = np.stack([rows, columns], axis=1).astype(np.int64)
    return Graph.from_edges(
        pairs,
        len(linear),
        edge_weights=np.asarray(couplings, dtype=np.float64),
        node_weights=np.asarray(linear, dtype=np.float64),
        labels=labels,
    )
