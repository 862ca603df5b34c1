"""A mutation fuzzer for every parser of files and messages that may come from anywhere.

    python benchmarks/fuzz.py [--seconds 60] [--only release,store] [--seed 1] [--page docs/faults.md]

Starts from valid input, the same as the short version in tests/fuzzing, and mutates bytes, JSON and tensors; checksums
are repaired most of the time, as somebody malicious would. Everything is read, and what is accepted is used, in
processes with a limit on memory and on time for each input. What is neither read nor refused in one line, crashes,
hangs or asks for much memory is a defect. Prints a row of a table for each parser.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from blocks import put_block

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from fuzzing.mutations import mutate_bytes
from fuzzing.targets import FILES, messages, mutate, read_in_page, read_or_refuse

_BATCH = 100
_SECONDS = 30  # for one input
_MEMORY = 1 << 30  # bytes more than at the start
Attempt = Callable[[random.Random], bool]


def attempts(work: Path) -> dict[str, Attempt]:
    """Return, for each parser, a function that mutates, reads, and returns whether something was read."""
    found: dict[str, Attempt] = {}
    for number, target in enumerate(FILES):
        valid_folder, folder = work / f"valid-{number}", work / f"mutated-{number}"
        valid_folder.mkdir()
        target.write(valid_folder)
        read_or_refuse(partial(target.read, valid_folder))  # compiles loops
        valid = {str(path.relative_to(valid_folder)): path.read_bytes()
                 for path in valid_folder.rglob("*") if path.is_file()}  # fmt: skip

        def attempt(rng: random.Random, target=target, valid=valid, folder=folder) -> bool:  # type: ignore[no-untyped-def]
            mutate(target, valid, folder, rng)
            return read_or_refuse(lambda: target.read(folder))

        found[target.name] = attempt
    for protocol, pairs in messages().items():

        def decode(rng: random.Random, pairs=pairs) -> bool:  # type: ignore[no-untyped-def]
            content, read = rng.choice(pairs)
            changed = mutate_bytes(content, rng)
            return read_or_refuse(lambda: read(changed))

        found[protocol] = decode
    return found


def run_batch(name: str, attempt: Attempt, seed: str, log: Path) -> None:
    """Try a batch, in this process, and write a line for each input: what happened, and where."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MEMORY,) * 2)
    warnings.simplefilter("error")
    logging.disable()
    with log.open("w") as file:
        for number in range(_BATCH):
            signal.alarm(_SECONDS)
            try:
                outcome = "read" if attempt(random.Random(f"{seed} {name} {number}")) else "refused"
            except BaseException as error:
                ours = [one for one in traceback.extract_tb(error.__traceback__) if "/dpmf/" in one.filename]
                where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
                outcome = " ".join(f"{type(error).__name__} at {where}: {error}".split())[:200]
            print(outcome, file=file, flush=True)


def fuzz(name: str, attempt: Attempt, seed: int, seconds: float, log: Path) -> tuple[Counter[str], Counter[str]]:
    """Run batches for some seconds; return how often input was read or refused, and defects."""
    outcomes: Counter[str] = Counter()
    defects: Counter[str] = Counter()
    end, batch = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        batch += 1
        pid = os.fork()
        if not pid:
            run_batch(name, attempt, f"{seed} {batch}", log)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        lines = log.read_text().splitlines()
        for line in lines:
            (outcomes if line in ("read", "refused") else defects)[line] += 1
        if code:
            defects[f"ended with {code} at input {len(lines)} of batch {batch}"] += 1
    return outcomes, defects


def fuzz_page(seed: int, seconds: float) -> str:
    """Have the page's scripts read releases for some seconds; return a row of the table."""
    target = replace(FILES[0], forge=lambda folder: None)  # the page knows of no digest in release.json
    outcomes: Counter[str] = Counter()
    end, batch = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        batch += 1
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            target.write(folder)
            valid = {path.name: path.read_bytes() for path in (folder / "release").iterdir()}
            for number in range(10 * _BATCH):
                mutate(target, valid, folder / str(number), random.Random(f"{seed} page {batch} {number}"))
            outcomes.update(read_in_page(folder))
    read, refused = outcomes.pop("read", 0), outcomes.pop("refused", 0)
    for defect, times in outcomes.most_common():
        print(f"DEFECT page, {times} times: {defect}", flush=True)
    bad = outcomes.total()
    return f"| release, in the page | {read + refused + bad:,} | {read:,} | {refused:,} | {bad} |"


def main() -> None:
    """Fuzz every parser, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    rows = ["| parser | inputs | read | refused | defects |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, attempt in attempts(Path(folder)).items():
            if asked.only and name not in asked.only.split(","):
                continue
            outcomes, defects = fuzz(name, attempt, asked.seed, asked.seconds, Path(folder) / "log")
            for defect, times in defects.most_common():
                print(f"DEFECT {name}, {times} times: {defect}", flush=True)
            total = outcomes.total() + defects.total()
            rows.append(f"| {name} | {total:,} | {outcomes['read']:,} | {outcomes['refused']:,} | {defects.total()} |")
            print(rows[-1], flush=True)
        if not asked.only or "page" in asked.only.split(","):
            rows.append(fuzz_page(asked.seed, asked.seconds))
    print("\n".join(rows))
    put_block(asked.page, "fuzz", "\n".join(rows))


if __name__ == "__main__":
    main()
