"""Parsing ratings in groups below a header line, straight from bytes.

Two public layouts look like this. Netflix Prize: `movie:` and below it `user,rating,date` per line. Yahoo Music:
`user|count` and below it `item<tab>rating<tab>…`. One loop reads both: the header is a number, a mark and perhaps
another number, and the lines below it begin with two numbers; what follows is skipped, except that the digits of a date
are kept. Anything else that looks like a header would hand the ratings below it to another group, so it is refused.

>>> import numpy as np
>>> text = np.frombuffer(b"1:\\n7,4,2005-09-06\\n8,3.5,\\n", np.uint8)
>>> count, line = count_grouped(text, ord(":"))
>>> groups, members, values, dates = (np.zeros(count, t) for t in (np.int64, np.int64, np.float32, np.int64))
>>> parse_grouped(text, ord(":"), groups, members, values, dates)
0
>>> groups.tolist(), members.tolist(), values.tolist(), dates.tolist()
([1, 1], [7, 8], [4.0, 3.5], [20050906, 0])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel

_NEWLINE = ord("\n")
_RETURN = ord("\r")
_ZERO = ord("0")
_NINE = ord("9")
_DOT = ord(".")
_MINUS = ord("-")
_COMMA = ord(",")
_TAB = ord("\t")
_SPACE = ord(" ")
_MOST_DIGITS = 18  # more might not fit into 64 bits


@kernel
def _end_of_line(text: NDArray[np.uint8], place: int) -> int:
    while place < len(text) and text[place] != _NEWLINE:
        place += 1
    return place


@kernel
def _end_of_digits(text: NDArray[np.uint8], place: int, end: int) -> int:
    while place < end and _ZERO <= text[place] <= _NINE:
        place += 1
    return place


@kernel
def _is_id(text: NDArray[np.uint8], start: int, end: int) -> bool:
    """Tell whether these digits are the usual spelling of a number: 007 is not somebody else's 7."""
    return 0 < end - start <= _MOST_DIGITS and (text[start] != _ZERO or end - start == 1)


@kernel
def _is_header(text: NDArray[np.uint8], start: int, end: int, mark: int) -> bool:
    """Tell whether a line is an id followed by the mark and by nothing but digits."""
    place = _end_of_digits(text, start, end)
    if not _is_id(text, start, place) or place == end or text[place] != mark:
        return False
    place = _end_of_digits(text, place + 1, end)
    return place == end or (place == end - 1 and text[place] == _RETURN)


@kernel
def _ends_field(text: NDArray[np.uint8], place: int, end: int) -> bool:
    """Tell whether a field ends here: at a separator, or with the line."""
    return place == end or text[place] in (_COMMA, _TAB, _SPACE, _RETURN)


@kernel
def count_grouped(text: NDArray[np.uint8], mark: int) -> tuple[int, int]:
    """Return the number of ratings, and the line (from 1) of a rating above the first header, or 0."""
    count = 0
    line = 0
    seen_header = False
    start = 0
    while start < len(text):
        end = _end_of_line(text, start)
        line += 1
        blank = end == start or (end == start + 1 and text[start] == _RETURN)
        if not blank:
            if _is_header(text, start, end, mark):
                seen_header = True
            elif not seen_header:
                return count, line
            else:
                count += 1
        start = end + 1
    return count, 0


@kernel
def parse_grouped(
    text: NDArray[np.uint8],
    mark: int,
    groups: NDArray[np.int64],  # out
    members: NDArray[np.int64],  # out
    values: NDArray[np.float32],  # out
    dates: NDArray[np.int64],  # out
) -> int:
    """Fill the columns; return 0, or the number of the first line (from 1) that is not as it should be."""
    count = 0
    line = 0
    group = np.int64(0)
    start = 0
    while start < len(text):
        end = _end_of_line(text, start)
        line += 1
        blank = end == start or (end == start + 1 and text[start] == _RETURN)
        if not blank and _is_header(text, start, end, mark):
            group = np.int64(0)
            place = start
            while text[place] != mark:
                group = group * 10 + (text[place] - _ZERO)
                place += 1
        elif not blank:
            member = np.int64(0)
            place = start
            while place < end and _ZERO <= text[place] <= _NINE:
                member = member * 10 + (text[place] - _ZERO)
                place += 1
            if not _is_id(text, start, place) or not _ends_field(text, place, end):
                return line
            place += 1  # the separator
            negative = place < end and text[place] == _MINUS
            if negative:
                place += 1
            digits = 0
            number = 0.0
            unit = 1.0
            after_dot = False
            while place < end and (_ZERO <= text[place] <= _NINE or (text[place] == _DOT and not after_dot)):
                if text[place] == _DOT:
                    after_dot = True
                else:
                    number = number * 10.0 + (text[place] - _ZERO)
                    digits += 1
                    if after_dot:
                        unit *= 10.0
                place += 1
            if digits == 0 or not _ends_field(text, place, end):
                return line
            date = np.int64(0)
            digits = 0
            place += 1  # the separator
            while place < end and (_ZERO <= text[place] <= _NINE or text[place] == _MINUS):
                if text[place] != _MINUS:
                    date = date * 10 + (text[place] - _ZERO)
                    digits += 1
                place += 1
            if digits > _MOST_DIGITS:
                return line
            groups[count] = group
            members[count] = member
            values[count] = np.float32(-number / unit if negative else number / unit)
            dates[count] = date
            count += 1
        start = end + 1
    return 0


def parse_grouped_reference(text: bytes, mark: str) -> list[tuple[int, int, float, int]]:
    """Return the rows (group, member, value, date) that `parse_grouped` writes, for well-formed text."""
    rows = []
    group = 0
    for line in text.decode().split("\n"):
        head, sign, _ = line.partition(mark)
        if sign and head.isdigit():
            group = int(head)
        elif line.strip():
            member, value, date = [*line.strip().replace("\t", ",").split(","), ""][:3]
            rows.append((group, int(member), float(value), int(date.replace("-", "") or 0)))
    return rows
