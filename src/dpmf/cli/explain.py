"""`dpmf explain`."""

from __future__ import annotations

from pathlib import Path

import click

from dpmf.cli.output import json_option, print_json, say


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@json_option
def explain(release: Path, as_json: bool) -> None:
    """Say in plain words what a RELEASE holds and what is promised about it."""
    from dpmf.model import Release

    loaded = Release.load(release)
    guarantee = loaded.guarantee
    if as_json:
        print_json({**guarantee.to_json(), "items": len(loaded.items), "factors": loaded.n_factors})
        return
    say(f"Guarantee: {guarantee}", "bold red" if not guarantee.is_private else "bold")
    say(
        f"\nThis release holds {len(loaded.items):,} items with {loaded.n_factors} factors and a bias each, the mean "
        f"{loaded.mean:.3f}, the rating scale {loaded.scale}, titles, and how it was trained "
        f"(method {loaded.configuration.get('method', 'unknown')}). It holds no user and no rating."
    )
    if not guarantee.is_private:
        say(
            "\nNothing is promised. Item factors are sums over people's ratings, and whoever has them may be able to "
            "find out who rated what. Treat the release as you treat the ratings: do not publish it."
        )
