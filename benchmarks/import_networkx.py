"""The cost of the backend for everyone who imports NetworkX: `python -X importtime` with and without this package.

    python benchmarks/import_networkx.py --repeats 30 --json import-networkx.json

Each side runs on a folder of links to the installed packages, one with this package in it, as pip would install it, and
one without. The two alternate, after one run each to fill the caches. `importtime` reports the time on the clock. Two
more times are measured: the processor time of the import, and the processor time of NetworkX's work for the backend,
which is to import its announcement and to make a configuration from it. On a busy machine, trust the last one.
"""

import argparse
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
from evidence import ROOT, Record, add_options, measured_limits, require_green, write_record
from rich.console import Console
from rich.table import Table

from diffuco.foundation.provenance import hardware

TESTS = ("tests/test_networkx_backend.py",)
PACKAGES = ("diffuco", "diffuco_networkx")


class Times(NamedTuple):
    """Times of one import in milliseconds."""

    clock_ms: float
    processor_ms: float


def main() -> None:
    """Measure, print a table, and write JSON if a path is given."""
    arguments = _arguments()
    device = torch.device("cpu")
    tests = require_green(TESTS, skip=arguments.skip_tests)
    with tempfile.TemporaryDirectory() as folder:
        sides = {"without": Path(folder) / "without", "with": Path(folder) / "with"}
        for name, side in sides.items():
            _link_packages(side, with_backend=name == "with")
        times: dict[str, list[Times]] = {name: [] for name in sides}
        for repeat in range(arguments.repeats + 1):
            for name, side in sides.items():
                measured = import_times(side)
                times[name] += [measured] if repeat else []
    records: list[Record] = []
    columns = ("", "without ms", "with ms", "difference ms")
    table = Table(*columns, title=f"import networkx, {arguments.repeats} times, {hardware(device)}")
    for kind in Times._fields:
        for statistic, function in (("least", min), ("median", statistics.median)):
            without, with_backend = (
                function([getattr(each, kind) for each in times[name]]) for name in ("without", "with")
            )
            values = {"without": without, "with": with_backend, "difference": with_backend - without}
            records.append({"time": kind, "of": statistic} | values)
            table.add_row(f"{statistic} {kind}", *(f"{value:.2f}" for value in values.values()))
    alone = [announcement_ms() for _ in range(arguments.repeats)]
    for statistic, function in (("least", min), ("median", statistics.median)):
        records.append({"time": "announcement_ms", "of": statistic, "difference": function(alone)})
        table.add_row(f"{statistic} announcement_ms", "", "", f"{function(alone):.2f}")
    Console(width=120).print(table)
    write_record(arguments, device, tests, measured_limits(device), records)


def import_times(folder: Path) -> Times:
    """Times of `import networkx` in a new process that sees the packages in `folder`."""
    # With -S, no .pth file of the installation adds the packages a second time.
    program = (
        f"import sys, time; sys.path.insert(0, {str(folder)!r}); started = time.process_time();"
        "import networkx; print(1000 * (time.process_time() - started))"
    )
    command = [sys.executable, "-S", "-X", "importtime", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    line = next(line for line in run.stderr.splitlines() if line.endswith("| networkx"))
    return Times(int(line.split("|")[1]) / 1000, float(run.stdout))


def announcement_ms() -> float:
    """Processor time, in milliseconds, of NetworkX's work for the backend during its import."""
    program = (
        "import sys, time; from importlib.metadata import EntryPoint; import networkx;"
        # NetworkX has done this once already; delete the module, so that it has to be found again.
        "del sys.modules['diffuco_networkx']; started = time.process_time();"
        "info = EntryPoint('diffuco', 'diffuco_networkx:get_info', 'networkx.backend_info').load()();"
        "networkx.utils.Config(**info['default_config']); print(1000 * (time.process_time() - started))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(run.stdout)


def _link_packages(folder: Path, *, with_backend: bool) -> None:
    """Link the installed packages into a folder, with this package or without it."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        is_ours = path.name in PACKAGES or path.name.startswith("diffuco-") or path.suffix == ".pth"
        if not is_ours or (with_backend and path.suffix == ".dist-info"):
            (folder / path.name).symlink_to(path)
    if with_backend:
        for name in PACKAGES:
            (folder / name).symlink_to(ROOT / "src" / name)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30)
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
