"""Record the figures of a comparison that `dpmf compare` made, for the documentation.

    python benchmarks/comparison.py FOLDER NAME --command "dpmf compare …/netflix --methods als …" [--note TEXT]
        [--earlier]

FOLDER holds runs.csv. Means over the repeats, with the least and the greatest as `_min` and `_max`, are recorded as
METHOD/NAME at every epsilon (METHOD-paper/NAME for claims), with the error of the per-user mean as `baseline_rmse` and
what popularity has as `popularity_ndcg@100`. `--earlier` says that the comparison was made with other code than there
is now."""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from record import epsilon_text, record

from dpmf.compare.results import OWN_MEAN, POPULAR, REFERENCES, Row, Table

_FIGURES = ("rmse", "mae", "recall", "ndcg", "coverage")


def main() -> None:
    """Read rows, and record means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name")
    parser.add_argument("--command", required=True)
    parser.add_argument("--note", default="")
    parser.add_argument("--earlier", action="store_true")
    arguments = parser.parse_args()
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in Table(arguments.folder / "runs.csv").rows():
        if not row.error:
            results = f"{row.method}-paper" if row.mode == "paper" else row.method
            groups[results, epsilon_text(row.asked) if math.isfinite(row.asked) else ""].append(row)
    own_mean, popular = (_means(groups.get((name, ""), [])) for name in (OWN_MEAN, POPULAR))
    for (results, epsilon), rows in groups.items():
        figures = _means(rows)
        figures |= {"baseline_rmse": own_mean["rmse"]} if "rmse" in figures and own_mean else {}
        figures |= {
            f"popularity_{name}": popular[name] for name in ("recall@20", "ndcg@100") if name in figures and popular
        }
        note = "" if results in REFERENCES else arguments.note
        about: dict[str, Any] = {"command": arguments.command, "note": note, "earlier": arguments.earlier}
        record(results, arguments.name, {epsilon: figures}, runs=len(rows), **about)


def _means(rows: list[Row]) -> dict[str, float]:
    """Return means and ranges of the figures that all rows have."""
    found: dict[str, float] = {}
    for name in (*_FIGURES, *(figure for row in rows[:1] for figure in row.ranking if "@" in figure)):
        numbers = [value for row in rows if isinstance(value := row.figure(name), int | float)]
        if rows and len(numbers) == len(rows):
            found |= {name: mean(numbers), f"{name}_min": min(numbers), f"{name}_max": max(numbers)}
    return found


if __name__ == "__main__":
    main()
