"""The commands of README and docs, run page by page as a reader would type them, and their output as shown.

Long commands run with smaller numbers, which `SHORTER` lists. What is not run at all stands in `NOT_RUN` with the
reason. Names that stand for folders of the reader's own graphs are such folders here.
"""

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import experiments.reproduce
from diffuco.cli import main
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import ba_graph
from diffuco.methods import get_method

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OURS = {"diffuco": main, "python -m experiments.reproduce": experiments.reproduce.main}

NOT_RUN = {
    r"-m venv": "makes a place to install into",
    r"pip install": "installs from the network",
    r"make solve": "creates .venv and installs into it, then runs the first command of the README",
    r"make (test|check|format)": "runs this test",
    r"make (fuzz|dist)": "takes minutes; tests/test_fuzz.py runs the fuzzers for a moment",
    r"make gpu|measure_gpu\.sh|--device cuda": "needs a GPU",
    r"diffuco serve": "serves until it is stopped; tests/test_web_page.py and tests/test_web_api.py do that",
    r"curl ": "needs the server; tests/test_web_api.py sends such requests",
    r"tensorboard --logdir": "serves until it is stopped",
    r"torchrun": "tests/test_distributed.py trains and tests/test_parts.py solves with several processes",
    r"--engine ray": "starting a cluster takes long; tests/test_batches.py has one",
    r"train_ablation\.sh": "trains 62 models",
    r"reproduce (fig|table|all)|FROM_ANOTHER": "takes minutes to hours; tests/test_reproduction.py has small ones",
    r"train (mvc-rb-200|max-clique|(mis-rb|mds-ba|max-cut-ba)-small(-\d+)? --set)": "minutes on a GPU",
    r"reference (rb-200|ba-large)": "takes hours; another dataset stands above it",
    r"python examples/": "tests/test_examples.py runs all of them",
    r"python benchmarks/": "tests/test_benchmarks.py runs them",
}
SHORTER = {
    r"^(diffuco (?:evaluate|compare|reference) .*)--count \d+": r"\1--count 2",
    r"^(diffuco compare .*--dataset (?:rb|ba))-(?:small|large)": r"\1-tiny",
    r"--samples 32 --step-factor 6": "--samples 2 --step-factor 1",
    r"--budget [\d.,]+": "--budget 0.05",
    r"--time-limit 2\b": "--time-limit 0.2",
    r"--(max-minutes|stop-after) [\d.]+": "",
    r"^(diffuco train (?!--list).*)": r"\1 --set anneal_epochs=1",
    r"^(diffuco train mis-tiny.*)": r"\1 --set num_train_graphs=32 --set num_validation_graphs=4",
}
COUNTS_DIFFER = r"--count 2\b|^diffuco (train|sample)|--budget"
"""Of shortened commands: they print other numbers than those shown."""
DEPENDS_ON_THE_MACHINE = (
    r"^\d+ nodes: |proven optimal|solved by|[Mm]inutes|^step |^Minimum Dominating Set, methods|test-\d{4}\.graph"
)
"""Lines that are not compared: which of several optima is found, and what is proven within a second."""


class Command(NamedTuple):
    """A line to type and the lines that are shown below it."""

    line: str
    shown: list[str]


def commands(page: Path) -> list[Command]:
    found: list[Command] = []
    for kind, block in FENCE.findall(page.read_text()):
        if kind not in ("bash", "console"):
            continue
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            if kind == "bash" or line.startswith("$ "):
                text = re.sub(r"\s+# .*", "", line.removeprefix("$ "))
                found += [Command(text, [])] if text and not text.startswith("#") else []
            else:
                found[-1].shown.append(line)
    return found


def reason_not_to_run(line: str) -> str | None:
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, line)), None)


def shortened(line: str) -> str:
    for pattern, replacement in SHORTER.items():
        line = re.sub(pattern, replacement, line)
    if get_method("kamis").missing():  # not every platform has it
        line = line.replace(",kamis", "")
    return line


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with what a clone has, and with folders of graphs under the names that stand for a reader's own."""
    for name in ("examples", "benchmarks", "experiments"):
        (tmp_path / name).symlink_to(ROOT / name)
    for folder in ("FOLDER", "ENZYMES"):
        (tmp_path / folder).mkdir()
        rng = np.random.default_rng(0)
        for number in range(40):
            write_graph(ba_graph(int(rng.integers(8, 14)), 2, rng), tmp_path / folder / f"{number:02}.clq")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(not reason_not_to_run(c.line) for c in commands(page))], ids=lambda p: p.name
)
def test_commands_do_what_the_page_shows(page, capsys, monkeypatch):
    for command in commands(page):
        if reason_not_to_run(command.line):
            continue
        line = shortened(command.line)
        printed = typed(line, capsys, monkeypatch)
        if not re.search(COUNTS_DIFFER, line):
            assert [text for text in compared(command.shown) if text not in compared(printed)] == [], command.line


def typed(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a line; programs of ours run in this process, as starting another one takes seconds."""
    piped, _, rest = line.rpartition(" | ")
    words, target = rest.partition(" > ")[::2]
    command = next((name for name in OURS if words.startswith(f"{name} ")), None)
    if command is None:
        done = in_bash(line)
        return [*done.stdout.decode().splitlines(), *done.stderr.decode().splitlines()]
    with monkeypatch.context() as patch:
        if piped:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(in_bash(piped).stdout)))
        capsys.readouterr()
        code = OURS[command](shlex.split(words.removeprefix(command)))
        out, err = capsys.readouterr()
    assert code == 0, f"{line}: {err}"
    if target:
        Path(target).write_text(out)
    return [*([] if target else out.splitlines()), *err.splitlines()]


def in_bash(line: str) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
    assert done.returncode == 0, f"{line}: {done.stderr.decode()}"
    return done


def compared(lines: list[str]) -> list[str]:
    """Lines without what differs from run to run: seconds, widths and frames of tables."""
    kept = [line for line in lines if line != "..." and not re.search(DEPENDS_ON_THE_MACHINE, line)]
    plain = (re.sub(r"[━─┏┓┡┩└┘┳╇┴]+", " ", re.sub(r"\d+\.\d+", "#", line)) for line in kept)
    return [text for line in plain if (text := " ".join(line.split()))]


def test_every_reason_is_needed():
    lines = [command.line for page in PAGES for command in commands(page)]
    assert [pattern for pattern in (*NOT_RUN, *SHORTER) if not any(re.search(pattern, line) for line in lines)] == []
