"""The faults themselves.

Each function inflicts one, lets the command run again, raises `Defect` if it shows, and returns whether it ended a run.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fault_cases import Case, bits, check_after, prepare
from fault_program import Defect, Run, check_no_leftovers, check_refusal, digest, start

_NOBODY = 65534
_GROUPS = Path("/sys/fs/cgroup/memory")
_FEW, _PLENTY = 100 << 20, 4 << 30  # bytes: with fewer, the interpreter itself and NumPy do not begin
_SPENT = "its budget is spent"  # of a certified run that was killed before anything of it was stored


@dataclass(frozen=True)
class Reference:
    """A run of a case that nothing happened to: how long it takes, how much it writes, and what comes out."""

    case: Case
    seconds: float
    bits: str
    stderr: str
    size: int


@dataclass(frozen=True)
class Place:
    """Where faults are inflicted: the folder of inputs, and one to work in."""

    world: Path
    work: Path

    def new(self, case: Case) -> Path:
        """Return a new folder to run a case in."""
        return prepare(self.world, self.work, case)


def refer(place: Place, case: Case) -> Reference:
    """Run a case twice undisturbed: the same bits, in the time that a run takes once loops are compiled."""
    found = []
    for _ in range(2):
        folder = place.new(case)
        run = start(case.words, folder)
        if run.wait():
            raise SystemExit(f"{case.name}: {run.stderr}")
        check_after(case, folder)
        found.append(bits(case, folder))
    if found[0] != found[1]:
        raise SystemExit(f"{case.name} does not give the same bits twice")
    size = sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
    return Reference(case, run.seconds, found[0], run.stderr, size)


def run_again(one: Reference, folder: Path, *, spent: bool = False) -> None:
    """Run a case after a fault, and compare.

    Args:
        one: what has to come out.
        folder: where.
        spent: whether a certified run may have spent its budget before anything was stored.
    """
    run = start(one.case.words, folder, "again")
    code = run.wait()
    if code and spent and one.case.certified and _SPENT in run.stderr:
        check_refusal(run, code, one.stderr)
        check_after(one.case, folder)
        shutil.rmtree(folder / "checkpoint")  # as the message says: a new run, which is charged again
        run = start(one.case.words, folder, "again")
        code = run.wait()
    if code:
        raise Defect(f"it does not run again: {run.stderr[-300:]}")
    check_after(one.case, folder)
    if bits(one.case, folder) != one.bits:
        raise Defect("it ends with other bits")
    check_no_leftovers(folder)


def kill(place: Place, one: Reference, rng: random.Random) -> bool:
    """`kill -9` at a random moment."""
    folder = place.new(one.case)
    run = start(one.case.words, folder)
    time.sleep(rng.random() * one.seconds)
    run.kill()
    killed = run.wait() == -signal.SIGKILL
    check_after(one.case, folder)
    run_again(one, folder, spent=True)
    return killed


def stop(place: Place, one: Reference, rng: random.Random, seconds: float) -> bool:
    """SIGSTOP for a while, at a random moment."""
    folder = place.new(one.case)
    run = start(one.case.words, folder)
    time.sleep(rng.random() * one.seconds)
    run.kill(signal.SIGSTOP)
    time.sleep(seconds)
    run.kill(signal.SIGCONT)
    if code := run.wait():
        check_refusal(run, code)
        raise Defect(f"it ends with {code}: {run.stderr[-300:]}")
    check_after(one.case, folder)
    if bits(one.case, folder) != one.bits:
        raise Defect("it ends with other bits")
    check_no_leftovers(folder)
    return False


@contextlib.contextmanager
def mounted(folder: Path, options: str, *what: str) -> Iterator[Callable[[str], None]]:
    """Mount a file system, and yield a function that mounts it again with other options."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *what, "-o", options, *([] if "--bind" in what else ["none"]), folder], check=True)
    try:
        yield lambda changed: void(subprocess.run(["mount", "-o", f"remount,{changed}", folder], check=True))
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def void(_: object) -> None:
    """Drop a result."""


def fill_disk(place: Place, one: Reference, rng: random.Random) -> bool:
    """A disk that is full at a random moment: a file system in memory, with room for a part of what a run writes."""
    shutil.rmtree(place.work, ignore_errors=True)
    with mounted(place.work, "size=1g", "-t", "tmpfs") as remount:
        folder = prepare(place.world, place.work / "disk", one.case)
        usage = shutil.disk_usage(place.work)
        room = int(rng.random() * 1.2 * max(one.size - (usage.used), 40_000))
        remount(f"size={usage.used + room + 8192}")
        run = start(one.case.words, folder)
        code = run.wait()
        check_refusal(run, code, one.stderr)
        check_after(one.case, folder)
        remount("size=1g")
        run_again(one, folder, spent=True)
    return bool(code)


