"""Runs of the command line that faults are inflicted on, and what must hold afterwards.

A run is a process of its own, forked from one that has imported the program and compiled its loops, so that hundreds
take minutes. It executes what the command `dpmf` executes. Before noise is drawn, the process notes what for, so that
the account can be compared with what was drawn.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import io
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpmf.cli import dpmf as program
from dpmf.cli import main
from dpmf.errors import DpmfError
from dpmf.files import read_json
from dpmf.privacy import accounting, calibration, guarantee, ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.temporary import SUFFIX

LOGS = Path(tempfile.mkdtemp(prefix="faults-logs-"))  # elsewhere, so that a full disk does not keep us from noting
DRAWN = LOGS / "drawn"
_REMEMBERED = functools.cache(accounting.epsilon_of)


class Defect(Exception):
    """Something that must not happen."""


@dataclass
class Run:
    """A process that runs a command in a folder."""

    pid: int
    folder: Path
    name: str
    began: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0

    def wait(self) -> int:
        """Return the exit code, or minus the signal that ended the run."""
        _, status = os.waitpid(self.pid, 0)
        self.seconds = time.perf_counter() - self.began
        return os.waitstatus_to_exitcode(status)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, unless the run has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    @property
    def stderr(self) -> str:
        """What it has complained about."""
        return (LOGS / f"{self.name}.err").read_text(errors="replace")

    @property
    def stdout(self) -> str:
        """What it has printed."""
        return (LOGS / f"{self.name}.out").read_text(errors="replace")


def start(words: str | Callable[[], None], folder: Path, name: str = "run", first: Callable[[], object] = int) -> Run:
    """Start a command, or a function, in a folder; its temporary files go to a folder beside it.

    Args:
        words: the arguments of `dpmf`.
        folder: where it runs.
        name: of the files, that its output goes to.
        first: called in the new process, before the command.
    """
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return Run(pid, folder, name)
    code = 1
    try:
        for number, kind in ((1, "out"), (2, "err")):
            os.dup2(os.open(LOGS / f"{name}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
        scratch = folder / "tmp"
        with contextlib.suppress(OSError):  # a folder that may only be read: `first` chooses another
            scratch.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        os.chdir(folder)
        _note_draws()
        first()
        if callable(words):
            try:
                words()
                code = 0
            except (DpmfError, OSError, MemoryError) as error:  # what the library raises is what it says
                print(f"dpmf: {error}", file=sys.stderr)
        else:
            sys.argv = ["dpmf", *words.split()]
            main()
            code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _note_draws() -> None:
    """Write a line before each draw of noise, and let the accountant remember what the first process asked."""
    log = os.open(DRAWN, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    drawn = Mechanism._drawn

    def noted(self: Mechanism, event: Any, shape: tuple[int, ...]) -> Any:
        os.write(log, f"{event.what}\n".encode())
        return drawn(self, event, shape)

    Mechanism._drawn = noted  # type: ignore[method-assign]


def warm_up(commands: list[str], folder: Path) -> None:
    """Compile loops, and let all processes share what the accountant has found: the same question takes long."""

    def epsilon_of(events: Any, delta: float, **how: Any) -> float:
        return _REMEMBERED(tuple(events), delta, **how)

    for module in (guarantee, ledger):
        module.epsilon_of = epsilon_of  # type: ignore[attr-defined]
    for name in ("certified.steps", "sgld.certified", "sketch.certified"):
        importlib.import_module(f"dpmf.methods.{name}")
    found, remembered = calibration.poisson_event, functools.cache(calibration.poisson_event)
    for one in list(sys.modules.values()):
        if getattr(one, "poisson_event", None) is found:
            one.poisson_event = remembered  # type: ignore[attr-defined]
    here = Path.cwd()
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for words in commands:
            program.main(words.split(), standalone_mode=False)
    os.chdir(here)
    if threading.active_count() > 1:
        raise RuntimeError("threads go on, and a process that has some cannot be forked safely")


def digest(path: Path) -> str:
    """Return a digest of a file, or of all files in a folder with their names."""
    found = hashlib.sha256()
    for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if one.is_file():
            found.update(f"{one.relative_to(path)}\n".encode() + one.read_bytes())
    return found.hexdigest()


def check_refusal(run: Run, code: int, usual: str = "") -> None:
    """Raise unless a run that did not succeed says why, in one line.

    Args:
        run: the run.
        code: its exit code.
        usual: what the command prints to stderr when nothing is wrong.
    """
    lines = [line for line in run.stderr.splitlines() if line not in usual.splitlines()]
    if code < 0:
        raise Defect(f"it crashed with signal {-code}: {' '.join(lines)[-300:]}")
    if code and (len(lines) != 1 or not lines[0].startswith("dpmf: ")):
        raise Defect(f"it ended with {code} and {len(lines)} lines: {' '.join(lines)[-300:]}")


def check_no_leftovers(folder: Path) -> None:
    """Raise if temporary files are left."""
    left = [path for path in folder.rglob("*") if path.name.endswith(SUFFIX) or path.parent.name == "tmp"]
    if left:
        raise Defect(f"{left[0].relative_to(folder)} was left behind")


def check_account(folder: Path, ledger_file: str = "ledger.json") -> None:
    """Raise if more was drawn than is in the ledger."""
    drawn = Counter(DRAWN.read_text().splitlines()) if DRAWN.exists() else Counter()
    if not (folder / ledger_file).exists():
        if drawn:
            raise Defect(f"{sum(drawn.values())} draws, and no ledger")
        return
    charged: Counter[str] = Counter()
    for entry in read_json(folder / ledger_file)["entries"]:
        for event in entry["guarantee"]["events"]:
            charged[event["what"]] += event["count"]
    for what, times in drawn.items():
        if times > charged[what]:
            raise Defect(f"{what!r} was drawn {times} times and charged {charged[what]} times")
