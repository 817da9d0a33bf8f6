"""Everything that defines a training run: one frozen dataclass, saved beside the weights, enough to run it again."""

import dataclasses
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.model.gnn import GnnConfig
from diffuco.problems import get_problem


@dataclass(frozen=True)
class TrainConfig:
    """A training run. Defaults are shared by the paper's rows (App. C.5); recipes set what differs."""

    problem: str
    """Name of the problem, such as `mis`."""
    dataset: str
    """Name of the dataset whose train split is learned from and whose validation split is watched."""
    num_steps: int
    """T: diffusion steps."""
    start_temperature: float
    """Temperature at the first step; from there to the end temperature at the last it is linear."""
    anneal_epochs: int
    """N_anneal: passes over the training graphs."""
    end_temperature: float = 0.0
    """Temperature at the last step; the start temperature keeps it constant (Fig. 3, right)."""
    learning_rate: float = 0.002
    """Of RAdam, at its highest."""
    noise: Literal["annealed", "categorical", "exponential"] = "annealed"
    """Forward process (Sec. 3.2; `exponential` is the schedule of later work)."""
    num_layers: int = 8
    """Message-passing layers."""
    num_hidden: int = 64
    """Features per node."""
    num_random_features: int = 5
    """Random node features, redrawn every step."""
    weighted: bool = False
    """Whether the network reads the weights that the problem knows, of nodes or edges."""
    penalty: float = 1.01
    """B of Table 2 (A is 1); unused by problems without constraints."""
    graphs_per_batch: int = 30
    """M_omega."""
    samples_per_graph: int = 10
    """M_KL: paths per graph, over which the leave-one-out baseline is taken."""
    learning_rate_schedule: Literal["cosine", "constant"] = "cosine"
    """Cosine: 2.5 % warm-up, then down to a tenth. Constant: the paper's own."""
    max_gradient_norm: float = 1.0
    """Gradients are clipped to this norm."""
    steps_per_chunk: int = 0
    """Diffusion steps differentiated at once; 0: all. Lower it when memory is short: the gradient stays the same."""
    num_train_graphs: int = 4000
    """Graphs of the train split that are used."""
    num_validation_graphs: int = 64
    """Graphs of the validation split that are watched."""
    validation_samples: int = 8
    """Samples per validation graph, each decoded with CE."""
    validate_every: int = 500
    """Optimiser steps between validations."""
    checkpoint_every: int = 500
    """Optimiser steps between resumable checkpoints."""
    engine: Literal["auto", "reference", "compiled", "fused"] = "auto"
    """How the network is computed: plain float32, torch.compile with bfloat16 products, or Triton kernels in float16.
    Energies, log-probabilities and the optimiser are always float32. Auto takes the fastest that the device has."""
    start_from: str = ""
    """Shipped model, or path of one, whose weights the run begins with; random ones if empty. It may have a part
    of the steps: of half as many, each begins as two."""
    seed: int = 0
    """Of weights, data order and samples."""

    @property
    def model(self) -> GnnConfig:
        """The network this run trains."""
        sees_edges = get_problem(self.problem).uses_edge_weights
        return GnnConfig(
            num_steps=self.num_steps,
            num_layers=self.num_layers,
            num_hidden=self.num_hidden,
            num_random_features=self.num_random_features,
            weighted=self.weighted and sees_edges,
            node_weighted=self.weighted and not sees_edges,
        )

    @property
    def steps_at_once(self) -> int:
        """Diffusion steps differentiated at once."""
        return min(self.steps_per_chunk or self.num_steps, self.num_steps)

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in one pass over the training graphs; an incomplete last batch is left out."""
        return max(1, self.num_train_graphs // self.graphs_per_batch)

    @property
    def total_steps(self) -> int:
        """Optimiser steps of the whole run; both schedules are functions of the step and this."""
        return self.anneal_epochs * self.steps_per_epoch

    def __post_init__(self) -> None:
        for name in ("num_steps", "anneal_epochs", "num_layers", "num_hidden", "graphs_per_batch", "samples_per_graph"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; give 1 or more")
        if self.num_train_graphs < self.graphs_per_batch:
            raise InputError(
                f"{counted(self.num_train_graphs, 'training graph')}, too few for a batch of {self.graphs_per_batch}; "
                "lower graphs_per_batch or raise num_train_graphs"
            )


def with_settings(config: TrainConfig, settings: Sequence[str]) -> TrainConfig:
    """A copy with `key=value` settings applied, each value read as its field's type.

    >>> config = TrainConfig("mis", "rb-small", num_steps=4, start_temperature=0.3, anneal_epochs=10)
    >>> with_settings(config, ["num_steps=6", "engine=reference"]).num_steps
    6
    """
    types = get_type_hints(TrainConfig)
    changes: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator:
            raise InputError(f"setting '{setting}' has no value; write it as key=value")
        if name not in types:
            close = difflib.get_close_matches(name, types, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(types)}"
            raise InputError(f"unknown setting '{name}'; {hint}")
        changes[name] = _parse(name, text, types[name])
    return dataclasses.replace(config, **changes)


def _parse(name: str, text: str, kind: Any) -> Any:
    choices = get_args(kind)
    if choices:
        if text not in choices:
            raise InputError(f"{name} is '{text}'; choose one of {', '.join(choices)}")
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise InputError(f"{name} is '{text}'; give true or false")
        return text.lower() == "true"
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{name} is '{text}'; give a value of type {kind.__name__}") from None
