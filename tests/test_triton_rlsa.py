"""The kernel of RLSA against its reference: compiled where there is a GPU, interpreted elsewhere."""

import torch

from diffuco.diffusion.decoding import without_padding
from diffuco.graphs.batch import DenseBatch
from diffuco.methods.rlsa import Chains, take_step, take_step_in_one_kernel
from kernels import DEVICE, MARKS, importing_kernels
from test_decoding import every_problem, random_graph

with importing_kernels():
    from diffuco.methods import triton_rlsa  # noqa: F401

pytestmark = MARKS


@every_problem
def test_steps_are_those_of_the_reference(problem):
    graphs = [random_graph(nodes, 0.3, seed=nodes, weighted=True) for nodes in (1, 9, 21, 40)]
    batch = DenseBatch.from_graphs(graphs, DEVICE)
    torch.manual_seed(0)
    x = (torch.rand(batch.num_rows, 5, device=DEVICE) < 0.5).float()
    ranks = (batch.sizes // 4).clamp(1, 5)
    temperatures = torch.linspace(0.1, 0.5, len(graphs), device=DEVICE)

    def start():
        return Chains(x, x.clone(), torch.full((len(graphs), 5), torch.inf, device=DEVICE))

    expected, got = start(), start()
    for _ in range(6):
        uniform = torch.rand(batch.num_rows, 5, device=DEVICE)
        expected = take_step(
            problem, batch, expected, problem.local_field(batch, expected.x), uniform, temperatures, ranks
        )
        field = problem.local_field(batch, got.x)
        got = take_step_in_one_kernel(problem, batch, got, field, uniform, temperatures, ranks)
        assert torch.equal(got.x[batch.mask], expected.x[batch.mask])
        # Of states with the same energy, rounding decides which is the best.
        best = (problem.energy(batch, without_padding(batch, chains.best)) for chains in (got, expected))
        assert torch.allclose(*best, atol=1e-4)
        assert torch.allclose(got.lowest, expected.lowest, atol=1e-4)
