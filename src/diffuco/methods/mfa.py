"""Mean-field annealing (Bilbro et al. 1988): the best product distribution while the temperature falls, then decoded.

At each temperature the probabilities move towards the fixed point p_i = sigmoid(-dH/dx_i / temperature), all at once
and half of the way, as full parallel steps would oscillate. At the end Conditional Expectation makes states of them.

Legend: N rows, S starts per graph.
"""

import torch
from torch import Tensor

from diffuco.graphs.batch import Batch
from diffuco.inference.refinement import weight_scale
from diffuco.methods.annealer import Annealer
from diffuco.methods.base import Deadline
from diffuco.problems import Problem

NUM_STARTS = 8
NUM_STEPS = 300
START_TEMPERATURE, END_TEMPERATURE = 2.0, 0.02
"""In units of the energy; for problems with weights, of a typical field."""
STEP_SIZE = 0.5
MAX_LOGIT = 15.0


class MeanFieldAnnealing(Annealer):
    """Eight random starts of 300 steps, at a temperature that falls geometrically; a time limit ends it early."""

    name = "mfa"
    summary = "mean-field annealing, then Conditional Expectation"
    time_limit = "stops"

    def num_columns(self, problem: Problem) -> int:
        """Starts per graph."""
        return NUM_STARTS

    def anneal(self, problem: Problem, batch: Batch, generator: torch.Generator, deadline: Deadline) -> Tensor:
        """Probabilities close to 0 and 1, from random ones close to 1/2. [N, S]."""
        start = torch.randn(batch.num_rows, NUM_STARTS, generator=generator, device=batch.device)
        logits = 0.1 * start
        scale = batch.spread(weight_scale(problem, batch)[:, None])  # [N, 1]
        for step in range(NUM_STEPS):
            if deadline.is_over:
                break
            falling = END_TEMPERATURE / START_TEMPERATURE
            temperature = START_TEMPERATURE * falling ** (step / (NUM_STEPS - 1)) * scale
            target = -problem.local_field(batch, logits.sigmoid()) / temperature
            # Without the bound, logits of the cold end would need as many steps to turn as they needed to grow.
            logits = torch.lerp(logits, target.clamp(-MAX_LOGIT, MAX_LOGIT), STEP_SIZE)
        return logits.sigmoid()
