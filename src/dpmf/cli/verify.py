"""`dpmf verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmf.cli.output import json_option, print_json, say
from dpmf.errors import NotVerified

if TYPE_CHECKING:
    from dpmf.privacy import Guarantee


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--public-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Ed25519 public key (PEM) that the release should be signed with.",
)
@json_option
def verify(release: Path, public_key: Path | None, as_json: bool) -> None:
    """Check the files of a RELEASE, recompute epsilon from its events, and check its signature.

    The exit code is 0 if everything that can be checked agrees; "certified" says whether there is a guarantee at all.
    """
    from dpmf.model import Release
    from dpmf.model.release_json import is_signed
    from dpmf.privacy.verify import verify as recompute

    guarantee = Release.load(release, public_key=public_key).guarantee
    # None: there is a signature, but no key to check it with.
    signed = True if public_key is not None else None if is_signed(release) else False
    verdict = recompute(guarantee)
    if as_json:
        print_json(
            {
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                "recomputed_epsilon": verdict.recomputed_epsilon,
                "certified": guarantee.certified and verdict.ok,
                "ok": verdict.ok,
                "signed": signed,
            }
        )
    if not verdict.ok:
        raise NotVerified(f"{release} is not verified: {verdict.reason}; do not trust it")
    if not as_json:
        _print(guarantee, verdict.reason, signed)


def _print(guarantee: Guarantee, reason: str, signed: bool | None) -> None:
    say("Files: intact, the checksums agree.")
    say(f"Guarantee: {guarantee}", "bold" if guarantee.is_private else "bold red")
    say(f"Epsilon: {reason}.")
    if signed:
        say("Signature: matches the public key, so the release is what the owner of the key signed.")
    elif signed is None:
        say("Signature: present but not checked: pass the key with --public-key.", "yellow")
    if not signed:
        say("The events are trusted as written: nothing proves that they are what was actually done.", "yellow")
