"""A record of everything that was released about the same people, with a cap that is never exceeded.

Two releases of the same ratings cost more than one. A ledger is a JSON file that the holder of the ratings keeps
beside them. It stores the events of every release and composes them all with the accountant.

Call `spend` *before any noise is drawn*: it writes the entry to disk, permanently, and only then may the run continue.
A run that fails or is killed later has spent what it asked for, whether or not anything was published; nothing is ever
refunded. Concurrent runs wait for each other (a lock file beside the ledger), so that together they cannot overspend.
A damaged ledger is refused, never started over.

Noise levels may be chosen in the light of earlier releases if all events are full batches with Gaussian noise: a cap on
Gaussian privacy still holds (Smith, Thakurta 2022). For Poisson-sampled steps, and for mixtures with noise of
gamma-distributed length, they should be chosen in advance.

>>> import tempfile
>>> from dpmf.privacy import GaussianEvent
>>> ledger = Ledger(tempfile.mkdtemp() + "/ledger.json", Budget(2.0))
>>> events = [GaussianEvent("item sums", noise_multiplier=5.0, coordinates=40)]
>>> ledger.spend("first", Guarantee.certified_by(Budget(1.0), events, releases=["item factors"]))
>>> ledger.spent()
0.834118
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpmf.errors import BudgetExceeded, DamagedFile, DpmfError, InvalidArgument
from dpmf.files import digest_of, dump_json, read_json, remove_partial, write_text
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.budget import Budget
from dpmf.privacy.events import Event
from dpmf.privacy.guarantee import Guarantee, rounded_up

FORMAT_VERSION = 1
_FIELDS = {"format", "version", "epsilon", "delta", "unit", "neighbours", "entries", "digest"}
_PATIENCE = 120.0  # seconds; an entry takes at most a few


@dataclass(frozen=True)
class Entry:
    """One release that was charged, whether or not it was published.

    Attributes:
        label: what it was for.
        date: when it was entered, in ISO 8601 and UTC.
        guarantee: of the release. Only its events count.
        run: identifies a run that can be resumed; None for any other run.
        started: the number of its stages that were started.
    """

    label: str
    date: str
    guarantee: Guarantee
    run: str | None = None
    started: int = 0


class Ledger:
    """The privacy spent on one set of ratings, in a file.

    Args:
        path: the file. It is created if it does not exist and a cap is given.
        cap: the greatest cost of all releases together, at the ledger's own delta; infinity only records. It is fixed
            when the ledger is created: later it may be left out, and a different one is refused.
    """

    def __init__(self, path: str | Path, cap: Budget | None = None) -> None:
        self.path = Path(path).resolve()  # so that a link and its target share one lock
        if not self.path.parent.is_dir():
            raise InvalidArgument(f"no folder {self.path.parent} for the ledger: create it first")
        if cap is None and not self.path.exists():
            raise InvalidArgument(f"no ledger {path}: check the name, or give a cap to start a new one")
        if cap is not None and not self.path.exists():
            with self._locked():
                if not self.path.exists():
                    self._write(cap, ())
        self.cap, _ = self._read()  # no lock: the file is replaced as a whole
        if cap is not None and cap != self.cap:
            raise InvalidArgument(
                f"the ledger {path} has the cap {_shown(self.cap)}: it cannot change to {_shown(cap)}"
            )

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first."""
        return self._read()[1]

    def spent(self) -> float:
        """Return the ε of all entries together, at the ledger's delta, rounded up; infinity if one is unbounded."""
        return rounded_up(self._cost(self.entries()))

    def total_with(self, guarantee: Guarantee) -> float:
        """Return the ε of all entries and one more release together; nothing is entered."""
        return rounded_up(self._cost((*self.entries(), Entry("", "", guarantee))))

    def spend(self, label: str, guarantee: Guarantee, *, run: str | None = None) -> None:
        """Enter a release, before any noise for it is drawn; it stays spent whatever happens next.

        Anything not certified (no guarantee, a paper's claim, seeded noise) counts as unbounded. A run that is resumed
        passes the same `run` again, and is entered only if it is not in the ledger yet.

        Raises:
            BudgetExceeded: all releases together would cost more than the cap. Nothing was entered.
            InvalidArgument: the unit or the neighbours are not the ledger's, or the run had another guarantee before.
        """
        for name in ("unit", "neighbours"):
            given, ours = getattr(guarantee, name), getattr(self.cap, name)
            if guarantee.mode == "certified" and given != ours:  # anything else is unbounded, whatever its unit
                raise InvalidArgument(f"{name}={given!r} cannot be added to a ledger with {name}={ours!r}")
        entry = Entry(label, datetime.now(UTC).isoformat(timespec="seconds"), guarantee, run)
        with self._locked():
            cap, before = self._read()
            same = [one for one in before if run is not None and one.run == run]
            if any(one.guarantee != guarantee for one in same):
                raise InvalidArgument(f"the ledger {self.path} has another guarantee for this run: start a new run")
            if same:  # nothing is written, now or perhaps ever by this run
                remove_partial(self.path)
                return
            after = (*before, entry)
            total = self._cost(after)
            if total > cap.epsilon:
                asked = self._cost((entry,))
                raise BudgetExceeded(
                    f"{label!r} asks for epsilon={asked:g}, epsilon={self._cost(before):g} is spent, and together they "
                    f"would cost {total:g}: more than the cap {_shown(cap)} of the ledger {self.path}"
                )
            self._write(cap, after)

    def start(self, run: str, stage: int) -> None:
        """Record that a stage of a run, counted from 0, is started, before any noise for it is drawn.

        Raises:
            BudgetExceeded: it was started before, from another copy of the run's checkpoint.
            InvalidArgument: the run is not in the ledger.
        """
        with self._locked():
            cap, entries = self._read()
            place = next((place for place, one in enumerate(entries) if one.run == run), None)
            if place is None:
                raise InvalidArgument(f"the ledger {self.path} has no entry for this run: restore it from a backup")
            if entries[place].started > stage:
                raise BudgetExceeded(
                    "the checkpoint is a copy, or was restored, and its run continued elsewhere: continue there, or "
                    "start a new run in another folder, which is charged again"
                )
            started = replace(entries[place], started=stage + 1)
            self._write(cap, (*entries[:place], started, *entries[place + 1 :]))

    def _cost(self, entries: Sequence[Entry]) -> float:
        if not all(entry.guarantee.certified for entry in entries):
            return math.inf
        events: list[Event] = [event for entry in entries for event in entry.guarantee.events]
        return epsilon_of(events, self.cap.delta, neighbours=self.cap.neighbours)

    def _read(self) -> tuple[Budget, tuple[Entry, ...]]:
        content = read_json(self.path)
        if not isinstance(content, dict) or content.get("format") != "dpmf-ledger":
            raise DamagedFile(f"{self.path} is not a dpmf ledger: check the name")
        if content.get("version") != FORMAT_VERSION:
            raise DamagedFile(f"{self.path} has a format that this dpmf does not read: update dpmf")
        try:
            if set(content) != _FIELDS or digest_of(_unsealed(content)) != content["digest"]:
                raise DamagedFile("its content is not what its digest says")
            epsilon = math.inf if content["epsilon"] is None else content["epsilon"]
            cap = Budget.recorded(epsilon, content["delta"], content["unit"], content["neighbours"])
            return cap, tuple(_entry(one) for one in content["entries"])
        except (DpmfError, KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"the ledger {self.path} is damaged: {error}; restore it from a backup") from None

    def _write(self, cap: Budget, entries: Sequence[Entry]) -> None:
        content: dict[str, Any] = {
            "format": "dpmf-ledger",
            "version": FORMAT_VERSION,
            "epsilon": cap.epsilon if cap.is_finite else None,
            "delta": cap.delta,
            "unit": cap.unit,
            "neighbours": cap.neighbours,
            "entries": [_json_of(one) for one in entries],
        }
        write_text(self.path, dump_json({**content, "digest": digest_of(content)}))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock, Timeout

        try:
            with FileLock(self.path.with_name(f"{self.path.name}.lock"), timeout=_PATIENCE):
                yield
        except Timeout:
            raise InvalidArgument(f"another run has held the ledger {self.path} for minutes: try again later") from None


def _json_of(entry: Entry) -> dict[str, Any]:
    run = {} if entry.run is None else {"run": entry.run, "started": entry.started}
    return {"label": entry.label, "date": entry.date, "guarantee": entry.guarantee.to_json(), **run}


def _entry(content: dict[str, Any]) -> Entry:
    if set(content) - {"run", "started"} != {"label", "date", "guarantee"}:
        raise ValueError("an entry has missing or unknown fields")
    run, started = str(content["run"]) if "run" in content else None, int(content.get("started", 0))
    return Entry(str(content["label"]), str(content["date"]), Guarantee.from_json(content["guarantee"]), run, started)


def _unsealed(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name != "digest"}


def _shown(cap: Budget) -> str:
    return f"({cap.epsilon:g}, {cap.delta:g}) per {cap.unit}, {cap.neighbours}"
