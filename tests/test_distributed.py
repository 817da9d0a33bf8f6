"""Several processes on one machine, over gloo, against one process: the same batches have to give the same weights."""

import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import DATASETS
from diffuco.training.data import TrainingGraphs
from diffuco.training.distributed import Group
from diffuco.training.loop import train
from test_training import SHORT

CONFIG = replace(SHORT, graphs_per_batch=5, num_train_graphs=15, anneal_epochs=4, noise="annealed")


def torchrun(num_processes: int, out, *options: str) -> subprocess.CompletedProcess:
    settings = [f"--set={name}={value}" for name, value in asdict(CONFIG).items()]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(num_processes)]
    command = [*launcher, "--standalone", "-m", "diffuco", "train", "mis-tiny", "--out", str(out), "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, *settings, *options], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("num_steps_total") == 1  # one process speaks for all
    return done


def assert_same_weights(one, other):
    first, second = load_file(one / "last.safetensors"), load_file(other / "last.safetensors")
    for name in first:
        torch.testing.assert_close(first[name], second[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num_processes", [2, 3])
def test_processes_sharing_batches_give_the_weights_of_one(tmp_path, num_processes):
    train(CONFIG, tmp_path / "one", progress=False)
    torchrun(num_processes, tmp_path / "many")
    assert_same_weights(tmp_path / "one", tmp_path / "many")


def test_a_run_resumes_with_another_number_of_processes(tmp_path):
    train(CONFIG, tmp_path / "one", progress=False)
    torchrun(2, tmp_path / "many", "--max-minutes", "0")
    train(CONFIG, tmp_path / "many", resume=True, max_minutes=0.0, progress=False)
    torchrun(3, tmp_path / "many", "--resume")
    assert_same_weights(tmp_path / "one", tmp_path / "many")


THREADS = """
import os, torch
from diffuco.training.distributed import joined_group
with joined_group("cpu") as group:
    weights = torch.ones(3, requires_grad=True)
    weights.grad = torch.ones(3)
    torch.optim.RAdam([weights]).step()
    group.add_up(weights.grad)
names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
assert not [name for name in names if "gloo" in name], names
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are listed on Linux")
def test_no_thread_of_the_group_outlives_it(tmp_path):
    # One that did would meet the end of the interpreter, which aborts the process once in some dozens of runs.
    (tmp_path / "threads.py").write_text(THREADS)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launcher, str(tmp_path / "threads.py")], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("length", "size"), [(7, 3), (30, 4), (5, 5), (2, 1)])
def test_shares_cover_a_list_without_overlap(length, size):
    shares = [Group(torch.device("cpu"), rank, size).share(length) for rank in range(size)]
    assert [index for share in shares for index in range(length)[share]] == list(range(length))
    lengths = [share.stop - share.start for share in shares]
    assert max(lengths) - min(lengths) <= 1


def test_more_processes_than_graphs_in_a_batch_are_refused():
    graphs = DATASETS["rb-tiny"].graphs("train", 4)
    with pytest.raises(InputError, match="start fewer"):
        TrainingGraphs(graphs, 2, seed=0, group=Group(torch.device("cpu"), rank=0, size=3))
