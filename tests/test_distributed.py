"""Several processes on one machine, over gloo, against one process: the same batches have to give the same weights."""

import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from diffuco.cli import main
from diffuco.foundation.distributed import Group
from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import DATASETS
from diffuco.training.data import TrainingGraphs
from diffuco.training.loop import train
from processes import start_group
from test_training import SHORT

CONFIG = replace(SHORT, graphs_per_batch=5, num_train_graphs=15, anneal_epochs=4, noise="annealed")


SETTINGS = [f"--set={name}={value}" for name, value in asdict(CONFIG).items()]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """The run of a single process."""
    folder = tmp_path_factory.mktemp("distributed") / "one"
    train(CONFIG, folder, progress=False)
    return folder


def train_in_group(num_processes: int, out: Path, *options: str) -> None:
    arguments = ["train", "mis-tiny", "--out", str(out), "--json", *SETTINGS, *options]
    printed = start_group(num_processes, main, arguments, folder=out.parent)
    assert printed.count("num_steps_total") == 1  # one process speaks for all


def assert_same_weights(one, other):
    first, second = load_file(one / "last.safetensors"), load_file(other / "last.safetensors")
    for name in first:
        torch.testing.assert_close(first[name], second[name], rtol=1e-4, atol=1e-5)


def test_three_processes_give_the_weights_of_one(tmp_path, one):
    train_in_group(3, tmp_path / "many")
    assert_same_weights(one, tmp_path / "many")


def test_a_run_resumes_with_another_number_of_processes(tmp_path, one):
    train_in_group(2, tmp_path / "many", "--stop-after", "0")
    train(CONFIG, tmp_path / "many", resume=True, stop_after_minutes=0.0, progress=False)
    train_in_group(3, tmp_path / "many", "--resume")
    assert_same_weights(one, tmp_path / "many")


PROGRAM = """
import os, sys
from pathlib import Path
from diffuco.cli import main
code = main(sys.argv[1:])
names = [name.read_text() for name in Path("/proc/self/task").glob("*/comm")]
Path(__file__).with_name("threads-" + os.environ["RANK"]).write_text("".join(names))
sys.exit(code)
"""


@pytest.fixture(scope="module")
def torchrun(tmp_path_factory):
    """A run of two processes of torchrun: its folder, where they list the threads left, and what they print."""
    folder = tmp_path_factory.mktemp("torchrun")
    (folder / "program.py").write_text(PROGRAM)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    command = [*launcher, folder / "program.py", "train", "mis-tiny", "--out", folder / "run", "--json", *SETTINGS]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_torchrun_gives_the_weights_of_one_process(one, torchrun):
    folder, printed = torchrun
    assert printed.count("num_steps_total") == 1
    assert_same_weights(one, folder / "run")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are listed on Linux")
def test_no_thread_of_the_group_outlives_it(torchrun):
    # One that did would meet the end of the interpreter, which aborts the process once in some dozens of runs.
    threads = [path.read_text() for path in torchrun[0].glob("threads-*")]
    assert len(threads) == 2
    assert not [names for names in threads if "gloo" in names or not names]


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
