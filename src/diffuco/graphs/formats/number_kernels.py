"""Compiled loops over the characters of plain lines of numbers.

Kept apart from `numbers` because importing numba takes a third of a second. What the loops do not know makes them give
up: exponents, words, empty columns, numbers too long to be exact. `numbers` then reads the lines its own way,
which also finds the words for what is wrong.
"""

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

BLANK, NEWLINE, SEPARATOR, DIGIT, MINUS, PLUS, POINT, COMMENT, TAG, OTHER = range(10)
"""Kinds of characters; the first three end a number. A comment and a tag are such only at the beginning of a line."""
MAX_DIGITS = 15
"""A whole number of 15 digits divided by a power of ten is the double that is nearest to the decimal."""
POWERS = 10.0 ** np.arange(MAX_DIGITS + 1)


@compiled
def parse_plain_lines(
    text: NDArray[np.uint8],
    kinds: NDArray[np.uint8],
    keep_blank: bool,
    has_tags: bool,
    counts: NDArray[np.int64],
    firsts: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    values: NDArray[np.float64],
) -> tuple[int, int]:
    """Fill in what each line with data has: how many numbers, its first character, its number in the text from 0.

    `kinds` [256] is the kind of each character. Returns how many lines and values there are, or (-1, -1).
    """
    position, line, num_lines, num_values = 0, 0, 0, 0
    while position < len(text):
        while kinds[text[position]] == BLANK:
            position += 1
        first, first_value = text[position], num_values
        if kinds[first] == COMMENT:
            while kinds[text[position]] != NEWLINE:
                position += 1
        elif kinds[first] != NEWLINE or keep_blank:
            if has_tags and kinds[first] != NEWLINE:
                position += 1
                if kinds[first] != TAG or kinds[text[position]] > NEWLINE:
                    return -1, -1
            position, num_values = parse_numbers(text, kinds, position, values, num_values)
            if position < 0:
                return -1, -1
            counts[num_lines] = num_values - first_value
            firsts[num_lines] = first if kinds[first] != NEWLINE else 0
            numbers[num_lines] = line
            num_lines += 1
        position += 1
        line += 1
    return num_lines, num_values


@compiled
def parse_numbers(
    text: NDArray[np.uint8], kinds: NDArray[np.uint8], position: int, values: NDArray[np.float64], num_values: int
) -> tuple[int, int]:
    """Append the numbers up to the end of the line; where it ends, or -1, and how many values there are then."""
    may_separate, must_follow = False, False  # a separator stands between two numbers
    while kinds[text[position]] != NEWLINE:
        kind = kinds[text[position]]
        if kind <= SEPARATOR:
            if kind == SEPARATOR:
                if not may_separate:
                    return -1, -1
                may_separate, must_follow = False, True
            position += 1
            continue
        if kind in (MINUS, PLUS):
            position += 1
        number, num_digits, position = read_digits(text, position, 0)
        num_decimals = 0
        if kinds[text[position]] == POINT:
            number, num_decimals, position = read_digits(text, position + 1, number)
        if kinds[text[position]] > SEPARATOR or not 1 <= num_digits + num_decimals <= MAX_DIGITS:
            return -1, -1
        value = float(number)
        if num_decimals:
            value /= POWERS[num_decimals]
        values[num_values] = -value if kind == MINUS else value
        num_values += 1
        may_separate, must_follow = True, False
    return -1 if must_follow else position, num_values


@compiled
def read_digits(text: NDArray[np.uint8], position: int, number: int) -> tuple[int, int, int]:
    """Append the digits from a position on to a number; how many there are, and where they end."""
    start = position
    while 48 <= text[position] <= 57:
        number = 10 * number + (int(text[position]) - 48)
        position += 1
    return number, position - start, position
