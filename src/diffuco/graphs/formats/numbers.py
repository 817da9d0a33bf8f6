"""Lines of numbers, parsed in bulk.

A block of a few MiB is cut into tokens with array operations and its numbers are converted by one numpy call; a line is
examined on its own only to say what is wrong with it. Shapes: L lines with data, T numbers of all lines together.
"""

import re
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.graphs.formats.base import EdgeRows, check_finite, checked_nodes
from diffuco.graphs.formats.source import Block, Source, quoted

NUMBER = re.compile(rb"[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.IGNORECASE)
MAX_NUMBERS = 300_000_000
"""Enough for 100 million weighted edges; more would not fit in the memory of most machines."""
COMPILED_BYTES = 2**20
"""Blocks from which on a compiled loop pays; compiling or loading it takes about a second."""
BLOCKS_AHEAD = 4
"""Blocks that are parsed at once, on as many threads; each holds some 20 MB."""
_NEWLINE, _SPACE = 10, 32
_TEXT_LABEL = re.compile(rb"(?m)^[^\S\n]*(?:\S+[^\S\n]+)?(?!(?:0|-?[1-9][0-9]*)\s)\S")
"""One of the first two words of a line that is not a whole number as Python writes it."""
_IS_SPACE = np.isin(np.arange(256), np.frombuffer(b" \t\n\v\f\r", dtype=np.uint8))


class NotNumericError(InputError):
    """A token that should be a number is not; formats with string labels then read the file another way."""


@dataclass(frozen=True)
class LineKinds:
    """How a format marks its lines by their first character."""

    comments: bytes = b"#%"
    headers: bytes = b""
    """Lines that begin with one of these characters are not numbers; they are returned as text."""
    tags: bytes = b""
    """If given, every other line must begin with one of these characters as a word of its own, as in `e 1 2`."""
    keep_blank: bool = False
    """Whether an empty line counts as a line without numbers (METIS) or is skipped."""
    separators: bytes = b""
    """Characters that separate numbers, as blanks do."""
    skipped_line: int = 0
    """Number of a line that is left out, with all lines before it; 0 for none."""
    has_labels: bool = False
    """Whether the first two words of a line are labels; those written as `07`, `+7` or `7.0` are text, not numbers."""


@dataclass(frozen=True)
class NumericLines:
    """The numbers of a file and the lines they are on."""

    lines: NDArray[np.int64]
    """[L], line numbers in the file."""
    counts: NDArray[np.int64]
    """[L], how many numbers the line has."""
    values: NDArray[np.float64]
    """[T]"""
    tags: NDArray[np.uint8]
    """[L], first character of the line, if the format has tags."""
    headers: list[tuple[int, bytes]]

    def select(self, chosen: NDArray[np.bool_]) -> "NumericLines":
        """Only the chosen lines."""
        values = self.values[np.repeat(chosen, self.counts)]
        return NumericLines(self.lines[chosen], self.counts[chosen], values, self.tags[chosen], self.headers)

    def without_first(self) -> "NumericLines":
        """The lines after the first, which is the header in many formats."""
        start = self.counts[0]
        return NumericLines(self.lines[1:], self.counts[1:], self.values[start:], self.tags[1:], self.headers)


def read_numbers(source: Source, kinds: LineKinds) -> NumericLines:
    """All lines of numbers in the input."""
    return _concatenate(list(number_blocks(source, kinds)))


def number_blocks(source: Source, kinds: LineKinds) -> Iterator[NumericLines]:
    """The same, block by block."""
    num_values = 0
    for block, plain_lines in _parsed_ahead(source, kinds):
        table = plain_lines() or _parse_block(source, block, kinds)
        num_values += len(table.values)
        if num_values > MAX_NUMBERS:
            raise source.error(f"more than {MAX_NUMBERS} numbers; give a smaller file", block.first_line)
        yield table


def columns(
    source: Source, table: NumericLines, allowed: Iterable[int], expected: str
) -> NDArray[np.float64]:  # [L, number of columns]
    """The numbers as a table; all lines must have the same number of columns, and it must be one of `allowed`."""
    width = int(table.counts[0]) if len(table.counts) else min(allowed)
    if width not in allowed:
        raise source.error(f"{counted(width, 'column')}; expected {expected}", int(table.lines[0]))
    bad = np.flatnonzero(table.counts != width)
    if len(bad):
        found = f"{counted(table.counts[bad[0]], 'column')}, but the lines before have {width}"
        raise source.error(f"{found}; expected {expected} on every line", int(table.lines[bad[0]]))
    return table.values.reshape(-1, width)


def edge_rows(
    source: Source, table: NumericLines, num_nodes: int, *, first: int, widths: tuple[int, ...] = (2, 3)
) -> EdgeRows:
    """Lines `u v [weight]` as edges between nodes numbered from `first`."""
    cells = columns(source, table, widths, "u v weight" if widths == (3,) else "u v or u v weight")
    pairs = checked_nodes(source, cells[:, :2], table.lines, num_nodes, first=first)
    if cells.shape[1] == 2:
        return EdgeRows(pairs, None, table.lines)
    weights = np.ascontiguousarray(cells[:, 2])
    check_finite(source, weights, table.lines)
    return EdgeRows(pairs, weights, table.lines)


def _parsed_ahead(source: Source, kinds: LineKinds) -> Iterator[tuple[Block, Callable[[], NumericLines | None]]]:
    """Every block, with a call for its lines if it is plain; other threads parse long blocks while this one reads."""
    waiting: deque[tuple[Block, Callable[[], NumericLines | None]]] = deque()
    error = None
    with ThreadPoolExecutor(BLOCKS_AHEAD) as threads:
        try:
            for block in source.blocks():
                is_long = len(block.text) >= COMPILED_BYTES
                parsing = threads.submit(_parse_plain_block, block, kinds).result if is_long else lambda: None
                waiting.append((block, parsing))
                if len(waiting) > BLOCKS_AHEAD:
                    yield waiting.popleft()
        except InputError as later:  # what is wrong in the blocks before it comes first
            error = later
        yield from waiting
    if error is not None:
        raise error


def _parse_plain_block(block: Block, kinds: LineKinds) -> NumericLines | None:
    """The lines of a block of nothing but plain numbers; None for any other block."""
    # Imported here: importing numba takes a third of a second.
    from diffuco.graphs.formats import number_kernels as loops

    text = np.frombuffer(_without_skipped(block, kinds), dtype=np.uint8)
    known = {loops.BLANK: b" \t\v\f\r", loops.NEWLINE: b"\n", loops.MINUS: b"-", loops.PLUS: b"+", loops.POINT: b"."}
    # These come last, because a separator may also be a blank.
    known |= {loops.COMMENT: kinds.comments, loops.TAG: kinds.tags, loops.SEPARATOR: kinds.separators}
    table = np.full(256, loops.OTHER, dtype=np.uint8)
    table[list(b"0123456789")] = range(10)
    for kind, characters in known.items():
        table[list(characters)] = kind
    lines, counts = np.empty(block.num_lines, dtype=np.int64), np.empty(block.num_lines, dtype=np.int64)
    tags, values = np.empty(block.num_lines, dtype=np.uint8), np.empty(len(text) // 2)
    num_lines, num_values = loops.parse_plain_lines(
        text, table, kinds.keep_blank, bool(kinds.tags), kinds.has_labels, counts, tags, lines, values
    )
    if num_lines < 0:
        return None
    lines += block.first_line
    return NumericLines(lines[:num_lines], counts[:num_lines], values[:num_values], tags[:num_lines], [])


def _parse_block(source: Source, block: Block, kinds: LineKinds) -> NumericLines:
    text = _without_skipped(block, kinds)
    if any(mark in text for mark in kinds.separators):
        blanks = rb"[^\S\n]*"
        mark, comment = (b"[" + re.escape(characters) + b"]" for characters in (kinds.separators, kinds.comments))
        rows = re.sub(rb"(?m)^" + blanks + comment + rb".*", b"", text) if kinds.comments else text
        if re.search(mark + blanks + b"(?:" + mark + rb"|\n)|(?:^|\n)" + blanks + mark, rows):
            raise NotNumericError(f"{source.shown}: a column is empty; fill it")
        text = text.translate(bytes.maketrans(kinds.separators, b" " * len(kinds.separators)))
    characters = np.frombuffer(text, dtype=np.uint8).copy()
    ends = np.flatnonzero(characters == _NEWLINE)
    lines = np.arange(len(ends)) + block.first_line
    is_space = _IS_SPACE[characters]
    tokens = np.flatnonzero(~is_space & np.concatenate([[True], is_space[:-1]]))
    next_tokens = np.searchsorted(tokens, ends)
    counts = np.diff(next_tokens, prepend=0)
    tags = np.zeros(len(ends), dtype=np.uint8)
    first_tokens = tokens[(next_tokens - counts)[counts > 0]]
    tags[counts > 0] = characters[first_tokens]

    special = np.isin(tags, np.frombuffer(kinds.comments + kinds.headers, dtype=np.uint8))
    headers = []
    for index in np.flatnonzero(special):
        start = ends[index - 1] + 1 if index else 0
        if tags[index] in kinds.headers:
            headers.append((int(lines[index]), block.text[start : ends[index]].strip()))
        characters[start : ends[index]] = _SPACE
    keep = ~special if kinds.keep_blank else ~special & (counts > 0)
    if kinds.tags:
        _blank_out_tags(source, kinds, characters, first_tokens[~special[counts > 0]], lines[keep])
        counts = counts - 1
    counts = counts[keep]
    if kinds.has_labels and _TEXT_LABEL.search(characters.tobytes()):
        raise NotNumericError(f"{source.shown}: labels that are text")
    values = _to_numbers(source, characters, int(counts.sum()), block.first_line)
    return NumericLines(lines[keep], counts, values, tags[keep], headers)


def _without_skipped(block: Block, kinds: LineKinds) -> bytes:
    """The text of a block with empty lines for those that are left out."""
    count = min(max(0, kinds.skipped_line + 1 - block.first_line), block.num_lines)
    return b"\n" * count + block.text.split(b"\n", count)[count]


def _blank_out_tags(
    source: Source,
    kinds: LineKinds,
    characters: NDArray[np.uint8],
    positions: NDArray[np.int64],
    lines: NDArray[np.int64],
) -> None:
    """Overwrite the leading character of each line, so that only numbers are left."""
    known = np.isin(characters[positions], np.frombuffer(kinds.tags, dtype=np.uint8))
    bad = np.flatnonzero(~known | ~_IS_SPACE[characters[positions + 1]])
    if len(bad):
        start = int(positions[bad[0]])
        token = characters[start : start + 200].tobytes().split()[0]
        allowed = ", ".join(repr(chr(tag)) for tag in kinds.comments + kinds.headers + kinds.tags)
        raise source.error(
            f"the line begins with {quoted(token)}; lines must begin with one of {allowed}", int(lines[bad[0]])
        )
    characters[positions] = _SPACE


def _to_numbers(source: Source, characters: NDArray[np.uint8], num_tokens: int, first_line: int) -> NDArray[np.float64]:
    if num_tokens == 0:
        return np.empty(0)
    text = characters.tobytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            values = np.fromstring(text, dtype=np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        values = np.empty(0)
    if len(values) == num_tokens:
        return values
    for line, content in enumerate(text.split(b"\n"), start=first_line):
        for token in content.split():
            if not NUMBER.fullmatch(token):
                raise NotNumericError(f"{source.shown}:{line}: {quoted(token)} is not a number; correct the line")
    raise NotNumericError(f"{source.shown}:{first_line}: not all tokens are numbers here; correct the lines")


def _concatenate(parts: list[NumericLines]) -> NumericLines:
    if len(parts) == 1:
        return parts[0]
    return NumericLines(
        np.concatenate([part.lines for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.tags for part in parts]),
        [header for part in parts for header in part.headers],
    )
