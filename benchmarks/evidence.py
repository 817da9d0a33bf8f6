"""Evidence for a speed: tests that pass, the limits of the device in the same run, and a record of what ran where."""

import argparse
import hashlib
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware, source_commit

ROOT = Path(__file__).parents[1]

Record = dict[str, Any]
"""One measurement: names and values for JSON."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every benchmark has."""
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the measurements here")
    parser.add_argument(
        "--skip-tests", action="store_true", help="do not run the tests; for development, and noted in the record"
    )


def require_green(tests: Sequence[str], *, skip: bool = False) -> str:
    """Run the tests of the measured code and return their summary; end the program unless they pass.

    A file that passed on this machine is not run again until the source, the tests or torch change.
    """
    if skip:
        return "skipped"
    return "; ".join(f"{test}: {_passed(test)}" for test in tests)


def _passed(test: str) -> str:
    receipt = Path(tempfile.gettempdir()) / f"diffuco-passed-{_digest(test)}.txt"
    if not receipt.exists():
        selection = "not slow" if torch.cuda.is_available() else "not gpu and not slow"
        command = [sys.executable, "-m", "pytest", "-q", "-x", test, "-m", selection]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = (run.stdout.strip() or run.stderr.strip()).splitlines() or ["pytest printed nothing"]
        if run.returncode or " passed" not in lines[-1]:
            reason = next((line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1])
            raise SystemExit(f"no speed to report while the tests in {test} do not pass: {reason}")
        receipt.write_text(lines[-1])
    return receipt.read_text()


def _digest(test: str) -> str:
    """Digest of everything that decides whether a test passes here."""
    digest = hashlib.sha256(f"{test} {torch.__version__} {hardware(pick_device('auto'))}".encode())
    for path in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/*.py"), Path(test)]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


@dataclass(frozen=True)
class Limits:
    """Speeds that the device reaches when it does nothing else."""

    copy_gb_per_s: float
    """Bytes read and written by a large copy within device memory."""
    float16_tflop_per_s: float
    """Speed of a large square matrix product in float16."""
    float32_tflop_per_s: float
    """The same in float32, without TF32."""

    def __str__(self) -> str:
        products = f"float16 {self.float16_tflop_per_s:.3g} TFLOP/s, float32 {self.float32_tflop_per_s:.3g} TFLOP/s"
        return f"limits: copies {self.copy_gb_per_s:.4g} GB/s, products in {products}"


def measured_limits(device: torch.device) -> Limits:
    """Measure a copy of more random numbers than a cache holds, and products of random matrices."""
    num_floats, size = (2**29, 8192) if device.type == "cuda" else (2**24, 256)
    source = torch.rand(num_floats, device=device)
    target = torch.empty_like(source)
    copy = 2 * source.nbytes / median_seconds(lambda: target.copy_(source), device)

    def product(dtype: torch.dtype) -> float:
        a, b = torch.randn(2, size, size, device=device).to(dtype)
        return 2 * size**3 / median_seconds(lambda: torch.matmul(a, b), device)

    return Limits(copy / 1e9, product(torch.float16) / 1e12, product(torch.float32) / 1e12)


def median_seconds(function: Callable[[], object], device: torch.device, repeats: int = 9) -> float:
    """Median time of a call, after two calls to warm up."""
    return statistics.median([seconds(function, device) for _ in range(2 + repeats)][2:])


def seconds(function: Callable[[], object], device: torch.device) -> float:
    """Time of one call, until the device is done."""
    synchronize(device)
    started = time.perf_counter()
    function()
    synchronize(device)
    return time.perf_counter() - started


def synchronize(device: torch.device) -> None:
    """Wait until the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def write_record(
    arguments: argparse.Namespace, device: torch.device, tests: str, limits: Limits, measurements: list[Record]
) -> None:
    """Write the measurements, their evidence and the settings as JSON, if a path was given."""
    path: Path | None = arguments.json
    if path is None:
        return
    settings = {name: value for name, value in vars(arguments).items() if name not in ("json", "skip_tests")}
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    record = {
        "command": command.replace(str(path), path.name),
        "commit": source_commit(),
        "hardware": hardware(device),
        "torch": torch.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "tests": tests,
        "limits": asdict(limits),
        "settings": settings,
        "measurements": measurements,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
