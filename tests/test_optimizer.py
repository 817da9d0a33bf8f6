"""The optimiser does what torch's own class does, bit for bit, without importing the compiler of torch."""

import subprocess
import sys

import torch

from diffuco.model.engine.parameters import FlatParameters
from diffuco.training.optimizer import RAdam


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
