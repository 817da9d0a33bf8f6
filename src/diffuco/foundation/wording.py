"""Numbers and names in words for people to read."""

import math


def counted(number: int, noun: str) -> str:
    """A number and its noun, which is plural unless there is exactly one.

    >>> counted(1, "graph"), counted(0, "repeated edge"), counted(1200, "process")
    ('1 graph', '0 repeated edges', '1,200 processes')
    """
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"


def with_error(value: float, error: float | None, unit: str = "") -> str:
    """A mean and its standard error, with enough digits to show the error.

    >>> with_error(19.5666, 0.0021), with_error(3.5, 0.05, " %"), with_error(20, 0), with_error(20, None)
    ('19.567 ± 0.002', '3.50 % ± 0.05 %', '20.00 ± 0.00', '20.00')
    >>> with_error(0.1587, 0.0003, " %")
    '0.1587 % ± 0.0003 %'
    """
    if error is None:
        return f"{value:.2f}{unit}"
    digits = next((digits for digits in (2, 3, 4) if round(error, digits)), 2)
    return f"{value:.{digits}f}{unit} ± {error:.{digits}f}{unit}"


def measured(value: float, error: float | None = None, form: str = ".2%") -> str:
    """A measured value with its standard error where that is known, or a dash if the value itself is not.

    >>> measured(0.0151, 0.002), measured(19.5, float("nan"), ".3f"), measured(float("inf"))
    ('1.51% +- 0.20%', '19.500', '-')
    """
    if not math.isfinite(value):
        return "-"
    return f"{value:{form}}" if error is None or not math.isfinite(error) else f"{value:{form}} +- {error:{form}}"


def as_utf8(name: str) -> str:
    r"""A name that UTF-8 can hold: bytes of a file name that are no UTF-8 become escapes.

    >>> as_utf8("house.clq"), as_utf8("g\udcff.clq")
    ('house.clq', 'g\\udcff.clq')
    """
    return name.encode(errors="backslashreplace").decode()
