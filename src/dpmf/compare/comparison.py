"""A comparison in a folder: what was asked, on what data, with what software; rows beside it; and a report of both.

The folder is for whoever holds the data, and nobody else can read it: figures about held-out ratings are outside any
guarantee. It remembers what it compares, so that the same command resumes after an interruption, and more epsilons,
methods or repeats can be added, but nothing else can be mixed in.

>>> import tempfile
>>> from dpmf.compare.sweep import points_of
>>> from dpmf.ratings.synthetic import make
>>> plan = Sweep(points_of(["als"], ["certified"], [5.0]), repeats=1, settings={"als": {"n_epochs": 1}})
>>> with Comparison.open(Path(tempfile.mkdtemp()) / "new", plan, make(80, 40), command="dpmf compare") as one:
...     rows = one.run(n_threads=1)
>>> len(rows), one.facts["data"]["users"]
(7, 80)
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from dpmf.compare.results import Rows, Table
from dpmf.compare.sweep import Progress, Sweep, sweep
from dpmf.engine.grid import checksum_of
from dpmf.engine.journal import locked
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.evaluation.new_users import NewUsers
from dpmf.files import check_replaceable, digest_of, dump_json, read_json, write_text
from dpmf.methods.snapshots import fingerprint_of
from dpmf.ratings import Ratings
from dpmf.ratings.summary import describe
from dpmf.temporary import SUFFIX
from dpmf.version import __version__

ROWS, FACTS, REPORT, PICTURE = "runs.csv", "comparison.json", "report.html", "accuracy.png"
_FILES = (ROWS, FACTS, REPORT, PICTURE, ".lock")
_DRAWN = (".png", ".svg", ".pdf")
_FORMAT = {"format": "dpmf-comparison", "version": 1}
_PACKAGES = ("numpy", "scipy", "numba", "dp-accounting", "cryptography", "matplotlib")


@dataclass(frozen=True, eq=False)
class Comparison:
    """A folder that is being worked in; make one with `open`.

    Attributes:
        folder: where.
        plan: what is compared.
        ratings: on what.
        facts: what a report says about it, in JSON values: command, versions, machine, data.
    """

    folder: Path
    plan: Sweep
    ratings: Ratings
    facts: dict[str, Any]

    @staticmethod
    @contextlib.contextmanager
    def open(folder: Path, plan: Sweep, ratings: Ratings, *, command: str) -> Iterator[Comparison]:
        """Yield a comparison, new or begun before, that no other process works on.

        Raises:
            InvalidArgument: the folder holds another comparison, or something else.
        """
        check_replaceable(folder, (*_FILES, *_leftovers(folder), *_pictures(folder)))
        plan.check(ratings)
        identity = _identity(plan, ratings)
        with locked(folder):
            table = Table(folder / ROWS)
            begun = table.path.exists() and bool(table.rows())
            before = _read(folder / FACTS) if begun else None
            if before is not None and before["identity"] != identity:
                other = next((name for name in identity if before["identity"].get(name) != identity[name]), "format")
                raise InvalidArgument(
                    f"{folder} holds a comparison with other {_NAMES.get(other, other)}: repeat it as it was, or "
                    "choose another folder"
                )
            folder.chmod(0o700)
            for name in _leftovers(folder):
                (folder / name).unlink()
            facts = {**_FORMAT, **_facts(ratings, command), "identity": identity}
            if before is not None:
                facts["began"] = before["began"]
            write_text(folder / FACTS, dump_json(facts))
            yield Comparison(folder, plan, ratings, facts)

    @property
    def table(self) -> Table:
        """The rows."""
        return Table(self.folder / ROWS)

    def run(
        self, *, n_threads: int | None = None, jobs: int | None = None, progress: Progress = lambda *_: None
    ) -> Rows:
        """Run what is missing; return all rows that the plan asks for. See `dpmf.compare.sweep.sweep`."""
        return sweep(self.plan, self.ratings, self.table, n_threads=n_threads, jobs=jobs, progress=progress)


_NAMES = {
    "data": "ratings",
    "how": "splits",
    "dpmf": "versions of dpmf",
    "ids": "users or items",
    "settings": "settings of methods",
    "items_public": "public items",
    "protocol": "new users",
    "test": "test ratings",
}


def _identity(plan: Sweep, ratings: Ratings) -> dict[str, Any]:
    """Return what rows of one table have to have in common."""
    held_out = plan.new_users
    timestamps = () if ratings.timestamps is None else (ratings.timestamps,)  # a split may depend on them
    return {
        "data": fingerprint_of(ratings, *timestamps),
        "ids": f"{checksum_of((ratings.user_ids.keys, ratings.catalogue.ids.keys)):08x}",
        "scale": str(ratings.scale),
        "holdout": plan.holdout,
        "how": plan.how,
        "seed": plan.seed,
        "delta": plan.delta,
        "neighbours": plan.neighbours,
        "items_public": plan.items_public,
        "settings": digest_of({name: _texts(fields) for name, fields in plan.settings.items()}),
        "profiles": None if plan.profiles is None else plan.profiles.digest,
        "dpmf": __version__,
        **({} if plan.test is None else {"test": fingerprint_of(plan.test)}),
        **({} if held_out is None else {"protocol": _protocol(held_out)}),
    }


def _protocol(held_out: NewUsers) -> list[float | None]:
    return [held_out.share, held_out.fold_in, held_out.positive, held_out.least]


def _leftovers(folder: Path) -> list[str]:
    """Return files that were being written when an earlier run was killed."""
    ours = re.compile(rf"\.(?:{'|'.join(map(re.escape, _FILES))})\.[a-z0-9_]{{8}}(?:{re.escape(SUFFIX)})?")
    return [file.name for file in folder.iterdir() if ours.fullmatch(file.name)] if folder.is_dir() else []


def _pictures(folder: Path) -> list[str]:
    """Return pictures that `dpmf plot` may have been told to put beside a comparison."""
    if not (folder / FACTS).exists():
        return []
    return [file.name for file in folder.iterdir() if file.suffix in _DRAWN]


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items()}


def _facts(ratings: Ratings, command: str) -> dict[str, Any]:
    return {
        "command": command,
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "name": ratings.name,
        "data": describe(ratings),
        "versions": {"dpmf": __version__, "python": sys.version.split()[0], **_versions()},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cpus": os.cpu_count()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _read(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = read_json(path)
    known = isinstance(facts, dict) and facts.get("format") == "dpmf-comparison"
    if not known or not isinstance(facts.get("identity"), dict) or not isinstance(facts.get("began"), str):
        raise DamagedFile(f"{path} is not the record of a comparison: choose another folder")
    if facts.get("version") != _FORMAT["version"]:
        raise DamagedFile(f"{path} is of format {facts.get('version')}, which this version of dpmf does not know")
    return facts
