"""Faults inflicted on the real program: kills, full disks, flipped bits, and what must hold after each of them.

    python benchmarks/faults.py [--quick] [--only kill,stop,…] [--seed 1] [--json FILE] [--page docs/faults.md]

Needs Linux, and root for file systems that are full or read-only. After every fault: nothing that was complete is lost,
nothing is half-written, the command runs again and ends with the same bits (of a certified run, whose noise cannot be
predicted: the ledger has at least what was drawn), no temporary file is left, and every refusal is one line with a
non-zero exit. Moments are uniformly random over the time that a run takes. Prints a table; --json also writes what was
found to a file, and --page the table into a page.
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

from blocks import put_block
from fault_cases import cases, make_world
from fault_flips import flip
from fault_kinds import Place, Reference, fill_disk, jump_clock, kill, lock_folder, refer, run_two, starve, stop
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
_DO: dict[str, Callable[[Place, Reference, random.Random], None]] = {
    "kill": kill, "disk": fill_disk, "clock": jump_clock, "two": run_two, "locked": lock_folder, "memory": starve,
}  # fmt: skip


class Tally:
    """How often each fault was inflicted on what, and what went wrong."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[str | None]] = {}

    def add(self, kind: str, case: str, defect: str | None) -> None:
        """Count one fault."""
        self.rows.setdefault((kind, case), []).append(defect)
        if defect:
            print(f"DEFECT {kind}, {case}: {defect}", flush=True)

    def table(self) -> str:
        """Return a table in Markdown: a row for each kind of fault."""
        lines = ["| fault | inflicted on | times | defects |", "|---|---|---|---|"]
        for kind, (title, *_) in KINDS.items():
            found = {case: outcomes for (one, case), outcomes in self.rows.items() if one == kind}
            if found:
                where = ", ".join(f"{case} ({len(outcomes)})" for case, outcomes in found.items())
                times = sum(map(len, found.values()))
                bad = sum(outcome is not None for outcomes in found.values() for outcome in outcomes)
                lines.append(f"| {title} | {where} | {times} | {bad} |")
        return "\n".join(lines) + "\n"

    def to_json(self) -> list[dict[str, object]]:
        """Return a row for each kind of fault and case."""
        return [
            {"fault": kind, "case": case, "times": len(outcomes), "defects": [one for one in outcomes if one]}
            for (kind, case), outcomes in self.rows.items()
        ]


def inflict(kind: str, times: int, place: Place, references: list[Reference], rng: random.Random, tally: Tally,
            pause: float) -> None:  # fmt: skip
    """Inflict a kind of fault on all cases in turn."""
    if kind == "flip":
        flip(place.world, place.work, rng, times, lambda case, defect: tally.add(kind, case, defect))
        return
    act = functools.partial(stop, seconds=pause) if kind == "stop" else _DO[kind]
    usable = [one for one in references if kind != "clock" or isinstance(one.case.words, str)]
    if kind == "locked":
        usable = [one for one in usable if one.case.name != "compare"]  # writes beside its data, as `--out` says
    for number in range(times):
        one = usable[number % len(usable)]
        try:
            act(place, one, rng)
        except Defect as defect:
            tally.add(kind, one.case.name, str(defect))
        else:
            tally.add(kind, one.case.name, None)


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
    rng, tally, began = random.Random(asked.seed), Tally(), time.perf_counter()
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
        for kind in asked.only.split(","):
            title, times, few = KINDS[kind]
            before = time.perf_counter()
            inflict(kind, few if asked.quick else times, place, references, rng, tally, 2.0 if asked.quick else 60.0)
            print(f"{title}: {time.perf_counter() - before:.0f} s", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(LOGS, ignore_errors=True)
    print(tally.table())
    put_block(asked.page, "faults", tally.table())
    if asked.json is not None:
        content = {"seed": asked.seed, "quick": asked.quick, "seconds": round(time.perf_counter() - began),
                   "faults": tally.to_json()}  # fmt: skip
        asked.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
