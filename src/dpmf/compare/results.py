"""What a comparison has measured: one row per run, in a CSV file that grows as runs end.

Figures are columns; what is more than a number (the guarantee, the course of a run, distributions) is JSON in a column
of its own. A row is written at once, so that a comparison that is broken off keeps what it has.

>>> import tempfile
>>> table = Table(Path(tempfile.mkdtemp()) / "runs.csv")
>>> table.append(Row("own-mean", "none", math.inf, repeat=0, seed=7, rmse=0.9))
>>> table.append(Row("sgd", "none", math.inf, repeat=0, seed=7, rmse=0.8, spectrum=[3.0, 1.0]))
>>> [(row.method, row.asked, row.rmse, row.spectrum) for row in table.rows()]
[('own-mean', inf, 0.9, []), ('sgd', inf, 0.8, [3.0, 1.0])]
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.evaluation import peers
from dpmf.frames import Columnar
from dpmf.html import show_table
from dpmf.privacy.guarantee import MODES, Guarantee

OWN_MEAN = "own-mean"
"""The baseline: the per-user mean, which uses no one else's data."""
BIASES = "biases"
"""The mean, what items differ by and what users differ by; not private, and without factors."""
POPULAR, PRIVATE_POPULAR = peers.POPULAR, peers.PRIVATE_POPULAR
"""What most people rated, for everybody: not private, and with the noise of a budget."""
EXACT_EASE, IMPLICIT = peers.EXACT_EASE, peers.IMPLICIT
"""Rankings without privacy, for new users those of `dpmf.evaluation.peers`."""
NON_PRIVATE = "sgd"
"""What is reached without privacy, the line that private methods are held against."""
REFERENCES = (OWN_MEAN, BIASES, POPULAR, NON_PRIVATE, EXACT_EASE, IMPLICIT)
_MOST_FIELD = 1 << 24  # characters of a cell
_MOST_WORDS = 200  # characters of what is wrong with a row
_WIDTHS = {"history": 3, "error_cdf": 2, "by_popularity": 3, "by_activity": 3}  # of rows in columns of JSON
_ADDED = ("ranking",)  # columns that tables of earlier versions do not have
_MAY_MISS = {"history": (1, 2), "by_popularity": (2,), "by_activity": (2,)}  # places in them that may be null


@dataclass(frozen=True)
class Row:
    """What one run has shown, for the holder of the data.

    Attributes:
        method: its name on the command line, one of `REFERENCES`, or `PRIVATE_POPULAR`.
        mode: "certified", "paper", or "none" if nothing is guaranteed.
        asked: the epsilon that was asked for; infinity if none.
        repeat: from 0; each has a split, a start and noise of its own.
        seed: of the split and of the start. Noise has none.
        epsilon, delta, unit, neighbours, certified: of the guarantee, or claim; None (False) if there is none.
        rmse, mae: on held-out ratings.
        recall, ndcg, coverage: at 10, of people with held-out ratings that they like.
        kld, kld_top_users, rmse_top_users: as in `dpmf.evaluation.leak`.
        factors, epochs: how many there were.
        threads: how many it had.
        seconds, epoch_seconds, peak_memory: wall time of the training, of an epoch, and bytes; None if other runs went
            on beside it, which disturb all three.
        error: what kept it from ending, in words; "" if it ended.
        guarantee: in full, as `Guarantee.to_json` has it.
        history: epoch, seconds (None like `seconds`) and error on the training ratings (None if it was no number).
        error_cdf: sizes of errors on held-out ratings, and what share is at most so large.
        by_popularity, by_activity: as in `dpmf.evaluation.accuracy`: the upper end of a group as a fraction of the
            items (users), most popular (active) first; held-out ratings in it; rmse.
        spectrum: singular values of the item factors, falling.
        ranking: for new users, the figures of `dpmf.evaluation.new_users`, by name, and how many people they are of.
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
    threads: int | None = None
    seconds: float | None = None
    epoch_seconds: float | None = None
    peak_memory: int | None = None
    error: str = ""
    guarantee: dict[str, Any] = field(default_factory=dict)
    history: list[list[float | None]] = field(default_factory=list)
    error_cdf: list[list[float]] = field(default_factory=list)
    by_popularity: list[list[float | None]] = field(default_factory=list)
    by_activity: list[list[float | None]] = field(default_factory=list)
    spectrum: list[float] = field(default_factory=list)
    ranking: dict[str, Any] = field(default_factory=dict)

    def figure(self, name: str) -> float | None:
        """Return a figure by its name, None if the run has none."""
        found: float | None = self.ranking.get(name) if "@" in name else getattr(self, name)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; figures for new users stand beside the others."""
        content = asdict(self)
        ranking = content.pop("ranking")
        return {**content, **ranking}

    @property
    def key(self) -> tuple[str, str, float, int]:
        """What a comparison measures once."""
        return self.method, self.mode, self.asked, self.repeat

    @property
    def is_reference(self) -> bool:
        """Whether it is drawn as a line that needs no epsilon."""
        return self.mode == "none" and math.isinf(self.asked) and self.method in REFERENCES


