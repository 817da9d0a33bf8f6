"""A problem of your own: state its energy in 40 lines, train a small network for it in seconds, draw solutions.

    python examples/custom_problem.py [NUM_TRAIN_STEPS]

The problem here is where to open shops: each site has a profit, and two shops on neighbouring sites lose some of it to
each other. A new problem needs nothing else from the package: the loss, the reverse process and the decoder take any
`Problem`. (For the command line, it also has to be added to the lists that CONTRIBUTING.md names.)
"""

import sys
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from diffuco.diffusion.loss import backward_joint_bound
from diffuco.diffusion.noise import make_noise
from diffuco.diffusion.randomness import RowRandom
from diffuco.graphs.batch import Batch, make_batch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph
from diffuco.inference.answers import draw_solutions
from diffuco.inference.decoding import conditional_expectation
from diffuco.inference.sampler import Sampler
from diffuco.model import Gnn, GnnConfig
from diffuco.problems import Problem, QuadraticForm

NUM_STEPS = 3


@dataclass(frozen=True)
class ShopSites(Problem):
    """H(X) = -sum_i w_i x_i + loss * sum_(i,j) x_i x_j: node weights are profits, neighbours compete for customers."""

    name = "shop-sites"
    title = "Sites of shops"
    sense = "max"
    uses_node_weights = True

    loss: float = 0.6
    """What two neighbours lose by each other."""

    def energy(self, batch: Batch, x: Tensor) -> Tensor:
        """H(X) for states, E[H(X)] for probabilities. [N, S] -> [B, S]."""
        profits = batch.node_weights_or(1.0)[:, None].to(x.dtype)
        return batch.graph_sum(x * (0.5 * self.loss * batch.neighbor_sum(x) - profits))

    def objective(self, batch: Batch, x: Tensor) -> Tensor:
        """Profit of the chosen sites. [N, S] -> [B, S]."""
        return -self.energy(batch, x)

    def violations(self, batch: Batch, x: Tensor) -> Tensor:
        """None: shops may compete. [N, S] -> [B, S]."""
        return batch.graph_sum(torch.zeros_like(x))

    def form(self, batch: Batch) -> QuadraticForm:
        """Linear: minus the profits; coupling `loss` along edges."""
        return QuadraticForm(linear=-batch.node_weights_or(1.0), edge=self.loss)


def main(num_train_steps: int) -> None:
    """Train on random graphs, then compare with the obvious heuristic on graphs the network has not seen."""
    problem = ShopSites()
    model = train(problem, sites("train", 256), num_train_steps)

    batch = make_batch(sites("test", 64))
    sampler = Sampler(model, NUM_STEPS, torch.device("cpu"))
    seeds = np.random.default_rng(0)
    states, _ = draw_solutions(sampler, problem, batch, num_samples=8, step_factor=3, token_size=1, seeds=seeds)
    objectives = problem.objective(batch, states)
    # Decoding goes by falling probability, so probabilities near 0 in the order of profits take the best site first.
    greedy = conditional_expectation(problem, batch, 1e-6 * batch.node_weights_or(1.0)[:, None])
    print(f"mean profit, best site first: {problem.objective(batch, greedy).mean():.3f}")
    print(f"mean profit, samples of the network: {objectives.mean():.3f}")
    print(f"mean profit, best of 8 samples: {objectives.max(1).values.mean():.3f}")


def train(problem: Problem, graphs: list[Graph], num_train_steps: int) -> Gnn:
    """Minimise the joint bound while the temperature falls to 0; `diffuco train` does the same with more comfort."""
    torch.manual_seed(0)
    model = Gnn(GnnConfig(num_steps=NUM_STEPS, num_layers=2, num_hidden=32, node_weighted=True))
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


def sites(split: str, count: int) -> list[Graph]:
    """RB graphs of 20 to 42 nodes, with random profits."""
    rng = np.random.default_rng(len(split))
    graphs = get_dataset("rb-tiny").graphs(split, count)
    return [replace(graph, node_weights=rng.uniform(0, 1, graph.num_nodes)) for graph in graphs]


if __name__ == "__main__":
    main(num_train_steps=int(sys.argv[1]) if len(sys.argv) > 1 else 400)
