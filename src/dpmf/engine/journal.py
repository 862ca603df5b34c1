"""The journal of a private run: every stage is recorded on disk before it starts, so that none starts twice.

A snapshot holds what a run has computed; the journal says what it has spent, which is more if the run stopped between
snapshots. It is in the folder of the snapshots, only moves forward, and belongs to one process at a time.

>>> import tempfile
>>> plan = Checkpoint(Path(tempfile.mkdtemp()) / "run", resume=True)
>>> with locked(plan.folder):
...     open_journal(plan, {"method": "test"}).start(0)
>>> with locked(plan.folder):
...     open_journal(plan, {"method": "test"}).started
1
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.files import digest_of, dump_json, is_sealed, read_json, sealed, write_text

_FILE = "started.json"
_LOCK = ".lock"


@dataclass
class Journal:
    """The stages that a run has started.

    Attributes:
        path: the file.
        identity: a digest of what two runs must have in common to be the same run.
        run: a unique name of the run.
        entered: whether the run is in a ledger.
        started: the number of stages started, finished or not.
    """

    path: Path
    identity: str
    run: str
    entered: bool = False
    started: int = 0

    def start(self, stage: int) -> None:
        """Record that a stage starts; when this returns, the record is on the disk.

        Raises:
            BudgetExceeded: the stage is not the next one, so it was started before.
        """
        if stage != self.started:
            raise BudgetExceeded(
                f"stage {stage} cannot be started: {self.started} stages were started, and none is started twice"
            )
        self.started += 1
        self.write()

    def enter(self) -> None:
        """Record that the run is in a ledger."""
        if not self.entered:
            self.entered = True
            self.write()

    def write(self) -> None:
        """Write the journal to the disk."""
        content = {"identity": self.identity, "run": self.run, "entered": self.entered, "started": self.started}
        write_text(self.path, dump_json(sealed(content)))


@contextlib.contextmanager
def locked(folder: Path | str) -> Iterator[None]:
    """Hold the lock of a checkpoint folder, which is created if it does not exist.

    Raises:
        InvalidArgument: another process holds it.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(folder / _LOCK)  # the system releases it when the process ends, in whatever way
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InvalidArgument(f"another process is using {folder}: wait until it ends") from None
    try:
        yield
    finally:
        lock.release()


def open_journal(plan: Checkpoint, identity: Mapping[str, Any]) -> Journal:
    """Return the journal of a run, a new one if the folder has none. The caller holds the folder `locked`.

    Raises:
        InvalidArgument: the journal belongs to another run, or the plan does not resume it.
        DamagedFile: the journal is damaged, or missing beside a snapshot.
    """
    path, same = Path(plan.folder) / _FILE, digest_of(identity)
    if path.exists():
        found = _read(path)
        if found.started and not plan.resume:
            raise InvalidArgument(f"{plan.folder} holds a checkpoint: resume it, or choose another folder")
        if found.started and found.identity != same:
            raise InvalidArgument(
                f"{plan.folder} is a checkpoint of another run: use the same method, data, settings and budgets, or "
                "another folder"
            )
        if found.identity == same and plan.resume:
            return found  # if nothing was started, the run may be in a ledger all the same
    elif any(path.parent.glob("epoch-*")):
        raise DamagedFile(f"{path} is missing: what the run has spent is unknown, so it cannot be resumed")
    journal = Journal(path, same, secrets.token_hex(16))
    journal.write()
    return journal


def _read(path: Path) -> Journal:
    content = read_json(path)
    try:
        if not is_sealed(content):
            raise ValueError("its content does not match its digest")
        return Journal(
            path, str(content["identity"]), str(content["run"]), bool(content["entered"]), int(content["started"])
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"{path} is damaged: {error}; the run cannot be resumed") from None
