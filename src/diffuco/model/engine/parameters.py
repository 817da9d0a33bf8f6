"""All parameters of a network as one vector: one optimiser update, one message between processes, one norm."""

import torch
from torch import Tensor, nn


class FlatParameters:
    """One vector and one gradient; the network's parameters and their gradients are views of these.

    Create it after the network has moved to its device, because moving a network replaces the parameters' memory.

    >>> network = nn.Linear(2, 1)
    >>> parameters = FlatParameters(network)
    >>> parameters.vector.data.fill_(3.0)
    tensor([3., 3., 3.])
    >>> network.bias.item()
    3.0
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        self.vector = torch.cat([parameter.detach().flatten() for parameter in parameters]).requires_grad_()
        self.gradient = torch.zeros_like(self.vector)
        self.vector.grad = self.gradient
        views = zip(
            parameters, self._views(self.vector.detach(), model), self._views(self.gradient, model), strict=True
        )
        for parameter, values, gradient in views:
            parameter.data, parameter.grad = values, gradient

    @staticmethod
    def _views(vector: Tensor, model: nn.Module) -> list[Tensor]:
        parameters = list(model.parameters())
        parts = torch.split(vector, [parameter.numel() for parameter in parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, parameters, strict=True)]

    @staticmethod
    def positions(model: nn.Module) -> dict[str, Tensor]:
        """Positions of every parameter's elements in the vector, by the parameter's name and in its shape."""
        names = [name for name, _ in model.named_parameters()]
        size = sum(parameter.numel() for parameter in model.parameters())
        return dict(zip(names, FlatParameters._views(torch.arange(size), model), strict=True))
