"""Names of a package that are imported when first used, so that what is not needed costs no time."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: given each name's module, it imports the module when the name is first used.

    >>> get = lazy_names("diffuco.foundation", {"InputError": "diffuco.foundation.errors"})
    >>> get("InputError").__name__
    'InputError'
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        home = import_module(homes[name])
        value = home if homes[name] == f"{package}.{name}" else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    return get
