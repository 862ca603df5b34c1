"""Record figures for the documentation: what was measured, by which command, on which machine, of which code.

A benchmark that has `--record` writes its figures to docs/results/SET.jsonl, one row per line; rows of the same name
and epsilon are replaced. `python -m docs_tools.results` then puts them into the pages. There is no time in a row:
`source` is the Git tree of src/dpmf, so `git rev-parse HEAD:src/dpmf` tells whether a figure is of the current code.

>>> as_typed(["benchmarks/private.py", "/data/ml-1m", "--seed", "3", "--record", "ml-1m"])
'python benchmarks/private.py …/ml-1m --seed 3'
>>> slug("/data/ml-1m", every=10)
'ml-1m-every-10'
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
_PACKAGES = ("dpmf", "numba", "numpy", "scipy")


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add --record."""
    parser.add_argument(
        "--record",
        metavar="NAME",
        nargs="?",
        const="",
        help="write the figures to docs/results, under this name of the data",
    )


def record(
    results: str,
    name: str,
    figures: Mapping[str, Mapping[str, Any]],
    *,
    runs: int = 1,
    note: str = "",
    command: str = "",
    earlier: bool = False,
    folder: Path = RESULTS,
) -> None:
    """Write one row for every epsilon.

    Args:
        results: the set, which is a file.
        name: what was measured, such as the data; `slug` makes one.
        figures: by epsilon as text ("1", "inf", or "" where there is none): each figure by its name. None is left out.
        runs: over how many runs figures are means.
        note: what a reader must know; it stands below every table that shows the row.
        command: what was run; this program and its arguments by default.
        earlier: they were measured before, with code and versions that are not known any more.
        folder: where the files are.
    """
    about = {
        "runs": runs,
        **({"note": note} if note else {}),
        "command": command or as_typed(sys.argv),
        "machine": machine(),
        "versions": {} if earlier else {package: version(package) for package in _PACKAGES},
        "source": "" if earlier else source(),
    }
    rows = [
        {"name": name, "epsilon": epsilon, "figures": _rounded(found), **about} for epsilon, found in figures.items()
    ]
    store(folder / f"{results}.jsonl", rows)


def store(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Put rows into a file, in the place of those with the same name and epsilon."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = {(row["name"], row["epsilon"]): row for row in [*map(json.loads, lines), *rows]}
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered = sorted(known.values(), key=lambda row: (row["name"], -float(row["epsilon"] or 0)))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ordered), encoding="utf-8")


def epsilon_text(epsilon: float) -> str:
    """Return an epsilon as rows have it.

    >>> epsilon_text(0.5), epsilon_text(1.0), epsilon_text(float("inf"))
    ('0.5', '1', 'inf')
    """
    return f"{epsilon:g}"


def slug(data: str, *, every: int = 1) -> str:
    """Return a name for data: its folder or file, and of how many users one is taken."""
    name = Path(data).name.replace(":", "-")
    return name if every == 1 else f"{name}-every-{every}"


def as_typed(arguments: list[str]) -> str:
    """Return the command, without folders of this machine and without --record."""
    program, *rest = arguments
    kept: list[str] = []
    skipping = False
    for one in rest:
        if skipping and not one.startswith("-"):
            skipping = False
            continue
        skipping = one == "--record"
        if not skipping and not one.startswith("--record="):
            kept.append(f"…/{Path(one).name}" if Path(one).is_absolute() else one)
    shown = " ".join(one if "…" in one else shlex.quote(one) for one in kept)
    return f"python benchmarks/{Path(program).name} {shown}".strip()


def machine() -> str:
    """Return the processor and how many CPUs there are."""
    import llvmlite.binding as llvm

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    vectors = "AVX-512" if llvm.get_host_cpu_features().get("avx512f") else "no AVX-512"
    return f"{name} ({llvm.get_host_cpu_name()}), {vectors}, {os.cpu_count()} CPUs"


def source() -> str:
    """Return the Git tree of the package, with a plus if files in it were changed since."""
    tree = _git("rev-parse", "--short=12", "HEAD:src/dpmf")
    return f"{tree}+" if tree and _git("status", "--porcelain", "--", "src/dpmf") else tree


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _rounded(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in found.items()
        if value is not None
    }
