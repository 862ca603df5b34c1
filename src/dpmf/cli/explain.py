"""`dpmf explain`."""

from __future__ import annotations

from pathlib import Path

import click

from dpmf.cli.output import json_option, print_json, say


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@json_option
def explain(release: Path, as_json: bool) -> None:
    """Explain in plain words what a RELEASE holds and what is guaranteed.

    A release whose epsilon does not follow from its events is refused, as by `dpmf verify`.
    """
    from dpmf.model import Release
    from dpmf.model.explain import explain_release

    loaded = Release.load(release)
    guarantee = loaded.guarantee
    sections = explain_release(loaded, name=str(release))
    if as_json:
        words = {section.title: list(section.sentences) for section in sections}
        print_json(
            {
                **guarantee.to_json(),
                "items": len(loaded.items),
                "factors": loaded.n_factors,
                "explanation": words,
            }
        )
        return
    say(f"Guarantee: {guarantee}", "bold" if guarantee.is_private else "bold red")
    for section in sections:
        say(f"\n{section.title}", "bold")
        for sentence in section.sentences:
            say(f"- {sentence}")