class Rows(list[Row], Columnar):
    """The rows of a comparison; also a table of them, of what is a number or a word in each."""

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of a row that are no tables themselves, and the figures for new users beside them."""
        names = [one.name for one in fields(Row) if not str(one.type).startswith(("dict", "list"))]
        columns = {name: [getattr(row, name) for row in self] for name in names}
        figures = dict.fromkeys(name for row in self for name in row.ranking if not name.endswith("_interval"))
        return columns | {name: [row.ranking.get(name) for row in self] for name in figures}

    def _repr_html_(self) -> str:
        known = {name: column for name, column in self.to_columns().items() if any(one is not None for one in column)}
        return show_table(known)


_KINDS = {one.name: str(one.type) for one in fields(Row)}


class Table:
    """A CSV file of rows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, row: Row) -> None:
        """Write a row at the end, whole, and flush it to the disk."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            content = file.read()
            end = content.rfind(b"\n") + 1  # a row is one line, and one that was cut off has no end
            names = content[: content.find(b"\n")].decode().split(",") if end else list(_KINDS)
            if not end:
                writer.writerow(names)
            writer.writerow([_text(getattr(row, name, None)) for name in names])
            file.seek(end)
            file.truncate()
            file.write(text.getvalue().encode())
            file.flush()
            os.fsync(file.fileno())

    def rows(self) -> Rows:
        """Return the rows, of two with the same key the later one; one that was cut off is left out.

        Raises:
            InvalidArgument: there is no table.
            DamagedFile: a row makes no sense, or says something else than its own guarantee.
        """
        if not self.path.is_file():
            raise InvalidArgument(f"no results at {self.path}: name the folder that `dpmf compare` wrote")
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedFile(f"cannot read {self.path}: {error}") from None
        *lines, _ = text.split("\n")  # what follows the last end of a line was cut off
        if not lines:
            return Rows()
        names = lines[0].split(",")
        missing = [name for name in _KINDS if name not in names and name not in _ADDED]
        if missing:
            raise DamagedFile(f"{self.path} is not a table of results: it has no column {missing[0]!r}")
        found: dict[tuple[str, str, float, int], Row] = {}
        with _wide_cells():
            for number, line in enumerate(lines[1:], start=2):
                try:
                    row = _row(names, line)
                except (csv.Error, KeyError, TypeError, ValueError, RecursionError, DpmfError) as error:
                    what = " ".join(str(error).split())[:_MOST_WORDS]
                    raise DamagedFile(f"line {number} of {self.path} is damaged: {what}; take it out") from None
                found[row.key] = row
        return Rows(found.values())


@contextlib.contextmanager
def _wide_cells() -> Iterator[None]:
    """Let cells be long for a while: the limit is one for the whole process, and others rely on it."""
    before = csv.field_size_limit(_MOST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _row(names: list[str], line: str) -> Row:
    cells = next(csv.reader([line]), [])
    if len(cells) != len(names):
        raise ValueError(f"it has {len(cells)} cells, and there are {len(names)} columns")
    known = {name: _value(name, cell) for name, cell in zip(names, cells, strict=True) if name in _KINDS}
    row = Row(**known)
    if row.mode not in MODES or not row.asked > 0:
        raise ValueError("mode or epsilon is unknown")
    if not row.error:
        _check_guarantee(row)
    return row


def _check_guarantee(row: Row) -> None:
    """Refuse a row that says something else than its own guarantee."""
    if row.mode == "none":
        guarantee = Guarantee.none()
        if row.guarantee:
            raise ValueError("it has a guarantee, and its mode is none")
    else:
        guarantee = Guarantee.from_json(row.guarantee)
    for name in ("mode", "epsilon", "delta", "unit", "neighbours", "certified"):
        if getattr(row, name) != getattr(guarantee, name):
            raise ValueError(f"{name} is {getattr(row, name)}, and the guarantee in it says {getattr(guarantee, name)}")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
    return repr(value) if isinstance(value, float) else " ".join(str(value).splitlines())


def _value(name: str, text: str) -> Any:
    kind = _KINDS[name]
    if kind.startswith(("dict", "list")):
        content = json.loads(text) if text else ({} if kind.startswith("dict") else [])
        _check_shape(name, content)
        return content
    if kind == "bool":
        return {"True": True, "False": False}[text]
    if kind == "str":
        return text
    if not text and kind.endswith("None"):
        return None
    return {"float": float, "int": int, "str": str}[kind.split(" ")[0]](text)


def _check_shape(name: str, content: Any) -> None:
    """Refuse nested content that is not what its column is for: pictures and tables rely on it."""
    if name == "guarantee":
        good = isinstance(content, dict)
    elif name == "ranking":
        good = isinstance(content, dict) and all(map(_is_figure, content.items()))
    elif name == "spectrum":
        good = isinstance(content, list) and all(map(_is_number, content))
    else:
        width = _WIDTHS[name]
        may_miss = _MAY_MISS.get(name, ())
        good = isinstance(content, list) and all(
            isinstance(one, list)
            and len(one) == width
            and all(_is_number(part) or (part is None and place in may_miss) for place, part in enumerate(one))
            for one in content
        )
    if not good:
        raise ValueError(f"{name} is not of the form that it should have")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_figure(entry: tuple[str, object]) -> bool:
    """Tell whether this is a number under its name, or an interval under a name that says so."""
    name, value = entry
    if not name.endswith("_interval"):
        return _is_number(value) or value is None
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
