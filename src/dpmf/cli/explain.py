"""`dpmf explain`."""

from __future__ import annotations

from pathlib import Path

import click

from dpmf.cli.output import json_option, print_json, say
from dpmf.errors import NotVerified


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@json_option
def explain(release: Path, as_json: bool) -> None:
    """Say in plain words what a RELEASE holds and what is promised about it.

    A release whose epsilon does not follow from what was done is refused, as by `dpmf verify`.
    """
    from dpmf.model import Release
    from dpmf.privacy.explaining import Facts
    from dpmf.privacy.explaining import explain as in_words
    from dpmf.privacy.verifying import verify

    loaded = Release.load(release)
    guarantee = loaded.guarantee
    verdict = verify(guarantee)
    if not verdict.ok:
        raise NotVerified(f"{release} cannot be explained: {verdict.reason}; do not trust it")
    method = str(loaded.configuration.get("method", "unknown"))
    facts = Facts(
        len(loaded.items), loaded.n_factors, str(loaded.scale), loaded.items.declared, method, loaded.feedback
    )
    sections = in_words(guarantee, facts)
    if as_json:
        words = {section.title: list(section.sentences) for section in sections}
        print_json({**guarantee.to_json(), "items": facts.n_items, "factors": facts.n_factors, "explanation": words})
        return
    say(f"Guarantee: {guarantee}", "bold" if guarantee.is_private else "bold red")
    for section in sections:
        say(f"\n{section.title}", "bold")
        for sentence in section.sentences:
            say(f"- {sentence}")
