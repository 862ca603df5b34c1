"""Synthetic ratings of any size, written straight to the disk: for measuring speed and memory, not accuracy.

Users and items are drawn from power laws, ratings have a little structure (generous users, good items) and noise.
DuckDB generates the rows in a stream, so the set may be far larger than memory.

>>> import tempfile
>>> from dpmf.ratings import Ratings
>>> folder = Path(tempfile.mkdtemp()) / "synthetic"
>>> write_synthetic(folder, n_ratings=1000, n_users=50, n_items=40, scale=Scale(1, 5))
>>> ratings = Ratings.read(folder)
>>> ratings.n_items, ratings.scale.hi
(40, 5.0)
"""

from __future__ import annotations

from pathlib import Path

from dpmf.errors import InvalidArgument
from dpmf.files import dump_json, new_folder, write_text
from dpmf.ratings.formats.database import open_database
from dpmf.ratings.table import Scale

_USER_SKEW = 1.6  # the exponent of a uniform number: the larger, the more the first ones have
_ITEM_SKEW = 3.0


def write_synthetic(
    folder: Path, *, n_ratings: int, n_users: int, n_items: int, scale: Scale, seed: int = 0, name: str = "synthetic"
) -> None:
    """Write a data set: a folder with `ratings.parquet`, `items.csv` and `dataset.json`.

    Args:
        folder: where to; it must not hold anything else.
        n_ratings: number of rows; a few of them repeat a (user, item) pair, as real data do.
        n_users, n_items: sizes.
        scale: of the ratings, which are whole numbers.
        seed: fixes the ratings.
        name: what to call the set.
    """
    for what, count in (("ratings", n_ratings), ("users", n_users), ("items", n_items)):
        if count < 1:
            raise InvalidArgument(f"{count} {what} are too few: at least 1")
    with new_folder(folder) as work:
        with open_database() as connection:
            target = str(work / "ratings.parquet").replace("'", "''")
            connection.execute("SET preserve_insertion_order = false")
            connection.execute(_rows(n_ratings, n_users, n_items, scale, seed, target))
        lines = "\n".join(f"{item},Item {item},Genre {item % 12}" for item in range(n_items))
        write_text(work / "items.csv", f"item,title,genres\n{lines}\n")
        write_text(work / "dataset.json", dump_json({"name": name, "scale": [scale.lo, scale.hi]}))


def _rows(n_ratings: int, n_users: int, n_items: int, scale: Scale, seed: int, target: str) -> str:
    """Return the SQL that writes the rows; every number comes from a hash of the row, the column and the seed."""

    def uniform(what: str, salt: int) -> str:
        # One number per row, column and seed: DuckDB's hash of two numbers is not independent in each of them.
        return f"(hash(CAST({what} AS BIGINT) * 1000003 + {salt + 16 * (int(seed) % 60000)}) / 18446744073709551616.0)"

    liking = f"0.55 + 0.3 * ({uniform('user', 4)} - 0.5) + 0.4 * ({uniform('item', 5)} - 0.5)"
    noise = f"0.5 * ({uniform('row', 3)} - 0.5)"
    value = f"round({scale.lo} + {scale.hi - scale.lo} * ({liking} + {noise}))"
    return (
        f"COPY (SELECT user, item, CAST(least(greatest({value}, {scale.lo}), {scale.hi}) AS FLOAT) AS rating FROM ("
        f"SELECT range AS row, CAST(floor({n_users} * pow({uniform('range', 1)}, {_USER_SKEW})) AS INTEGER) AS user, "
        f"CAST(floor({n_items} * pow({uniform('range', 2)}, {_ITEM_SKEW})) AS INTEGER) AS item "
        f"FROM range({n_ratings}))) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
    )
