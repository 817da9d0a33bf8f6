"""A full disk: one line that names the file, exit code 2, and what was written before is still there."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from diffuco.model.checkpoint import write_safetensors


@pytest.fixture
def full_disk(monkeypatch):
    """Nothing reaches the disk any more. Without a descriptor, output of the test itself would be dropped."""

    def no_space(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("diffuco.cli._drop_output", lambda: None)
    monkeypatch.setattr(os, "fsync", no_space)


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet", "x.sol", "x.json"])
def test_solutions(run, house, tmp_path, full_disk, name):
    outcome = run("solve", "mis", house, "--output", tmp_path / name)
    assert outcome.code == 2
    (line,) = outcome.errors
    assert line.startswith(f"error: {tmp_path / name}")
    assert "No space left on device" in line
    assert not list(tmp_path.glob(".*"))  # no pieces
    if name in ("x.sol", "x.json"):
        assert "2 nodes: " in outcome.out  # the answer is not lost


def test_training_names_the_file_and_keeps_the_last_one(run, tmp_path, full_disk, monkeypatch):
    (tmp_path / "last.safetensors").write_bytes(b"before")

    def save(*_, **__):
        write_safetensors(tmp_path / "last.safetensors", {"x": torch.zeros(3)}, {})

    monkeypatch.setattr("diffuco.training.loop.train", save)
    outcome = run("train", "mis-tiny", "--out", tmp_path / "run")
    wanted = f"{tmp_path / 'last.safetensors'}: No space left on device; make room, then run the command again"
    assert (outcome.code, outcome.errors) == (2, [f"error: {wanted}"])
    assert (tmp_path / "last.safetensors").read_bytes() == b"before"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["models"], ["solve", "mis", "-", "--format", "dimacs"], ["--version"]])
def test_standard_output(house, arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "diffuco", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            input=house.read_text(),
            text=True,
        )
    errors = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert errors == ["error: output: No space left on device; make room, then run the command again"]
    assert done.returncode == 2
