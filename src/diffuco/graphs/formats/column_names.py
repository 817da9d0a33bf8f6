"""Names of the columns of an edge table: which of them are the ends of an edge and which is its weight."""

import re
from collections.abc import Sequence

OWN_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))
"""Names that are never taken for labels; our own files have the first pair."""
_ENDS = (
    re.compile(r"(source|src|from|start|head|u|i)(node|vertex)?(id|name|label)?"),
    re.compile(r"(target|dst|dest|destination|to|end|tail|v|j)(node|vertex)?(id|name|label)?"),
)
_NO_WEIGHTS = ("id", "type", "kind", "label", "time", "timestamp", "date")
_NUMBERED = (re.compile(r"([^\W\d_]{2,})[1ax]"), re.compile(r"([^\W\d_]{2,})[2by]"))


def edge_columns(names: Sequence[str]) -> list[int] | None:
    """Where the two ends are and, if there is one, the weight; None if the names do not tell.

    >>> edge_columns(["Source", "Target"]), edge_columns(["", "person_1", "person_2"]), edge_columns(["Ann", "Bob"])
    ([0, 1], [1, 2], None)
    >>> edge_columns(["Id", "Source", "Target", "Type", "Weight"])
    [1, 2, 4]
    """
    plain = [_plain(name) for name in names]
    weight = [plain.index("weight")] if "weight" in plain else []
    for first in range(len(plain) - 1):
        if _are_ends(plain[first], plain[first + 1]):
            is_third_last = len(plain) == first + 3 and plain[-1] not in _NO_WEIGHTS
            return [first, first + 1, *([first + 2] if is_third_last else weight)]
    if plain and plain[0] == "" and len(plain) in (3, 4):  # pandas and R number the rows in a column without a name
        return list(range(1, len(plain)))
    return None


def are_own_names(names: Sequence[str]) -> bool:
    """Whether a row begins with names that are never labels.

    >>> are_own_names(["Source", "Target", "weight"]), are_own_names(["u", "v"])
    (True, False)
    """
    return tuple(_plain(name) for name in names[:2]) in OWN_NAMES


def stem(label: str) -> str:
    """A label without its number, to see whether a column name is of the same kind as labels.

    >>> stem("Node_12"), stem("12"), stem("Ann")
    ('node', '', 'ann')
    """
    return _plain(label).rstrip("0123456789")


def _are_ends(first: str, second: str) -> bool:
    if _ENDS[0].fullmatch(first) and _ENDS[1].fullmatch(second):
        return True
    one, two = _NUMBERED[0].fullmatch(first), _NUMBERED[1].fullmatch(second)
    return one is not None and two is not None and one[1] == two[1] and first[-1] + second[-1] in ("12", "ab", "xy")


def _plain(name: str) -> str:
    return re.sub(r"[\s_.\-\"']", "", name).lower()
