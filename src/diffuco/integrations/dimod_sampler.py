"""A sampler for dimod: `DiffUCOSampler().sample(bqm, num_reads=8, seed=0)` (the extra `dwave`)."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from diffuco.foundation.devices import pick_device
from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint
from diffuco.graphs.graph import Graph
from diffuco.model.checkpoint import Checkpoint
from diffuco.pretrained import load_model
from diffuco.pretrained.choice import default_model
from diffuco.solving.entry import solve

try:
    import dimod
    from dimod.core.sampler import Sampler
except ImportError as error:
    raise InputError(f"dimod is not installed; run {install_hint('dwave')}") from error


class DiffUCOSampler(Sampler):
    """Finds low-energy states of any binary quadratic model.

    With `num_reads`, it draws that many samples of a diffusion model for QUBOs, each decoded and refined. Without, it
    returns the answer of `diffuco.solve`, which is proven if that takes at most a second. A sampler can be used many
    times and from several threads.

    >>> sampler = DiffUCOSampler()
    >>> found = sampler.sample_ising({"a": 0.5}, {("a", "b"): -1}, num_reads=4, seed=0)
    >>> print(found.first.energy, found.first.sample["a"], found.first.sample["b"])
    -1.5 -1 -1
    >>> print(sampler.sample_qubo({(0, 0): -1, (0, 1): 2, (1, 1): -3}).first.energy)
    -3.0
    """

    def __init__(self, model: str | Path | Checkpoint | None = None, *, device: str = "auto") -> None:
        named = default_model("qubo") if model is None else model
        self._model = named if isinstance(named, Checkpoint) else load_model(named)
        self._device = device
        solve([], "qubo", model=self._model, device=device)  # refuses what cannot work before any sampling

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The parameters of `sample`."""
        return {"num_reads": [], "seed": [], "step_factor": []}

    @property
    def properties(self) -> dict[str, Any]:
        """The model and where it runs."""
        return {"model": self._model.name, "device": str(pick_device(self._device))}

    def sample(
        self,
        bqm: "dimod.BinaryQuadraticModel",
        *,
        num_reads: int | None = None,
        seed: int | None = None,
        step_factor: int | None = None,
        **unknown: object,
    ) -> "dimod.SampleSet":
        """Draw `num_reads` samples, or solve. Without a seed, every call may give another result.

        `info` of the result says what found it (`found_by`) and holds the seed and the `timing` in nanoseconds.
        """
        self.remove_unknown_kwargs(**unknown)
        started = time.perf_counter_ns()
        if seed is None:
            seed = int(np.random.default_rng().integers(2**31))
        graph = as_qubo(bqm)
        prepared = time.perf_counter_ns()
        asks_for_samples = num_reads is not None or step_factor is not None
        (solution,) = solve(
            [graph],
            "qubo",
            model=self._model if asks_for_samples else None,
            samples=num_reads,
            step_factor=step_factor,
            seed=seed,
            device=self._device,
        )
        solved = time.perf_counter_ns()
        states = (solution.states if asks_for_samples else solution.chosen[:, None]).T.astype(np.int8)
        values = 2 * states - 1 if bqm.vartype is dimod.SPIN else states
        samples = (values, list(graph.labels))
        found: dimod.SampleSet = dimod.SampleSet.from_samples_bqm(samples, bqm)  # type: ignore[no-untyped-call]
        timing = {
            "preprocessing_ns": prepared - started,
            "sampling_ns": solved - prepared,
            "postprocessing_ns": time.perf_counter_ns() - solved,
        }
        found.info.update(found_by=solution.found_by, seed=seed, timing=timing)
        return found


def as_qubo(bqm: "dimod.BinaryQuadraticModel") -> Graph:
    """The model in binary variables, without its constant, as a graph whose weights are the biases.

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
