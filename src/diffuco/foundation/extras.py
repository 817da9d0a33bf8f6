"""What to install for an optional part, in words that work wherever diffuco was installed from."""

import shlex
from importlib import metadata


def install_hint(extra: str) -> str:
    """The command that installs the packages of an extra. It does not name diffuco, which may be on no index.

    >>> install_hint("exact")
    "pip install 'ortools>=9.10'"
    """
    try:
        required = metadata.requires("diffuco") or []
    except metadata.PackageNotFoundError:  # run from the source without being installed
        required = []
    parts = [(text.partition(";")[0].strip(), text.partition(";")[2]) for text in required]
    wanted = [name for name, condition in parts if f'extra == "{extra}"' in condition.replace("'", '"')]
    return f"pip install {shlex.join(wanted)}" if wanted else f"pip install '.[{extra}]' in the folder of the source"
