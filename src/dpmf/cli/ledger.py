"""`dpmf ledger`."""

from __future__ import annotations

from pathlib import Path

import click

from dpmf.cli.output import json_option, print_json, print_table, say


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def ledger(file: Path, as_json: bool) -> None:
    """Show every release in a ledger FILE, and their total cost.

    The cap stands beside the cost.
    """
    from dpmf.privacy.budget import delta_warning
    from dpmf.privacy.ledger import Ledger

    opened = Ledger(file)
    cap, spent, entries = opened.cap, opened.spent(), opened.entries()
    if as_json:
        print_json(
            {
                "cap": cap.epsilon,
                "delta": cap.delta,
                "unit": cap.unit,
                "neighbours": cap.neighbours,
                "spent": spent,
                "entries": [{"label": one.label, "date": one.date, **one.guarantee.to_json()} for one in entries],
            }
        )
        return
    rows = [(one.date, one.label, str(one.guarantee)) for one in entries]
    print_table("", ("date", "release", "guarantee"), rows)
    bounds = f"delta={cap.delta:g}, per {cap.unit}, {cap.neighbours}"
    say(f"Together epsilon={spent:g} of {cap.epsilon:g} is spent, at {bounds}.", "bold")
    warning = delta_warning(cap.delta)
    if warning is not None:
        say(f"Warning: {warning}.", "bold red")
