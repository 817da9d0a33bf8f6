"""RAdam and Muon for one vector of parameters.

RAdam is torch's own function; `torch.optim.RAdam` does the same, but imports the compiler of torch when it is made,
which takes a second or more.
"""

import torch
from torch import Tensor, nn
from torch.optim.radam import radam

from diffuco.model.engine.parameters import FlatParameters


class RAdam:
    """The state of the optimiser; all of it stays in place, so that a recorded step sees what is loaded into it.

    >>> parameters = FlatParameters(torch.nn.Linear(1, 1, bias=False))
    >>> optimizer, before = RAdam(parameters, learning_rate=0.25), parameters.vector.item()
    >>> _ = parameters.gradient.fill_(1.0)
    >>> optimizer.step()
    >>> before - parameters.vector.item()
    0.25
    """

    def __init__(self, parameters: FlatParameters, learning_rate: float) -> None:
        self.parameters = parameters
        vector = parameters.vector.detach()
        self.learning_rate = torch.tensor(learning_rate, device=vector.device)
        self.state = {
            "step": torch.zeros((), device=vector.device),
            "exp_avg": torch.zeros_like(vector),
            "exp_avg_sq": torch.zeros_like(vector),
        }

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters by their gradient."""
        radam(
            [self.parameters.vector],
            [self.parameters.gradient],
            [self.state["exp_avg"]],
            [self.state["exp_avg_sq"]],
            [self.state["step"]],
            foreach=False,
            capturable=self.learning_rate.is_cuda,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,  # type: ignore[arg-type]
            weight_decay=0.0,
            eps=1e-8,
        )


class Muon(RAdam):
    """Moves every square block of a hidden matrix by the orthogonal matrix nearest to its momentum, the rest by RAdam.

    All directions of a matrix then learn equally fast, however large their gradients are (Jordan et al. 2024). Updates
    have the size of those of RAdam, so learning rates are alike.
    """

    momentum = 0.95
    root_mean_square = 0.2
    """Of the entries of an update, as RAdam's are about that large."""

    def __init__(self, parameters: FlatParameters, learning_rate: float, network: nn.Module) -> None:
        super().__init__(parameters, learning_rate)
        self.blocks = [blocks.to(parameters.vector.device) for blocks in square_blocks(network)]
        self.state |= {
            f"momentum{size}": torch.zeros(blocks.shape, device=blocks.device)
            for size, blocks in enumerate(self.blocks)
        }

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters by their gradient, which is no longer valid afterwards."""
        gradient, vector = self.parameters.gradient, self.parameters.vector.detach()
        for size, blocks in enumerate(self.blocks):
            fresh, at = gradient[blocks], blocks.flatten()
            momentum = self.state[f"momentum{size}"].lerp_(fresh, 1 - self.momentum)
            move = nearest_orthogonal(fresh.lerp(momentum, self.momentum))
            move *= self.learning_rate * self.root_mean_square * blocks.shape[-1] ** 0.5
            vector.index_add_(0, at, move.flatten(), alpha=-1)
            gradient.index_fill_(0, at, 0.0)
        super().step()  # does not move what has no gradient


def make_optimizer(name: str, parameters: FlatParameters, learning_rate: float, network: nn.Module) -> RAdam:
    """The optimiser of a recipe."""
    return Muon(parameters, learning_rate, network) if name == "muon" else RAdam(parameters, learning_rate)


def square_blocks(network: nn.Module) -> list[Tensor]:
    """Positions of the square blocks of all matrices that are as wide as high, or a multiple, by size. [M, F, F] each.

    >>> [tuple(blocks.shape) for blocks in square_blocks(nn.Sequential(nn.Linear(3, 8), nn.Linear(16, 8)))]
    [(2, 8, 8)]
    """
    found: dict[int, list[Tensor]] = {}
    for at in FlatParameters.positions(network).values():
        if at.dim() == 2 and len(at) > 1 and at.shape[1] % len(at) == 0:
            found.setdefault(len(at), []).extend(torch.split(at, len(at), dim=1))
    return [torch.stack(blocks) for blocks in found.values()]


def nearest_orthogonal(matrices: Tensor) -> Tensor:
    """About U V^T of each matrix U S V^T, by five Newton-Schulz iterations. [M, F, F] -> [M, F, F].

    Singular values end between 0.7 and 1.2, unless they are tiny.
    """
    x: Tensor = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-30)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    return x
