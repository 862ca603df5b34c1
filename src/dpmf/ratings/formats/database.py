"""DuckDB: a connection that spills to the disk, and its errors in one line.

>>> with open_database() as connection:
...     connection.execute("SELECT 6 * 7").fetchall()
[(42,)]
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpmf.addresses import check_addresses
from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.files import scratch_folder

_ROOM = 2**29  # addresses for each of its threads: more than was seen to be too few, at which it crashes


@contextlib.contextmanager
def open_database(memory: str | None = None) -> Iterator[Any]:
    """Yield a DuckDB connection that spills to a folder of its own; Ctrl-C and full disks are reported as such."""
    import duckdb

    check_addresses(per_thread=_ROOM)
    with scratch_folder("scan") as spill, duckdb.connect(":memory:") as connection:
        connection.execute("SET temp_directory = $folder", {"folder": str(spill)})
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET TimeZone = 'UTC'")  # or times without a zone would depend on the machine
        if memory is not None:
            try:
                connection.execute("SET memory_limit = $limit", {"limit": memory})
            except duckdb.Error:
                raise InvalidArgument(f"memory={memory!r} is not an amount of memory: write it as '2GB'") from None
        try:
            yield connection
        except (duckdb.InterruptException, RuntimeError) as error:
            # Ctrl-C reaches DuckDB first, which reports it in one of these two ways.
            if isinstance(error, duckdb.InterruptException) or "interrupt" in str(error).lower():
                raise KeyboardInterrupt from None
            raise
        except duckdb.IOException as error:
            raise OSError(_in_one_line(str(error))) from None
        except duckdb.Error as error:
            raise InvalidRatings(_in_one_line(str(error))) from None


@contextlib.contextmanager
def open_file(path: Path, memory: str | None) -> Iterator[Any]:
    """Yield a connection whose errors, inside the block, are reported as errors of the file."""
    import duckdb

    with open_database(memory) as connection:
        try:
            yield connection
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise InvalidRatings(f"cannot read {path}: {_in_one_line(str(error))}") from None


def _in_one_line(complaint: str) -> str:
    """Return what DuckDB found, without its advice, which is about DuckDB; for a bad line of text, its number."""
    if "state machine" in complaint:
        return "its lines do not all end in the same way, or a quote is not closed"
    lines = [
        line.strip()
        for line in re.split(r"\n\s*(?:Possible|LINE \d)| This can happen when", complaint)[0].splitlines()
        if line.strip()
    ]
    place = re.search(r"CSV Error on Line: (\d+)", lines[0])
    if place:
        return f"line {place[1]}: {lines[-1].rstrip('.')}; `dpmf data describe` finds encoding, quotes and bad rows"
    return " ".join(lines).removeprefix("Invalid Input Error: ")
