"""A problem of your own: state its energy in 40 lines, train a small network for it in seconds, draw solutions.

    python examples/custom_problem.py [NUM_TRAIN_STEPS]

The problem here is Maximum Weight Independent Set. A new problem needs nothing else from the package: the loss, the
reverse process and the decoder take any `Problem`. (For the command line, it also has to be added to the lists that
CONTRIBUTING.md names.)
"""

import sys
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from diffuco.decoding import conditional_expectation
from diffuco.diffusion.loss import backward_joint_bound
from diffuco.diffusion.noise import make_noise
from diffuco.diffusion.randomness import RowRandom
from diffuco.graphs.batch import Batch, make_batch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.model import Gnn, GnnConfig
from diffuco.problems import Problem, QuadraticForm
from diffuco.sampling import Sampler
from diffuco.solver import draw_solutions

NUM_STEPS = 3


@dataclass(frozen=True)
class WeightedIndependentSet(Problem):
    """H(X) = -sum_i w_i x_i + penalty * sum_(i,j) x_i x_j, for node weights in 0..1."""

    name = "weighted-mis"
    title = "Maximum Weight Independent Set"
    sense = "max"
    uses_weights = True

    penalty: float = 1.01
    """Cost of one edge inside the set; above the largest weight, so that every minimum is feasible."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        return self.penalty * self.violations(batch, x) - self.objective(batch, x)

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Weight of the set. [N, S] -> [B, S]."""
        return batch.graph_sum(batch.node_weights[:, None] * x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """Edges inside the set. [N, S] -> [B, S]."""
        return batch.graph_sum(0.5 * x * batch.neighbor_sum(x))

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear: minus the weights; coupling `penalty` along edges."""
        return QuadraticForm(linear=-batch.node_weights, edge=self.penalty)


def main(num_train_steps: int) -> None:
    """Train on random graphs, then compare with the obvious heuristic on graphs the network has not seen."""
    problem = WeightedIndependentSet()
    model = train(problem, weighted_graphs("train", 256), num_train_steps)

    batch = make_batch(weighted_graphs("test", 64))
    sampler = Sampler(model, NUM_STEPS, torch.device("cpu"))
    seeds = np.random.default_rng(0)
    states, _ = draw_solutions(sampler, problem, batch, num_samples=8, step_factor=3, token_size=1, seeds=seeds)
    assert not problem.violations(batch, states).any()
    objectives = problem.objective(batch, states)
    # Decoding goes by falling probability, so probabilities near 0 in the order of the weights take the heaviest first.
    greedy = conditional_expectation(problem, batch, 1e-6 * batch.node_weights[:, None])
    print(f"mean weight of the sets, heaviest node first: {problem.objective(batch, greedy).mean():.3f}")
    print(f"mean weight of the sets, samples of the network: {objectives.mean():.3f}")
    print(f"mean weight of the sets, best of 8 samples: {objectives.max(1).values.mean():.3f}")


def train(problem: Problem, graphs: list[Graph], num_train_steps: int) -> Gnn:
    """Minimise the joint bound while the temperature falls to 0; `diffuco train` does the same with more comfort."""
    torch.manual_seed(0)
    model = Gnn(GnnConfig(num_steps=NUM_STEPS, num_layers=2, num_hidden=32, weighted=True))
    optimizer = torch.optim.RAdam(model.parameters(), lr=0.005)
    noise = make_noise("exponential", NUM_STEPS)
    generator = torch.Generator().manual_seed(0)
    for step in range(num_train_steps):
        chosen = torch.randint(len(graphs), (8,), generator=generator).tolist()
        optimizer.zero_grad()
        terms = backward_joint_bound(
            model,
            problem,
            noise,
            make_batch([graphs[index] for index in chosen]),
            temperature=0.05 * (1 - step / num_train_steps),
            num_samples=6,
            random=RowRandom(generator),
        )
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1:>4}  energy {terms.energy.item():.3f}")
    return model


def weighted_graphs(split: str, count: int) -> list[Graph]:
    """RB graphs of 20 to 42 nodes, with random node weights."""
    rng = np.random.default_rng(len(split))
    graphs = get_dataset("rb-tiny").graphs(split, count)
    return [replace(graph, node_weights=rng.uniform(0, 1, graph.num_nodes)) for graph in graphs]


if __name__ == "__main__":
    main(num_train_steps=int(sys.argv[1]) if len(sys.argv) > 1 else 400)