def lock_folder(place: Place, one: Reference, rng: random.Random) -> bool:
    """A folder that may only be read: mounted so, or owned by somebody else, with the program run as nobody."""
    folder = place.new(one.case)
    before = digest(folder)
    if rng.random() < 0.5:
        with mounted(folder, "bind", "--bind", str(folder)) as remount:
            remount("bind,ro")
            run = start(one.case.words, folder, first=lambda: _tmp_elsewhere(place.work))
            code = run.wait()
    else:
        for path in place.work, *place.work.parents[:1]:
            path.chmod(0o755)
        subprocess.run(["chmod", "-R", "a+rX", place.work], check=True)
        run = start(one.case.words, folder, first=lambda: _become_nobody(place.work))
        code = run.wait()
    if not code:
        raise Defect("it succeeds where nothing can be written")
    check_refusal(run, code, one.stderr)
    if digest(folder) != before:
        raise Defect("something was written to a folder that may only be read")
    return True


def _tmp_elsewhere(folder: Path) -> None:
    import tempfile

    (folder / "elsewhere").mkdir(exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "elsewhere")


def _become_nobody(folder: Path) -> None:
    _tmp_elsewhere(folder)
    (folder / "elsewhere").chmod(0o777)
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)


def starve(place: Place, one: Reference, rng: random.Random) -> bool:
    """Too little memory: a control group, which kills at a part of what a run takes, or a limit on addresses."""
    group = _GROUPS / f"dpmf-faults-{os.getpid()}"
    kills = has_groups() and (callable(one.case.words) or rng.random() < 0.5)
    if kills:
        _, _, most = _run_in_group(one, place.new(one.case), group, _PLENTY)
        folder = place.new(one.case)
        run, code, _ = _run_in_group(one, folder, group, int(most * rng.random()))
    else:
        folder, limit = place.new(one.case), int(_FEW * (_PLENTY / _FEW) ** rng.random())
        run = start(one.case.words, folder, first=lambda: _begin_limited(str(one.case.words), limit))
        code = run.wait()
    if not (kills and code == -signal.SIGKILL):
        check_refusal(run, code, one.stderr)
    check_after(one.case, folder)
    run_again(one, folder, spent=True)
    return bool(code)


def has_groups() -> bool:
    """Whether there are control groups that limit memory, of the first version."""
    return os.access(_GROUPS, os.W_OK)


def _run_in_group(one: Reference, folder: Path, group: Path, limit: int) -> tuple[Run, int, int]:
    """Run a case in a control group; return also its exit code, and the memory it took, in bytes."""
    group.mkdir(exist_ok=True)
    (group / "memory.limit_in_bytes").write_text(str(limit))
    run = start(one.case.words, folder, first=lambda: void((group / "tasks").write_text(str(os.getpid()))))
    code, most = run.wait(), int((group / "memory.max_usage_in_bytes").read_text())
    group.rmdir()
    return run, code, most


def _begin_limited(words: str, limit: int) -> None:
    """Restart with few addresses, which includes loading all libraries."""
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    os.execv(sys.executable, [sys.executable, "-m", "dpmf", *words.split()])


def run_two(place: Place, one: Reference, rng: random.Random) -> bool:
    """Two processes with the same checkpoint, ledger and output, the second a random moment after the first."""
    folder = place.new(one.case)
    runs: list[Run] = []
    for name in ("first", "second"):
        runs.append(start(one.case.words, folder, name))
        time.sleep(rng.random() * 0.5 * one.seconds * (name == "first"))
    codes = [run.wait() for run in runs]
    for run, code in zip(runs, codes, strict=True):
        check_refusal(run, code, one.stderr)
    if all(codes):
        raise Defect(f"both were refused: {runs[0].stderr[-200:]} {runs[1].stderr[-200:]}")
    check_after(one.case, folder)
    run_again(one, folder)
    return any(codes)


def fake_clock() -> Path | None:
    """Return libfaketime, if it is installed."""
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def jump_clock(place: Place, one: Reference, rng: random.Random) -> bool:
    """A clock that runs a thousand times too fast, backwards, or decades away, with libfaketime."""
    folder = place.new(one.case)
    (folder / "tmp").mkdir()
    assert isinstance(one.case.words, str)
    shift = rng.choice(["-20y x1000", "+40y", "+0 x-50", "-1d x0.001"])
    environment = {
        **os.environ,
        "LD_PRELOAD": str(fake_clock()),
        "FAKETIME": shift,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "TMPDIR": str(folder / "tmp"),
    }
    words = [sys.executable, "-m", "dpmf", *one.case.words.split()]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Defect(f"with the clock at {shift} it ends with {done.returncode}: {done.stderr[-300:]}")
    if bits(one.case, folder) != one.bits:
        raise Defect(f"with the clock at {shift} it ends with other bits")
    check_no_leftovers(folder)
    return False
