"""Names of the members of a family, which files and configurations refer to."""

from collections.abc import Mapping

from diffuco.foundation.errors import InputError


def check_name(member: type, family: Mapping[str, type], noun: str) -> None:
    """Refuse a class without a name of its own, because files could not tell it apart from the class with that name.

    >>> check_name(int, {"gnn": object}, "network")
    Traceback (most recent call last):
    diffuco.foundation.errors.InputError: network class int has no name; give it one, such as name = 'mine'
    """
    name = getattr(member, "name", "")
    if not name:
        raise InputError(f"{noun} class {member.__name__} has no name; give it one, such as name = 'mine'")
    if family.get(name, member) is not member:
        raise InputError(f"there is a {noun} '{name}' already; give the class {member.__name__} a name of its own")
