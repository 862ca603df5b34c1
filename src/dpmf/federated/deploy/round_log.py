"""The rounds that a third party opened and closed, on disk before anybody hears of it.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> with opened_log(folder, bytes(32)) as rounds:
...     rounds.opened(3)
>>> with opened_log(folder, bytes(32)) as rounds:
...     rounds.last_opened, rounds.last_closed
(3, -1)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpmf.engine.journal import locked
from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.files import dump_json, is_sealed, read_json, sealed, write_text

_FILE = "rounds.json"


@dataclass
class RoundLog:
    """The last rounds of a run; `opened_log` makes it.

    Attributes:
        path: the file.
        agreement: the id of the agreement.
        last_opened, last_closed: -1 for none.
    """

    path: Path
    agreement: str
    last_opened: int = -1
    last_closed: int = -1

    @property
    def next(self) -> int:
        """The first round that may be opened: again, if an earlier process opened it and did not close it."""
        return self.last_opened + (self.last_opened == self.last_closed)

    def opened(self, number: int) -> None:
        """Record that a round is open; when this returns, the record is on the disk."""
        if number < self.next:
            raise BudgetExceeded(f"round {number} was closed before, or a later one was opened: a sum leaves once")
        self.last_opened = number
        self._write()

    def closed(self, number: int) -> None:
        """Record that a round ends, before its sum leaves."""
        if number != self.last_opened or number <= self.last_closed:
            raise BudgetExceeded(f"round {number} was closed before, or never opened: a sum leaves once")
        self.last_closed = number
        self._write()

    def _write(self) -> None:
        numbers = {"opened": self.last_opened, "closed": self.last_closed}
        write_text(self.path, dump_json(sealed({"agreement": self.agreement, **numbers})))


@contextlib.contextmanager
def opened_log(folder: Path, agreement_id: bytes) -> Iterator[RoundLog]:
    """Yield the rounds of an agreement, and keep other processes from the folder meanwhile."""
    with locked(folder):
        path = folder / _FILE
        log = RoundLog(path, agreement_id.hex())
        if path.exists():
            content = read_json(path)
            try:
                if not is_sealed(content):
                    raise ValueError("its content does not match its digest")
                if content["agreement"] != log.agreement:
                    raise InvalidArgument(f"{folder} is of another agreement: choose another folder")
                log.last_opened, log.last_closed = int(content["opened"]), int(content["closed"])
            except InvalidArgument:
                raise
            except (KeyError, TypeError, ValueError) as error:
                raise DamagedFile(
                    f"{path} is damaged: {error}; begin a new run with a new agreement, as an older copy would let a "
                    "sum leave twice"
                ) from None
        else:
            log._write()
        yield log
