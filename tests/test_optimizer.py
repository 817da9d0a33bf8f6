"""RAdam does what torch's own class does, bit for bit, without its compiler; Muon moves matrices as it says."""

import subprocess
import sys

import torch

from diffuco.model.engine.parameters import FlatParameters
from diffuco.training.optimizer import Muon, RAdam, nearest_orthogonal, square_blocks


def network():
    torch.manual_seed(0)
    return torch.nn.Linear(7, 5)


def test_steps_are_those_of_torch():
    ours, theirs = FlatParameters(network()), FlatParameters(network())
    optimizer = RAdam(ours, learning_rate=0.1)
    expected = torch.optim.RAdam([theirs.vector], lr=torch.tensor(0.1), foreach=False)
    for step in range(20):  # from the sixth on, steps are divided by the root of the second moment
        gradient = torch.randn(40, generator=torch.Generator().manual_seed(step))
        rate = 0.1 / (step + 1)
        optimizer.learning_rate.fill_(rate)
        expected.param_groups[0]["lr"].fill_(rate)
        ours.gradient.copy_(gradient)
        theirs.gradient.copy_(gradient)
        optimizer.step()
        expected.step()
        torch.testing.assert_close(ours.vector, theirs.vector, rtol=0, atol=0)
    state = expected.state_dict()["state"][0]
    assert optimizer.state.keys() == state.keys()
    for name, value in optimizer.state.items():
        torch.testing.assert_close(value, state[name], rtol=0, atol=0)


def test_the_nearest_orthogonal_matrix_is_that_of_the_singular_vectors():
    given = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    left, values, right = torch.linalg.svd(given)
    found = left.mT @ nearest_orthogonal(given) @ right.mT  # diagonal, in the basis of the singular vectors
    diagonal = found.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(found, torch.diag_embed(diagonal))
    assert ((diagonal > 0.6) & (diagonal < 1.3))[values > 0.1 * values[:, :1]].all()


def test_muon_moves_square_blocks_as_far_in_all_directions_and_the_rest_as_radam_does():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Linear(16, 8))
    parameters = FlatParameters(model)
    (blocks,) = square_blocks(model)
    before, gradient = parameters.vector.detach().clone(), torch.randn(len(parameters.vector))
    parameters.gradient.copy_(gradient)
    Muon(parameters, learning_rate=0.5, network=model).step()
    move = before - parameters.vector.detach()
    torch.testing.assert_close(move[blocks], 0.5 * 0.2 * 8**0.5 * nearest_orthogonal(gradient[blocks]))
    rest = torch.ones(len(move), dtype=torch.bool).index_fill(0, blocks.flatten(), False)
    torch.testing.assert_close(move[rest], 0.5 * gradient[rest])  # RAdam's first step


def test_muon_remembers_gradients():
    model = torch.nn.Linear(4, 4, bias=False)
    parameters = FlatParameters(model)
    optimizer = Muon(parameters, learning_rate=0.1, network=model)
    first, second = torch.eye(4).flatten(), torch.eye(4).flip(0).flatten()
    for gradient in (first, second):
        parameters.gradient.copy_(gradient)
        before = parameters.vector.detach().clone()
        optimizer.step()
    momentum = 0.95 * 0.05 * first + 0.05 * second
    torch.testing.assert_close(optimizer.state["momentum0"].flatten(), momentum)
    expected = nearest_orthogonal((0.95 * momentum + 0.05 * second).view(1, 4, 4)).flatten()
    torch.testing.assert_close(before - parameters.vector.detach(), 0.1 * 0.2 * 2 * expected)


def test_training_does_not_import_the_compiler_of_torch(tmp_path):
    code = f"""
import sys
from diffuco.cli import main
few = ["--set", "num_train_graphs=32", "--set", "num_validation_graphs=4"]
main(["train", "mis-tiny", "--out", {str(tmp_path / "run")!r}, "--stop-after", "0.001", *few])
assert "torch" in sys.modules and "torch._dynamo" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
