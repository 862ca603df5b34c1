"""What a comparison has measured: one row per run, in a CSV file that grows as runs end.

Figures are columns; what is more than a number (the guarantee, the course of a run, distributions) is JSON in a column
of its own. A row is written at once, so that a comparison that is broken off keeps what it has.

>>> import tempfile
>>> table = Table(Path(tempfile.mkdtemp()) / "runs.csv")
>>> table.append(Row("als", "certified", 1.0, repeat=0, seed=7, epsilon=1.0, unit="user", certified=True, rmse=0.9))
>>> table.append(Row("sgd", "none", math.inf, repeat=0, seed=7, rmse=0.8, spectrum=[3.0, 1.0]))
>>> [(row.method, row.asked, row.rmse, row.spectrum) for row in table.rows()]
[('als', 1.0, 0.9, []), ('sgd', inf, 0.8, [3.0, 1.0])]
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

from dpmf.errors import DamagedFile, InvalidArgument

OWN_MEAN = "own-mean"
"""The free baseline: everybody's own mean rating, which nobody has to tell anybody."""
POPULAR = "popular"
"""What most people rated, for everybody; not private."""
NON_PRIVATE = "sgd"
"""What is reached without privacy, the line that private methods are held against."""
REFERENCES = (OWN_MEAN, POPULAR, NON_PRIVATE)
_MOST_FIELD = 1 << 24  # characters of a cell


@dataclass(frozen=True)
class Row:
    """What one run has shown, for the holder of the data.

    Attributes:
        method: its name on the command line, or one of `REFERENCES`.
        mode: "certified", "paper", or "none" if nothing is promised.
        asked: the epsilon that was asked for; infinity if none.
        repeat: from 0; each has a split, a start and noise of its own.
        seed: of the split and of the start. Noise has none.
        epsilon, delta, unit, neighbours, certified: of the guarantee, or claim; None (False) if there is none.
        rmse, mae: on held-out ratings.
        recall, ndcg, coverage: at 10, of people with held-out ratings that they like.
        kld, kld_top_users, rmse_top_users: as in `dpmf.evaluation.leaking`.
        factors, epochs: how many there were.
        seconds, epoch_seconds, peak_memory: wall time of the training, of an epoch, and bytes; None if other runs went
            on beside it, which disturb all three.
        error: what kept it from ending, in words; "" if it ended.
        guarantee: in full, as `Guarantee.to_json` has it.
        history: epoch, seconds and error on the training ratings, after each epoch.
        error_cdf: sizes of errors on held-out ratings, and what share is at most so large.
        by_popularity, by_activity: as in `dpmf.evaluation.evaluating`: the upper end of a group as a fraction of the
            items (users), most popular (active) first; held-out ratings in it; rmse.
        spectrum: singular values of the item factors, falling.
    """

    method: str
    mode: str
    asked: float
    repeat: int
    seed: int
    epsilon: float | None = None
    delta: float | None = None
    unit: str | None = None
    neighbours: str | None = None
    certified: bool = False
    rmse: float | None = None
    mae: float | None = None
    recall: float | None = None
    ndcg: float | None = None
    coverage: float | None = None
    kld: float | None = None
    kld_top_users: float | None = None
    rmse_top_users: float | None = None
    factors: int | None = None
    epochs: int | None = None
    seconds: float | None = None
    epoch_seconds: float | None = None
    peak_memory: int | None = None
    error: str = ""
    guarantee: dict[str, Any] = field(default_factory=dict)
    history: list[list[float]] = field(default_factory=list)
    error_cdf: list[list[float]] = field(default_factory=list)
    by_popularity: list[list[float | None]] = field(default_factory=list)
    by_activity: list[list[float | None]] = field(default_factory=list)
    spectrum: list[float] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, float, int]:
        """What a comparison measures once."""
        return self.method, self.mode, self.asked, self.repeat

    @property
    def is_reference(self) -> bool:
        """Whether it is drawn as a line that needs no epsilon."""
        return self.mode == "none" and math.isinf(self.asked) and self.method in REFERENCES


_KINDS = {one.name: str(one.type) for one in fields(Row)}


class Table:
    """A CSV file of rows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, row: Row) -> None:
        """Write a row at the end, whole, and flush it to the disk."""
        new = not self.path.exists() or not self.path.stat().st_size
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if new:
            writer.writerow(_KINDS)
        writer.writerow([_text(getattr(row, name)) for name in _KINDS])
        with self.path.open("r+b" if not new else "wb") as file:
            file.seek(_end_of_whole_lines(file) if not new else 0)
            file.truncate()
            file.write(text.getvalue().encode())
            file.flush()
            os.fsync(file.fileno())

    def rows(self) -> list[Row]:
        """Return the rows, of two with the same key the later one; one that was cut off is left out."""
        if not self.path.is_file():
            raise InvalidArgument(f"no results at {self.path}: name the folder that `dpmf compare` wrote")
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedFile(f"cannot read {self.path}: {error}") from None
        *lines, _ = text.split("\n")  # what follows the last end of a line was cut off
        names = _cells(lines[0]) if lines else []
        missing = [name for name in _KINDS if name not in names]
        if missing:
            raise DamagedFile(f"{self.path} is not a table of results: it has no column {missing[0]!r}")
        rows = [_row(names, _cells(line)) for line in lines[1:]]
        return list({row.key: row for row in rows if row is not None}.values())


def _end_of_whole_lines(file: IO[bytes]) -> int:
    """Return where the last whole line ends: a row is one line, and one that was cut off has no end."""
    return file.read().rfind(b"\n") + 1


def _cells(line: str) -> list[str]:
    csv.field_size_limit(_MOST_FIELD)
    return next(csv.reader([line]), [])


def _row(names: list[str], cells: list[str]) -> Row | None:
    if len(cells) != len(names):
        return None
    try:
        return Row(**{name: _value(_KINDS[name], cell) for name, cell in zip(names, cells, strict=True)
                      if name in _KINDS})  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return None


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
    return repr(value) if isinstance(value, float) else " ".join(str(value).splitlines())


def _value(kind: str, text: str) -> Any:
    if kind.startswith(("dict", "list")):
        return json.loads(text) if text else ({} if kind.startswith("dict") else [])
    if kind == "bool":
        return {"True": True, "False": False}[text]
    if kind == "str":
        return text
    if not text and kind.endswith("None"):
        return None
    return {"float": float, "int": int, "str": str}[kind.split(" ")[0]](text)
