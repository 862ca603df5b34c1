"""Speed on processors with and without AVX-512, beside LIBMF and implicit, as a table for the documentation.

    python benchmarks/processors.py measure DATA FOLDER [--users 48000] [--libmf libmf.so] [--only all|narrow]
    python benchmarks/processors.py table FOLDER [--page README.md] [--page docs/benchmarks.md]

`measure` runs `dpmf bench` as the machine is and, if it has AVX-512, once more with everything narrowed to AVX2: what
Numba compiles for dpmf, and OpenBLAS for implicit (LIBMF uses AVX either way). It writes a file for each to FOLDER, so
that files of several machines can stand there together. `table` puts all of them into the pages that have a place for
them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from blocks import put_block

_FACTORS = "32,64,128,256,512,1024"
_USUAL = (64, 256, 1024)  # of these, in the summary
_NARROW = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+prfchw,+sse4.2,-avx512f",
    "OPENBLAS_CORETYPE": "Haswell",
}
_TITLES = {
    "summary": (
        "processor",
        "factors",
        "dpmf",
        "LIBMF",
        "ratio",
        "ratio with 16-bit items",
        "implicit's time over ours",
    ),
    "speeds": (
        *("processor", "factors", "dpmf", "LIBMF", "ratio", "16-bit", "ratio", "2 threads over 1", "copying, 2 over 1"),
        *("of the limit", "implicit"),
    ),
    "times": ("processor", "factors", "items", "measured", "arithmetic", "L1", "L2", "L3", "memory"),
}


def main() -> None:
    """Measure, or write tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("data")
    one.add_argument("folder", type=Path)
    one.add_argument("--users", type=int, default=48_000)
    one.add_argument("--epochs", type=int, default=7)
    one.add_argument("--libmf", type=Path)
    one.add_argument("--only", choices=("all", "narrow"))
    two = commands.add_parser("table")
    two.add_argument("folder", type=Path)
    two.add_argument("--page", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    if arguments.command == "measure":
        _measure(arguments)
        return
    results = [json.loads(path.read_text()) for path in sorted(arguments.folder.glob("*.json"))]
    for name, table in (("speed", _summary(results)), ("processors", _speeds(results)), ("times", _times(results))):
        print(table)
        for page in arguments.page:
            if f"<!-- begin: {name} -->" in page.read_text():
                put_block(page, name, table)


def _measure(arguments: argparse.Namespace) -> None:
    name, has_avx512 = _processor()
    widths: dict[str, tuple[str, dict[str, str]]] = {"all": ("AVX-512" if has_avx512 else "AVX2", {})}
    if has_avx512:
        widths["narrow"] = ("narrowed to AVX2", _NARROW)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for kind, (vectors, settings) in widths.items():
        if arguments.only not in (None, kind):
            continue
        rows = _bench(arguments, settings)["rows"]
        found = {"processor": name, "vectors": vectors, "users": arguments.users, "rows": rows}
        slug = re.sub("[^a-z0-9]+", "-", f"{name} {vectors}".lower())  # names hold slashes, too: "w/ Radeon"
        (arguments.folder / f"{slug}.json").write_text(json.dumps(found, indent=1) + "\n")


def _bench(arguments: argparse.Namespace, settings: dict[str, str]) -> dict[str, Any]:
    options = ["--users", str(arguments.users), "--epochs", str(arguments.epochs), "--factors", _FACTORS]
    if arguments.libmf:
        options += ["--libmf", str(arguments.libmf)]
    with tempfile.TemporaryDirectory() as cache:  # code for other vectors must not get into the usual one
        settings = {"OPENBLAS_NUM_THREADS": "1", "NUMBA_CACHE_DIR": cache} | settings
        done = subprocess.run(
            [sys.executable, "-m", "dpmf", "bench", arguments.data, *options, "--json"],
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return dict(json.loads(done.stdout))


def _processor() -> tuple[str, bool]:
    """Return what Linux and LLVM call the processor, and whether it has AVX-512."""
    import llvmlite.binding as llvm

    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "processor")
    return f"{name} ({llvm.get_host_cpu_name()})", bool(llvm.get_host_cpu_features().get("avx512f"))


def _summary(results: list[dict[str, Any]]) -> str:
    """Return the few columns that matter most, of the numbers of factors that are used most."""
    rows = [[_name(one), *_speeds_of(row)] for one in results for row in one["rows"] if row["factors"] in _USUAL]
    return _table("summary", [[*row[:5], row[6], row[10]] for row in rows])


def _speeds(results: list[dict[str, Any]]) -> str:
    return _table("speeds", [[_name(one), *_speeds_of(row)] for one in results for row in one["rows"]])


def _speeds_of(row: dict[str, Any]) -> list[str]:
    ours, packed = (row[f"{name}updates_per_second"] / 1e6 for name in ("", "bfloat16_"))
    theirs = row["libmf_updates_per_second"] and row["libmf_updates_per_second"] / 1e6
    race, gains = row["als_over_implicit"], row["copy_over_one_thread"].values()
    digits = 0 if ours >= 50 else 1

    def text(value: float | None, digits: int) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    return [
        str(row["factors"]),
        text(ours, digits),
        text(theirs, digits),
        text(theirs and ours / theirs, 1),
        text(packed, digits),
        text(theirs and packed / theirs, 1),
        text(row["over_one_thread"], 2),
        f"{min(gains):.2f}–{max(gains):.2f}",
        text(row["roofline_ratio"], 2),
        text(race, 1),
    ]


def _times(results: list[dict[str, Any]]) -> str:
    return _table(
        "times",
        [
            [_name(one), str(row["factors"]), items, *_nanoseconds_of(row, kind)]
            for one in results
            for row in one["rows"]
            for items, kind in (("float32", ""), ("16 bits", "bfloat16_"))
        ],
    )


def _nanoseconds_of(row: dict[str, Any], kind: str) -> list[str]:
    """Return how long an update takes on each thread, and the least that every part can take."""
    seconds = row[f"{kind}seconds_per_update"]
    places = [1 / row[f"{kind}updates_per_second"], *(seconds.get(place) for place in _TITLES["times"][4:])]
    return ["" if one is None else f"{one * row['threads'] * 1e9:.1f}" for one in places]


def _name(result: dict[str, Any]) -> str:
    return f"{result['processor']}, {result['vectors']}"


def _table(name: str, rows: list[list[str]]) -> str:
    lines = [_TITLES[name], ["---"] * len(_TITLES[name]), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
