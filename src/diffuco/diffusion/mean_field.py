"""A product of independent Bernoulli variables, given by logits: one reverse step q(X_{t-1} | X_t) (Sec. 4).

Everything is written in logits, so entropy and log-probability stay finite for probabilities that round to 0 or 1.
"""

from torch import Tensor
from torch.nn import functional as F


def entropy(logits: Tensor) -> Tensor:
    """-p log p - (1 - p) log(1 - p) of every variable.

    >>> import torch
    >>> entropy(torch.zeros(1)).exp()
    tensor([2.])
    """
    return F.softplus(logits) - logits * logits.sigmoid()


def log_prob(logits: Tensor, x: Tensor) -> Tensor:
    """log q(x) of every variable, for x in {0, 1}."""
    return x * logits - F.softplus(logits)


def sample(logits: Tensor, uniform: Tensor) -> Tensor:
    """Draw every variable from a uniform number in [0, 1): 1 with probability sigmoid(logit), else 0."""
    return (uniform < logits.sigmoid()).to(logits.dtype)
