"""Everything that defines a training run: one frozen dataclass, saved with the parameters, enough to run it again."""

import dataclasses
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

from diffuco.diffusion.noise import NOISES
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.model import NETWORKS
from diffuco.training.objectives import OBJECTIVES


@dataclass(frozen=True)
class TrainConfig:
    """A training run. Defaults are those that most rows of the paper share (App. C.5); recipes set the rest."""

    problem: str
    """Name of the problem, such as `mis`."""
    dataset: str
    """Name of the dataset: its train split is learned from, its validation split is used to validate."""
    num_steps: int
    """T: diffusion steps."""
    start_temperature: float
    """Temperature at the first optimiser step; it changes linearly to the end temperature at the last step."""
    anneal_epochs: int
    """N_anneal: passes over the training graphs."""
    end_temperature: float = 0.0
    """Temperature at the last optimiser step; equal to the start temperature, it is constant (Fig. 3, right)."""
    learning_rate: float = 0.002
    """Peak learning rate of the optimiser."""
    optimizer: Literal["radam", "muon"] = "radam"
    """Muon learns faster in short runs and ends level in long ones."""
    noise: str = "annealed"
    """Name of the forward process (Sec. 3.2; `exponential` is the schedule of later work)."""
    num_layers: int = 8
    """Message-passing layers of the network."""
    num_hidden: int = 64
    """Features per node."""
    num_random_features: int = 5
    """Random features per node, redrawn at every diffusion step."""
    weighted: bool = False
    """Whether the network sees the weights that the problem uses, of nodes or of edges."""
    penalty: float = 1.01
    """B of Table 2 (A is 1); problems without constraints ignore it."""
    graphs_per_batch: int = 30
    """M_omega: graphs per batch."""
    samples_per_graph: int = 10
    """M_KL: paths per graph, over which the leave-one-out baseline is taken."""
    learning_rate_schedule: Literal["cosine", "constant"] = "cosine"
    """Cosine: 2.5 % warm-up, then down to a tenth of the peak. Constant: as in the paper."""
    max_gradient_norm: float = 1.0
    """Gradients are clipped to this norm."""
    steps_per_chunk: int = 0
    """Diffusion steps differentiated at once; 0 means all. A lower number saves memory and gives the same gradient."""
    num_train_graphs: int = 4000
    """Number of graphs taken from the train split."""
    num_validation_graphs: int = 64
    """Number of graphs taken from the validation split."""
    validation_samples: int = 8
    """Samples per validation graph, each decoded with CE."""
    validate_every: int = 500
    """Optimiser steps between validations."""
    checkpoint_every: int = 500
    """Optimiser steps between resumable checkpoints."""
    engine: Literal["auto", "reference", "compiled", "fused"] = "auto"
    """How the network is computed: plain float32, torch.compile with bfloat16 products, or Triton kernels in float16.
    Energies, log-probabilities and the optimiser are always float32. Auto is the fastest that runs on the device."""
    start_from: str = ""
    """Name or path of a model whose parameters the run starts with; if empty, they are random. The model may have
    fewer steps: each step of a model with half as many becomes two."""
    seed: int = 0
    """Seed of the initial parameters, the data order and the samples."""
    network: str = "gnn"
    """Name of the network."""
    objective: str = "joint-bound"
    """Name of what is minimised."""
    imitation_epochs: int = 0
    """Passes over the training graphs that first imitate annealed solutions; they have a learning rate schedule of
    their own. Start the objective at a low temperature then, so that it keeps what was learned."""

    @property
    def steps_at_once(self) -> int:
        """Diffusion steps differentiated at once."""
        return min(self.steps_per_chunk or self.num_steps, self.num_steps)

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in one pass over the training graphs; an incomplete last batch is dropped."""
        return max(1, self.num_train_graphs // self.graphs_per_batch)

    @property
    def imitation_steps(self) -> int:
        """Optimiser steps that imitate, at the beginning of the run."""
        return self.imitation_epochs * self.steps_per_epoch

    @property
    def total_steps(self) -> int:
        """Optimiser steps of the whole run."""
        return self.imitation_steps + self.anneal_epochs * self.steps_per_epoch

    def share_done(self, step: int) -> tuple[int, int]:
        """Steps taken before this one in its stage, and all steps of that stage; both schedules depend on these alone.

        The stages are imitation, if there is any, and the objective.
        """
        imitated = self.imitation_steps
        return (step, imitated) if step < imitated else (step - imitated, self.total_steps - imitated)

    def __post_init__(self) -> None:
        for name in ("num_steps", "anneal_epochs", "num_layers", "num_hidden", "graphs_per_batch", "samples_per_graph"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; give 1 or more")
        if self.imitation_epochs < 0:
            raise InputError(f"imitation_epochs is {self.imitation_epochs}; give 0 or more")
        if self.num_train_graphs < self.graphs_per_batch:
            raise InputError(
                f"{counted(self.num_train_graphs, 'training graph')}, too few for a batch of {self.graphs_per_batch}; "
                "lower graphs_per_batch or raise num_train_graphs"
            )


def with_settings(config: TrainConfig, settings: Sequence[str]) -> TrainConfig:
    """A copy with `key=value` settings applied; each value is read as the type of its field.

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
    lists: dict[str, dict[str, Any]] = {"noise": NOISES, "network": NETWORKS, "objective": OBJECTIVES}
    choices = get_args(kind) or tuple(lists.get(name, ()))
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
