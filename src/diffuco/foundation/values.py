"""What the numbers that a user gives may be, whatever their annotation says."""

from numbers import Integral, Real

from diffuco.foundation.errors import InputError

MAX_SEED = 2**63 - 1


def check_seed(seed: object) -> int:
    """The seed as an `int`; anything but a whole number from 0 to `MAX_SEED` is an InputError.

    Methods whose random numbers start from fewer bits reduce it themselves.

    >>> check_seed(3)
    3
    """
    if not isinstance(seed, Integral) or not 0 <= int(seed) <= MAX_SEED:
        raise InputError(f"seed is {seed!r}; give a whole number from 0 to {MAX_SEED}")
    return int(seed)


def is_count(value: object) -> bool:
    """Whether a value is a whole number, 1 or more.

    >>> is_count(2), is_count(0), is_count(2.5), is_count("2")
    (True, False, False, False)
    """
    return isinstance(value, Integral) and int(value) >= 1


def is_number(value: object) -> bool:
    """Whether a value is a real number.

    >>> is_number(2.5), is_number("2.5")
    (True, False)
    """
    return isinstance(value, Real)
