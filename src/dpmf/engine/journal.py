"""The journal of a private run: what was started is on the disk before it is, so no process ever starts it again.

A snapshot says what a run has; a journal says what it has spent, which is more if the run was stopped in between. It
lies in the folder of the snapshots, only ever moves forward, and is held by one process at a time.

>>> import tempfile
>>> plan = Checkpoint(Path(tempfile.mkdtemp()) / "run", resume=True)
>>> with alone_in(plan.folder):
...     open_journal(plan, {"method": "test"}).start(0)
>>> with alone_in(plan.folder):
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
    """What a run has started.

    Attributes:
        path: of the file.
        identity: a digest of what makes two runs the same run.
        run: a name of the run that no other has.
        entered: whether the run is in a ledger.
        started: how many stages were started, finished or not.
    """

    path: Path
    identity: str
    run: str
    entered: bool = False
    started: int = 0

    def start(self, stage: int) -> None:
        """Write down that a stage is started; when this returns, it is on the disk.

        Raises:
            BudgetExceeded: it is not the next one, so it was started before.
        """
        if stage != self.started:
            raise BudgetExceeded(f"stage {stage} cannot be started: {self.started} were, and none is started twice")
        self.started += 1
        self.write()

    def enter(self) -> None:
        """Write down that the run is in a ledger."""
        if not self.entered:
            self.entered = True
            self.write()

    def write(self) -> None:
        """Put the journal on the disk."""
        content = {"identity": self.identity, "run": self.run, "entered": self.entered, "started": self.started}
        write_text(self.path, dump_json(sealed(content)))


@contextlib.contextmanager
def alone_in(folder: Path | str) -> Iterator[None]:
    """Keep other processes from the checkpoint in a folder, which is made if need be, until the block ends.

    Raises:
        InvalidArgument: another process is at work there.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(folder / _LOCK)  # the system drops it when the process ends, however that happens
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InvalidArgument(f"another process is at work in {folder}: wait until it ends") from None
    try:
        yield
    finally:
        lock.release()


def open_journal(plan: Checkpoint, identity: Mapping[str, Any]) -> Journal:
    """Return the journal of a run, a new one if the folder has none. To be used `alone_in` the folder.

    Raises:
        InvalidArgument: it is of another run, or is not to be resumed.
        DamagedFile: it is damaged, or missing beside a snapshot.
    """
    path, same = Path(plan.folder) / _FILE, digest_of(identity)
    if path.exists():
        found = _read(path)
        if found.started and not plan.resume:
            raise InvalidArgument(f"{plan.folder} holds a checkpoint: resume it, or choose another folder")
        if found.started and found.identity != same:
            raise InvalidArgument(
                f"{plan.folder} is a checkpoint of another run: use the same data, settings and budgets, or another "
                "folder"
            )
        if found.identity == same and plan.resume:
            return found  # if nothing was started, the run may be in a ledger all the same
    elif any(path.parent.glob("epoch-*")):
        raise DamagedFile(f"{path} is missing: what the run has spent is not known, and it cannot go on")
    journal = Journal(path, same, secrets.token_hex(16))
    journal.write()
    return journal


def _read(path: Path) -> Journal:
    content = read_json(path)
    try:
        if not is_sealed(content):
            raise ValueError("its content is not what its digest says")
        return Journal(
            path, str(content["identity"]), str(content["run"]), bool(content["entered"]), int(content["started"])
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"{path} is damaged: {error}; the run cannot go on") from None
