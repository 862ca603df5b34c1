"""`dpmf verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmf.cli.output import json_option, print_json, say
from dpmf.errors import NotVerified

if TYPE_CHECKING:
    from dpmf.privacy import Guarantee
    from dpmf.privacy.verify import Verdict


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--public-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Ed25519 public key (PEM) that the release should be signed with.",
)
@click.option(
    "--items",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The list of items, if the release was made with further columns of it: to compare its traits with.",
)
@click.option(
    "--item-features",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The features of items that the release was made with: to compare its traits with.",
)
@click.option(
    "--without-plan",
    is_flag=True,
    help="Accept a release that does not record the plan of its method, or an older one: anybody can remove it.",
)
@json_option
def verify(
    release: Path,
    public_key: Path | None,
    items: Path | None,
    item_features: Path | None,
    without_plan: bool,
    as_json: bool,
) -> None:
    """Check the files and the guarantee of a RELEASE.

    Epsilon is recomputed from the events. The plan of the method is rebuilt from the configuration: the events must be
    those of the plan and account for every tensor. A release without a plan needs a matching signature.

    The exit code is 0 if everything that can be checked agrees; "certified" says whether there is a guarantee at all.
    """
    from dpmf.disclosure.explain import users_about
    from dpmf.methods.verification import verify_release, with_descriptions
    from dpmf.model import Release
    from dpmf.model.release_json import is_signed
    from dpmf.privacy.budget import delta_warning

    loaded = Release.load(release, public_key=public_key)
    guarantee = loaded.guarantee
    # None: there is a signature, but no key to check it with.
    signed = True if public_key is not None else None if is_signed(release) else False
    verdict = verify_release(with_descriptions(loaded, items, item_features))
    unplanned = guarantee.mode == "certified" and verdict.ok and verdict.plan is None
    ok = verdict.ok and not (unplanned and not signed and not without_plan)
    if as_json:
        print_json(
            {
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                "recomputed_epsilon": verdict.recomputed_epsilon,
                "certified": guarantee.certified and ok,
                "ok": ok,
                "plan": verdict.plan,
                "signed": signed,
                "warning": delta_warning(guarantee.delta, users_about(loaded)),
            }
        )
    if not verdict.ok:
        raise NotVerified(f"{release} is not verified: {verdict.reason}; do not trust it")
    if not ok:
        raise NotVerified(
            f"{release} is not verified: {verdict.reason}. Check its signature with --public-key, or accept that with "
            "--without-plan"
        )
    if not as_json:
        _print(guarantee, verdict, signed)
        warning = delta_warning(guarantee.delta, users_about(loaded))
        if warning is not None and guarantee.warning is None:  # else the guarantee says it
            say(f"Warning: {warning}.", "bold red")


def _print(guarantee: Guarantee, verdict: Verdict, signed: bool | None) -> None:
    say("Files: intact, the checksums agree.")
    say(f"Guarantee: {guarantee}", "bold" if guarantee.is_private else "bold red")
    unplanned = guarantee.mode == "certified" and verdict.plan is None
    say(f"Epsilon: {verdict.reason}.", "yellow" if unplanned else "")
    if signed:
        say("Signature: matches the public key, so the release is what the owner of the key signed.")
    elif signed is None:
        say("Signature: present but not checked: pass the key with --public-key.", "yellow")
    if not signed:
        say("The events are trusted as written: nothing proves that noise was drawn as they say.", "yellow")
