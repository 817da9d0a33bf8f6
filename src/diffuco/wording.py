"""Numbers of things, as people read them."""


def counted(number: int, noun: str) -> str:
    """A number and its noun, which is in the plural unless there is exactly one.

    >>> counted(1, "graph"), counted(0, "repeated edge"), counted(1200, "process")
    ('1 graph', '0 repeated edges', '1,200 processes')
    """
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"
