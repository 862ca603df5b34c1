"""Grouped text is parsed as a line-by-line reader would, and bad lines are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.text import count_grouped, parse_grouped, parse_grouped_reference

numbers = st.integers(0, 10**18 - 1)
values = st.one_of(
    st.integers(-99, 99).map(str), st.decimals(-99, 99, places=3).map(str), st.sampled_from([".5", "5.", "-0.25"])
)
dates = st.one_of(st.sampled_from([[], [""]]), st.dates().map(lambda day: [str(day)]), st.just(["3811"]))
groups = st.lists(st.tuples(numbers, st.lists(st.tuples(numbers, values, dates))))


def bytes_of(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def parse(text: str, mark: str) -> tuple[int, list[tuple[int, int, float, int]]]:
    """Return the line the kernel complains about, and the rows it writes."""
    count, above = count_grouped(bytes_of(text), ord(mark))
    assert above == 0
    columns = (
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.float32),
        np.zeros(count, np.int64),
    )
    line = parse_grouped(bytes_of(text), ord(mark), *columns)
    return line, list(zip(*(column.tolist() for column in columns), strict=True))


@given(
    content=groups,
    layout=st.sampled_from([(":", ","), ("|", "\t"), (":", "\t")]),
    ending=st.sampled_from(["\n", "\r\n", "\n\n"]),
    ended=st.booleans(),
)
def test_well_formed_text_is_parsed_as_by_the_reference(
    content: list[tuple[int, list[tuple[int, str, list[str]]]]], layout: tuple[str, str], ending: str, ended: bool
) -> None:
    mark, separator = layout
    lines = []
    for group, members in content:
        lines.append(f"{group}{mark}{len(members) if mark == '|' else ''}")
        lines += [separator.join((str(member), value, *date)) for member, value, date in members]
    text = ending.join(lines) + (ending if ended else "")
    expected = parse_grouped_reference(text.encode(), mark)
    assert len(expected) == sum(len(members) for _, members in content)
    line, rows = parse(text, mark)
    assert line == 0
    assert [(row[0], row[1], row[3]) for row in rows] == [(row[0], row[1], row[3]) for row in expected]
    assert [row[2] for row in rows] == pytest.approx([row[2] for row in expected], rel=1e-6)


def test_ratings_are_the_nearest_floats() -> None:
    _, rows = parse("1:\n2,4.7\n2,0.1\n2,-3.3\n", ":")
    assert [row[2] for row in rows] == [float(np.float32(value)) for value in (4.7, 0.1, -3.3)]


def test_fields_after_the_date_are_skipped() -> None:
    assert parse("1|1\n2\t90\t3811\t13:24:00 x,y\n", "|") == (0, [(1, 2, 90.0, 3811)])


@pytest.mark.parametrize("above", ["7,4", "x", "1", ":", "-1:"])
def test_a_line_above_the_first_header_is_found(above: str) -> None:
    assert count_grouped(bytes_of(f"\n{above}\n1:\n2,3\n"), ord(":")) == (0, 2)


BAD_LINES = ["x", "8", "8,", "8,x", "8,.", "8,-", "8,--1", "8,1.2.3", "8,4abc", "8,4:5", "8x4", "8.5,4", "-8,4", ",4"]


@pytest.mark.parametrize("bad", [*BAD_LINES, " 8,4", "1" * 19 + ",4", "1" * 19 + ":"])
def test_a_bad_line_is_found(bad: str) -> None:
    assert parse(f"1:\n2,3,2005\n\n{bad}\n2,3\n", ":")[0] == 4


def test_nothing_is_nothing() -> None:
    assert count_grouped(bytes_of(""), ord(":")) == (0, 0)
    assert parse("1:\n2:\n", ":") == (0, [])
