"""Faults inflicted on the real program: kills, full disks, flipped bits, and what must hold after each of them.

    python benchmarks/faults.py [--quick] [--only kill,stop,…] [--seed 1] [--json FILE] [--page docs/faults.md]

Needs Linux, root for file systems that are full or read-only, and libfaketime for the clock. After every fault: nothing
that was complete is lost, nothing is half-written, the command runs again and ends with the same bits (of a certified
run, whose noise cannot be predicted: the ledger has at least what was drawn), no temporary file is left, and every
refusal is one line with a non-zero exit. Moments are uniformly random over the time that a run takes. Prints a table.
--json also writes what was found to a file, in which kinds of faults that were not asked for stay as they are, so that
a campaign can be run in parts; --page writes the table of that file, or of this run, into a page.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blocks import put_block
from fault_cases import cases, make_world
from fault_flips import flip
from fault_kinds import (
    Place,
    Reference,
    fake_clock,
    fill_disk,
    has_groups,
    jump_clock,
    kill,
    lock_folder,
    refer,
    run_two,
    starve,
    stop,
)
from fault_program import LOGS, Defect, warm_up

KINDS = {  # what is inflicted, how often, and how often in the quick version
    "kill": ("`kill -9`", 200, 28),
    "disk": ("disk full", 50, 7),
    "flip": ("one bit flipped", 500, 42),
    "clock": ("clock that jumps", 13, 2),
    "two": ("two processes at once", 28, 7),
    "stop": ("stopped for a minute", 5, 2),
    "locked": ("read-only folder", 28, 7),
    "memory": ("out of memory", 28, 7),
}
_DO: dict[str, Callable[[Place, Reference, random.Random], bool]] = {
    "kill": kill, "disk": fill_disk, "clock": jump_clock, "two": run_two, "locked": lock_folder, "memory": starve,
}  # fmt: skip


class Tally:
    """How often each fault was inflicted on what, how often that ended a run, and what went wrong."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.seconds: dict[str, int] = {}

    @classmethod
    def read(cls, path: Path | None, but: list[str]) -> Tally:
        """Return what a file has, if there is one, of other kinds of faults."""
        found = cls()
        if path is not None and path.exists():
            content = json.loads(path.read_text())
            found.rows = {(row["fault"], row["case"]): row for row in content["faults"] if row["fault"] not in but}
            found.seconds = {kind: seconds for kind, seconds in content["seconds"].items() if kind not in but}
        return found

    def add(self, kind: str, case: str, ended: bool, defect: str | None) -> None:
        """Count one fault."""
        empty = {"fault": kind, "case": case, "times": 0, "ended": 0, "defects": []}
        row = self.rows.setdefault((kind, case), empty)
        row["times"] += 1
        row["ended"] += ended
        if defect:
            row["defects"].append(defect)
            print(f"DEFECT {kind}, {case}: {defect}", flush=True)

    def table(self) -> str:
        """Return a table in Markdown: a row for each kind of fault."""
        lines = ["| fault | inflicted on | times | run ended by it | defects |", "|---|---|---|---|---|"]
        for kind, (title, *_) in KINDS.items():
            if found := [row for (one, _), row in self.rows.items() if one == kind]:
                where = ", ".join(f"{row['case']} ({row['times']})" for row in found)
                times, ended = (sum(row[name] for row in found) for name in ("times", "ended"))
                lines.append(f"| {title} | {where} | {times} | {ended} | {sum(len(row['defects']) for row in found)} |")
        return "\n".join(lines) + "\n"

    def to_json(self, seed: int, quick: bool) -> str:
        """Return everything, by kind of fault and case."""
        faults = [row for kind in KINDS for (one, _), row in self.rows.items() if one == kind]
        seconds = {kind: self.seconds[kind] for kind in KINDS if kind in self.seconds}
        return json.dumps({"seed": seed, "quick": quick, "seconds": seconds, "faults": faults}, indent=1) + "\n"


def inflict(kind: str, times: int, place: Place, references: list[Reference], rng: random.Random, tally: Tally,
            pause: float) -> None:  # fmt: skip
    """Inflict a kind of fault on all cases in turn."""
    if kind == "flip":
        flip(place.world, place.work, rng, times, functools.partial(tally.add, kind))
        return
    act = functools.partial(stop, seconds=pause) if kind == "stop" else _DO[kind]
    commands_only = kind == "clock" or (kind == "memory" and not has_groups())
    usable = [one for one in references if not commands_only or isinstance(one.case.words, str)]
    if kind == "locked":
        usable = [one for one in usable if one.case.name != "compare"]  # writes beside its data, as `--out` says
    for number in range(times):
        one = usable[number % len(usable)]
        try:
            tally.add(kind, one.case.name, act(place, one, rng), None)
        except Defect as defect:
            tally.add(kind, one.case.name, True, str(defect))


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    if os.geteuid():
        raise SystemExit("file systems are mounted: run it as root")
    kinds = asked.only.split(",")
    if "clock" in kinds and fake_clock() is None:
        raise SystemExit("libfaketime is not installed: leave out `clock`, or install it")
    tally = Tally.read(asked.json, kinds)
    root = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        root.chmod(0o755)
        place = Place(root / "world", root / "work")
        make_world(place.world)
        shutil.copytree(place.world, root / "warm")
        words = [one.words.replace(" --checkpoint checkpoint --resume", "").partition(" --ledger")[0] for one in cases()
                 if isinstance(one.words, str) and one.words.startswith("train")]  # fmt: skip
        warm_up(words, root / "warm")
        references = [refer(place, one) for one in cases()]
        for one in references:
            print(f"{one.case.name}: {one.seconds:.2f} s, {one.size:,} bytes", flush=True)
        for kind in kinds:
            title, times, few = KINDS[kind]
            before, rng = time.perf_counter(), random.Random(f"{asked.seed} {kind}")
            inflict(kind, few if asked.quick else times, place, references, rng, tally, 2.0 if asked.quick else 60.0)
            tally.seconds[kind] = round(time.perf_counter() - before)
            print(f"{title}: {tally.seconds[kind]} s", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(LOGS, ignore_errors=True)
    print(tally.table())
    put_block(asked.page, "faults", tally.table())
    if asked.json is not None:
        asked.json.write_text(tally.to_json(asked.seed, asked.quick))


if __name__ == "__main__":
    main()
