"""Speed on processors with and without AVX-512, beside LIBMF and implicit, as a table for the documentation.

    python benchmarks/processors.py measure DATA FOLDER [--users 48000] [--libmf libmf.so] [--only all|narrow]
    python benchmarks/processors.py table FOLDER [--page README.md] [--page docs/benchmarks.md]

`measure` runs `dpmf bench` as the machine is and, if it has AVX-512, once more with everything narrowed to AVX2: what
Numba compiles for dpmf, and OpenBLAS for implicit (LIBMF uses AVX either way). It writes a file for each to FOLDER, so
that files of several machines can stand there together. `table` puts all of them into pages.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from blocks import put_block

_FACTORS = "32,64,128,256,512,1024"
_NARROW = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+prfchw,+sse4.2,-avx512f",
    "OPENBLAS_CORETYPE": "Haswell",
}
_TITLE = "| processor | factors | dpmf | LIBMF | ratio | 16-bit, ratio | 2 threads over 1 | of the limit | implicit |"


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
    table = _table([json.loads(path.read_text()) for path in sorted(arguments.folder.glob("*.json"))])
    print(table)
    for page in arguments.page:
        put_block(page, "processors", table)


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
        slug = "-".join(f"{name} {vectors}".lower().replace("(", "").replace(")", "").split())
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


def _table(results: list[dict[str, Any]]) -> str:
    lines = [_TITLE, "|" + "---|" * (_TITLE.count("|") - 1)]
    for one in results:
        lines += [f"| {one['processor']}, {one['vectors']} | {' | '.join(_cells(row))} |" for row in one["rows"]]
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> list[str]:
    ours, packed, theirs = (
        row[f"{name}updates_per_second"] / 1e6 if row.get(f"{name}updates_per_second") else None
        for name in ("", "bfloat16_", "libmf_")
    )
    assert ours is not None
    assert packed is not None
    ratios = ["–", "–"] if theirs is None else [f"{ours / theirs:.1f}", f"{packed / theirs:.1f}"]
    digits = 0 if ours >= 50 else 1
    race = row["als_over_implicit"]
    return [
        str(row["factors"]),
        f"{ours:.{digits}f}",
        "–" if theirs is None else f"{theirs:.{digits}f}",
        *ratios,
        f"{row['over_one_thread']:.2f}",
        f"{row['roofline_ratio']:.2f}",
        "" if race is None else f"{race:.1f}",
    ]


if __name__ == "__main__":
    main()
