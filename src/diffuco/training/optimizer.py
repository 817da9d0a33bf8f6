"""RAdam for one vector, by torch's own function.

`torch.optim.RAdam` does the same, but imports the compiler of torch when it is made, which takes a second or more.
"""

import torch
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
