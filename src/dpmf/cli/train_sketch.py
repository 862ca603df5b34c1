"""What `dpmf train` says of a count sketch beside what it says of every method: how much memory it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpmf.cli.output import say

if TYPE_CHECKING:
    from dpmf.methods import Sketch
    from dpmf.runs.training import Run


def sketch_report(method: Sketch, run: Run) -> dict[str, Any]:
    """Return rows, cells per row and bytes of the table, and the bytes of dense factors of the same ids."""
    n_ids = len(run.model.release.items)
    if run.model.guarantee.mode != "certified":  # there items alone are in it
        n_ids += len(run.model.user_ids)
    depth, width = method.depth, method.width_for(n_ids)
    return {
        "sketch": {
            "rows": depth,
            "cells_per_row": width,
            "bytes": 4 * depth * width,
            "dense_bytes": 4 * n_ids * run.model.release.n_factors,
        }
    }


def print_sketch(report: dict[str, Any]) -> None:
    """Print it for people."""
    if "sketch" in report:
        size = report["sketch"]
        say(
            f"The sketch has {size['rows']} rows of {size['cells_per_row']:,} cells: {size['bytes'] / 1e6:.2f} MB, "
            f"where dense factors take {size['dense_bytes'] / 1e6:.2f} MB"
        )
