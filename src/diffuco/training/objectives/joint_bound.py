"""The Joint Variational Upper Bound (Eq. 6): the paper's objective, which needs no solved example."""

from dataclasses import dataclass

from torch import Tensor

from diffuco.diffusion.loss import StepCost, backward_joint_bound
from diffuco.diffusion.noise import Noise, Temperature
from diffuco.diffusion.randomness import RandomSource
from diffuco.diffusion.reverse import Denoiser
from diffuco.graphs.batch import Batch
from diffuco.problems import Problem
from diffuco.training.objectives.base import Objective


@dataclass(frozen=True)
class JointBound(Objective):
    """temperature * KL(q(X_0:T) || p(X_0:T)) of paths that the network draws itself."""

    name = "joint-bound"

    samples_per_graph: int
    """M_KL: paths per graph."""
    steps_at_once: int
    """Diffusion steps differentiated at once."""

    @property
    def calls_at_once(self) -> int:
        """One call per diffusion step."""
        return self.steps_at_once

    def backward(
        self,
        denoiser: Denoiser,
        problem: Problem,
        noise: Noise,
        batch: Batch,
        *,
        temperature: Temperature,
        random: RandomSource,
        num_graphs: int,
        examples: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Add the gradient of the bound; return the bound, its terms and the likelihood of the paths."""
        cost = backward_joint_bound(
            denoiser,
            problem,
            noise,
            batch,
            temperature=temperature,
            num_samples=self.samples_per_graph,
            random=random,
            steps_per_chunk=self.steps_at_once,
            num_graphs=num_graphs,
        )
        return {
            "energy": cost.energy,
            "loss": cost.total,
            "entropy_term": cost.entropy,
            "noise_term": cost.noise,
            "forward_log_likelihood": forward_log_likelihood(cost, temperature),
        }


def forward_log_likelihood(cost: StepCost, temperature: Temperature) -> Tensor:
    """E[log p(X_0:T)] of the model's own paths under the forward process, without constants (App. B.4).

    At temperature 0 there is none, and the value is not finite.
    """
    return -(cost.noise + cost.energy) / temperature
