"""The compiled loop over the characters of plain lines of numbers.

Kept apart from `numbers` because importing numba takes a third of a second. What the loop does not know makes it give
up: exponents, words, empty columns, numbers too long to be exact, labels such as `07`. `numbers` then reads the lines
its own way, which also finds the words for what is wrong.
"""

import numpy as np
from numpy.typing import NDArray

from diffuco.ops.compilation import compiled

BLANK, NEWLINE, SEPARATOR, MINUS, PLUS, POINT, COMMENT, TAG, OTHER = range(10, 19)
"""Kinds of characters. Those of digits are their values; the first three here end a word."""
AT_START, BETWEEN, AFTER_SEPARATOR, AFTER_SIGN, IN_WHOLE, IN_DECIMALS, AFTER_TAG, IN_COMMENT = range(8)
"""Where the loop is in a line. In the first three a number may begin, in the next three it may go on."""
MAX_DIGITS = 15
"""A whole number of 15 digits divided by a power of ten is the double that is nearest to the decimal."""
POWERS = 10.0 ** np.arange(MAX_DIGITS + 1)


@compiled
def parse_plain_lines(
    text: NDArray[np.uint8],
    kinds: NDArray[np.uint8],
    keep_blank: bool,
    has_tags: bool,
    has_labels: bool,
    counts: NDArray[np.int64],
    firsts: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    values: NDArray[np.float64],
) -> tuple[int, int]:
    """Fill in what each line with data has: how many numbers, its first character, its number in the text from 0.

    `kinds` [256] is the kind of each character; with `has_labels`, a line begins with two labels. Returns how many
    lines and values there are, or (-1, -1).
    """
    line, num_lines, num_values, first_value, first = 0, 0, 0, 0, np.uint8(0)
    place, is_negative, number, num_digits, num_decimals = AT_START, False, 0, 0, 0
    odd = 0  # 1 if the number begins with a zero, 2 if a label is not written so at all: `+7`, `7.0`, `-0`
    for character in text:
        kind = kinds[character]
        if place == IN_WHOLE and kind < BLANK:  # most characters
            number = 10 * number + kind
            num_digits += 1
            continue
        if place == IN_COMMENT:
            if kind != NEWLINE:
                continue
        elif BLANK <= kind <= SEPARATOR:
            if place in (IN_WHOLE, IN_DECIMALS):
                if num_digits == 0 or num_digits > MAX_DIGITS:
                    return -1, -1
                if odd:
                    if has_labels and num_values - first_value < 2 and odd + num_digits > 2:
                        return -1, -1
                    odd = 0
                value = number / POWERS[num_decimals] if num_decimals else float(number)
                values[num_values] = -value if is_negative else value
                num_values += 1
                place, is_negative, number, num_digits, num_decimals = BETWEEN, False, 0, 0, 0
            if place == AFTER_SIGN or (place == AFTER_SEPARATOR and kind != BLANK):
                return -1, -1
            if kind == SEPARATOR:
                if place != BETWEEN or num_values == first_value:
                    return -1, -1
                place = AFTER_SEPARATOR
            elif place == AFTER_TAG:
                place = BETWEEN
        else:
            if place == AT_START:
                first = character
                if has_tags != (kind == TAG) and kind != COMMENT:
                    return -1, -1
            if place == AT_START and kind == COMMENT:
                place = IN_COMMENT
            elif place == AT_START and kind == TAG:
                place = AFTER_TAG
            elif place == AFTER_TAG:
                return -1, -1
            elif kind < BLANK:
                number = 10 * number + kind
                num_digits += 1
                if place == IN_DECIMALS:
                    num_decimals += 1
                    continue
                if kind == 0:
                    odd = 2 if odd or is_negative else 1
                place = IN_WHOLE
            elif kind == POINT and place != IN_DECIMALS:
                place, odd = IN_DECIMALS, 2
            elif kind in (MINUS, PLUS) and place <= AFTER_SEPARATOR:
                place, is_negative, odd = AFTER_SIGN, kind == MINUS, 2 * (kind == PLUS)
            else:
                return -1, -1
        if kind == NEWLINE:
            if place != IN_COMMENT and (place != AT_START or keep_blank):
                counts[num_lines] = num_values - first_value
                firsts[num_lines] = first
                numbers[num_lines] = line
                num_lines += 1
            line += 1
            place, first, first_value = AT_START, np.uint8(0), num_values
    return num_lines, num_values
