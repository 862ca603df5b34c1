"""Bits that flip in what is stored: what is read afterwards is the same as before, or refused in one line."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fault_program import Defect, check_refusal, digest, start

_SGD = "train data --method sgd --factors 8 --epochs 12 --seed 1 --threads 2"


@dataclass(frozen=True)
class Stored:
    """Something that is stored, and a command that reads it.

    Attributes:
        name: in the table.
        make: commands that write it, one after the other.
        folder: where it is.
        read: a command that reads it.
        seen: what the reader finds, to be compared: a folder it writes, or "" for what it prints.
    """

    name: str
    make: tuple[str, ...]
    folder: str
    read: str
    seen: str = ""


STORED = (
    Stored("store", (), "data", f"{_SGD} --out found", "found"),
    Stored("store, streamed", (), "data", f"{_SGD} --memory 20kB --out found", "found"),
    Stored("checkpoint", (f"{_SGD} --checkpoint kept",), "kept", f"{_SGD} --checkpoint kept --resume --out found",
           "found"),
    Stored("checkpoint, certified",
           ("train data --method als --epsilon 5 --seed 1 --set noise_seed=1 --checkpoint kept",), "kept",
           "train data --method als --epsilon 5 --seed 1 --set noise_seed=1 --checkpoint kept --resume --out found",
           "found"),
    Stored("release", (), "one", "verify one --json"),
    Stored("release with a ranking", ("train data --epsilon 20 --seed 1 --out one",), "one", "explain one --json"),
    Stored("ledger", ("train data --method als --epsilon 5 --ledger kept/ledger.json --cap 100 --out found",), "kept",
           "ledger kept/ledger.json --json"),
)  # fmt: skip


def flip(
    world: Path, work: Path, rng: random.Random, n_flips: int, report: Callable[[str, bool, str | None], None]
) -> None:
    """Flip bits, one at a time, spread over everything that is stored."""
    for number, one in enumerate(STORED):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(world, work / "here")
        here = work / "here"
        if one.folder == "kept":
            (here / "kept").mkdir()
        for words in one.make:
            if words.endswith("--out one"):
                shutil.rmtree(here / "one")
            run = start(words, here)
            if run.wait():
                raise SystemExit(f"{words}: {run.stderr}")
        shutil.copytree(here, work / "good")
        expected, _ = _read(one, here)
        files = sorted(
            path for path in (work / "good" / one.folder).rglob("*") if path.is_file() and path.stat().st_size
        )
        for _ in range(n_flips // len(STORED) + (number < n_flips % len(STORED))):
            shutil.rmtree(here)
            shutil.copytree(work / "good", here)
            path = rng.choice(files)
            content = bytearray(path.read_bytes())
            place = rng.randrange(8 * len(content))
            content[place // 8] ^= 1 << place % 8
            (here / path.relative_to(work / "good")).write_bytes(content)
            try:
                found, refused = _read(one, here)
                if not refused and found != expected:
                    raise Defect(f"bit {place} of {path.name} changes what is read, and nobody notices")
            except Defect as defect:
                report(one.name, True, f"{path.name}, bit {place}: {defect}")
            else:
                report(one.name, refused, None)


def _read(one: Stored, here: Path) -> tuple[str, bool]:
    """Return what a reader finds, and whether it refused to read."""
    run = start(one.read, here)
    code = run.wait()
    if code:
        lines = [line for line in run.stderr.splitlines() if "drawn from a seed" in line]
        check_refusal(run, code, "\n".join(lines))
        return "", True
    return digest(here / one.seen) if one.seen else run.stdout, False
