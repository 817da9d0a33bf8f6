"""Check the wheel and the sdist in a folder, as `make dist` builds them: complete, nothing else, and they run.

python tests/check_dist.py dist
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from diffuco.foundation.version import __version__

ROOT = Path(__file__).parents[1]
GRAPH = "p edge 3 2\ne 1 2\ne 2 3\n"


def main() -> None:
    """Compare with what git tracks, then install the wheel somewhere and solve a graph with it."""
    folder = Path(sys.argv[1])
    (wheel,), (sdist,) = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    assert wheel.name == f"diffuco-{__version__}-py3-none-any.whl", wheel.name
    assert sdist.name == f"diffuco-{__version__}.tar.gz", sdist.name
    tracked = subprocess.check_output(["git", "ls-files", "src"], cwd=ROOT, text=True).split()
    expected = {name.removeprefix("src/") for name in tracked}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.startswith(f"diffuco-{__version__}.dist-info/")}
    assert names == expected, names ^ expected
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    missing = {*tracked, "LICENSE", "README.md", "pyproject.toml"} - inside
    assert not missing, missing
    with tempfile.TemporaryDirectory() as target:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, str(wheel)]
        subprocess.run(pip, check=True)
        assert __version__ in _run(target, "--version")
        assert "yes, optimal" in _run(target, "solve", "mis", "-", "--format", "dimacs")
        assert "mis-rb-small" in _run(target, "models")
    print(f"{wheel.name} ({wheel.stat().st_size / 2**20:.0f} MiB) and {sdist.name} are complete and run")


def _run(target: str, *arguments: str) -> str:
    """What the installed program prints, outside of the source."""
    command = [sys.executable, "-m", "diffuco", *arguments]
    environment = os.environ | {"PYTHONPATH": target}
    done = subprocess.run(command, input=GRAPH, env=environment, cwd=target, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    main()
