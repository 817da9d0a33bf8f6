"""The line that declares the counts: `p edge N M` in the DIMACS family, a bare `N M` in others."""

from diffuco.foundation.wording import counted
from diffuco.graphs.formats.base import Header, make_header
from diffuco.graphs.formats.numbers import NUMBER, NumericLines
from diffuco.graphs.formats.source import Source, quoted


def problem_line(source: Source, table: NumericLines, kinds: tuple[str, ...]) -> Header:
    """The counts of the one `p` line, whose second word must be one of `kinds`."""
    expected = f"'p {kinds[0]} NODES EDGES'"
    words, line = problem_words(source, table, expected)
    if len(words) != 4:
        raise source.error(f"the problem line has {counted(len(words), 'word')}; write {expected}", line)
    if words[1].decode("utf-8", "replace") not in kinds:
        raise source.error(
            f"the problem is of kind {quoted(words[1])}; expected {' or '.join(kinds)}, or {source.choose_format}", line
        )
    return make_header(source, [whole_number(source, word, line) for word in words[2:]], line)


def problem_words(source: Source, table: NumericLines, expected: str) -> tuple[list[bytes], int]:
    """The words of the one `p` line, and its number; it must come before the data."""
    if not table.headers:
        raise source.error(f"no problem line; begin with {expected}, or {source.choose_format}")
    line, text = table.headers[0]
    if len(table.headers) > 1:
        raise source.error(f"a second problem line, after the one on line {line}; keep one", table.headers[1][0])
    if len(table.lines) and table.lines[0] < line:
        raise source.error(f"data before the problem line; begin with {expected}", int(table.lines[0]))
    return text.split(), line


def counts_line(source: Source, table: NumericLines) -> tuple[Header, NumericLines]:
    """The counts of a first line `N M`, and the lines after it."""
    if not len(table.lines):
        raise source.error("no header line; begin with the numbers of nodes and edges")
    line = int(table.lines[0])
    if table.counts[0] != 2:
        expected = "begin with the numbers of nodes and edges"
        raise source.error(
            f"the header has {counted(table.counts[0], 'number')}; {expected}, or {source.choose_format}", line
        )
    return make_header(source, table.values[:2].tolist(), line), table.without_first()


def whole_number(source: Source, word: bytes, line: int) -> float:
    """One number of a header, as a float so that absurd sizes are refused by value and not by overflow."""
    if not NUMBER.fullmatch(word):
        raise source.error(f"{quoted(word)} is not a number; correct the header", line)
    return float(word)
