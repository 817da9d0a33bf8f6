"""The graph neural network q(X_{t-1} | X_t) (App. C.4). It sees a graph, a state and a step, but never the problem.

Legend: B graphs, N rows, S samples, F hidden features, R random features.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import Batch
from diffuco.model.base import Network, NetworkConfig

MAX_SIZES = {"num_steps": 10**6, "num_layers": 1000, "num_hidden": 2**16, "num_random_features": 2**16}
"""Larger networks are mistakes, which would fill the memory."""


@dataclass(frozen=True)
class GnnConfig(NetworkConfig):
    """The network's shape; `num_steps` is also the length of the one-hot step encoding."""

    num_layers: int = 8
    """Message-passing layers (the paper: 4 to 8)."""
    num_hidden: int = 64
    """n_h = 64 in all of the paper's experiments."""
    num_random_features: int = 5
    """Random node features at every step; 5 on RB graphs in App. C.5."""
    weighted: bool = False
    """Whether messages are scaled by edge weights and nodes see their own weight (cuts and QUBOs)."""
    node_weighted: bool = False
    """Whether nodes see their weight relative to the heaviest node of the graph (problems about sets of nodes)."""

    def __post_init__(self) -> None:
        for name, most in MAX_SIZES.items():
            size = getattr(self, name)
            if type(size) is not int or not 0 <= size <= most:
                raise InputError(f"{name} is {repr(size)[:40]}; give a whole number from 0 to {most}")

    @property
    def num_inputs(self) -> int:
        """Number of encoder inputs per node: its state, its weight if it sees one, and random features."""
        return 1 + (self.weighted or self.node_weighted) + self.num_random_features


class Gnn(Network):
    """Encoder, message-passing layers and a three-layer head that gives one logit per node."""

    name = "gnn"
    Config = GnnConfig
    is_recordable = True
    config: GnnConfig

    def __init__(self, config: GnnConfig) -> None:
        super().__init__(config)
        hidden = config.num_hidden
        self.encode_node = nn.Linear(config.num_inputs, hidden)
        self.encode_step = nn.Linear(config.num_steps, hidden, bias=False)
        self.layers = nn.ModuleList(MessageLayer(hidden, config.weighted) for _ in range(config.num_layers))
        self.head = nn.Sequential(
            *(nn.Linear(hidden, hidden), nn.ReLU(), nn.LayerNorm(hidden)),
            *(nn.Linear(hidden, hidden), nn.ReLU(), nn.LayerNorm(hidden)),
            nn.Linear(hidden, 1),
        )

    @property
    def num_random_features(self) -> int:
        """R: random numbers that each node gets at every step."""
        return self.config.num_random_features

    def stretched(self, factor: int) -> "Gnn":
        """The same network for `factor` times as many steps; each of its steps is repeated `factor` times in a row."""
        longer = Gnn(replace(self.config, num_steps=factor * self.config.num_steps))
        parameters = self.state_dict()
        steps = parameters["encode_step.weight"].repeat_interleave(factor, dim=1)
        longer.load_state_dict(parameters | {"encode_step.weight": steps})
        return longer

    def forward(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """Logits of X_{t-1}: states [N, S], steps t in 1..T [S], random features [N, S, R] -> [N, S]."""
        scale = weight_scale(batch) if self.config.weighted else None
        h = self.encode(batch, x, step, features)
        for layer in self.layers:
            h = layer(batch, h, scale)
        logits: Tensor = self.head(h).squeeze(-1)
        return logits.float() if logits.dtype == torch.bfloat16 else logits

    def encode(self, batch: Batch, x: Tensor, step: Tensor, features: Tensor) -> Tensor:
        """What the first layer gets: what each node sees, and the step. [N, S, F]."""
        one_hot = F.one_hot(step - 1, self.config.num_steps).to(x.dtype)
        return torch.add(self.encode_node(self.inputs(batch, x, features)), self.encode_step(one_hot))

    def inputs(self, batch: Batch, x: Tensor, features: Tensor) -> Tensor:
        """What each node sees: its state, random features and its weight. [N, S, I]."""
        weights = node_inputs(batch, self.config)
        own = [] if weights is None else [weights[:, None, None].expand(*x.shape, 1)]
        return torch.cat([2 * x[..., None] - 1, features, *own], dim=-1)


class MessageLayer(nn.Module):
    """h' = LayerNorm(W h + MLP([h, GraphNorm(sum of neighbours' messages / sqrt(degree))]))."""

    def __init__(self, num_hidden: int, weighted: bool) -> None:
        super().__init__()
        self.weighted = weighted
        self.message = nn.Linear(num_hidden, num_hidden, bias=False)
        self.message_norm = GraphNorm(num_hidden)
        self.skip = nn.Linear(num_hidden, num_hidden, bias=False)
        self.node_mlp = nn.Sequential(
            *(nn.Linear(2 * num_hidden, num_hidden), nn.ReLU(), nn.LayerNorm(num_hidden)),
            *(nn.Linear(num_hidden, num_hidden), nn.ReLU()),
        )
        self.norm = nn.LayerNorm(num_hidden)

    def forward(self, batch: Batch, h: Tensor, scale: Tensor | None) -> Tensor:
        """One round of messages; `scale` [N] divides edge weights if the network uses them. [N, S, F]."""
        divisor = batch.degrees.clamp(min=1).sqrt()
        if scale is not None:
            divisor = divisor * scale
        summed = batch.neighbor_sum(self.message(h), weighted=self.weighted)
        aggregated = self.message_norm(batch, summed * (1 / divisor)[:, None, None].to(summed.dtype))
        return self.update(h, aggregated.to(h.dtype))

    def update(self, h: Tensor, aggregated: Tensor) -> Tensor:
        """The new features of nodes, given what their neighbours say. [N, S, F]."""
        out: Tensor = self.norm(self.skip(h) + self.node_mlp(torch.cat([h, aggregated], dim=-1)))
        return out


class GraphNorm(nn.Module):
    """Normalise every feature over the nodes of one graph and sample, after removing a learnable share of the mean."""

    epsilon = 1e-5

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.mean_scale = nn.Parameter(torch.ones(num_features))
        self.scale = nn.Parameter(torch.ones(num_features))
        self.shift = nn.Parameter(torch.zeros(num_features))

    def forward(self, batch: Batch, values: Tensor) -> Tensor:
        """[N, S, F] -> [N, S, F]; statistics are computed at least in single precision."""
        values = values.float() if values.dtype == torch.bfloat16 else values
        centred = values - batch.spread(self.mean_scale * batch.graph_mean(values))
        variance = batch.graph_mean(centred.square())
        return centred * batch.spread(self.scale * (variance + self.epsilon).rsqrt()) + self.shift


def node_inputs(batch: Batch, config: GnnConfig) -> Tensor | None:
    """The weights that nodes see; None if the network sees none. [N]."""
    if config.weighted:
        return batch.node_weights_or(0.0) / weight_scale(batch)
    if not config.node_weighted:
        return None
    return torch.ones_like(batch.degrees) if batch.relative_weights is None else batch.relative_weights


def weight_scale(batch: Batch) -> Tensor:
    """Root mean square of each graph's node and edge weights, so that doubling all weights changes no answer. [N]."""
    squares = batch.node_weights_or(0.0).square()
    squares = squares + 0.5 * batch.squared_weight_sum()
    counts = batch.graph_sum((1 + 0.5 * batch.degrees)[:, None])
    mean = batch.graph_sum(squares[:, None]) / counts.clamp(min=1)
    return batch.spread(mean.clamp(min=1e-12).sqrt())[:, 0]
