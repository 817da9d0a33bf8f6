"""What diffuco requires, and what to install for an optional part, wherever diffuco was installed from."""

import re
import shlex
from collections import defaultdict
from importlib import metadata

EXTRA = re.compile(r"""extra == ["']([^"']+)""")


def requirements() -> dict[str, list[str]]:
    """The packages of every extra as pip takes them; under "" those that are always required.

    >>> requirements()["exact"]
    ['ortools>=9.10']
    """
    try:
        required = metadata.requires("diffuco") or []
    except metadata.PackageNotFoundError:  # run from the source without being installed
        required = []
    found = defaultdict(list)
    for text in required:
        package, _, condition = text.partition(";")
        extra = EXTRA.search(condition)
        found[extra[1] if extra else ""].append(package.strip())
    return dict(found)


def install_hint(extra: str) -> str:
    """The command that installs the packages of an extra. It does not name diffuco, which may be on no index.

    >>> install_hint("exact")
    "pip install 'ortools>=9.10'"
    """
    wanted = requirements().get(extra)
    return f"pip install {shlex.join(wanted)}" if wanted else f"pip install '.[{extra}]' in the folder of the source"
