"""`dpmf export-site`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from dpmf.cli.output import json_option, print_json, say


@click.command("export-site")
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--accept-unproven",
    is_flag=True,
    help="Export a release that is not certified. It may reveal people's ratings; the page then says so in red.",
)
@click.option(
    "--agreement",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Offer visitors to join this agreement from their browser; by default the page sends nothing to anybody.",
)
@json_option
def export_site(release: Path, folder: Path, accept_unproven: bool, agreement: Path | None, as_json: bool) -> None:
    """Write a page for a RELEASE to DIR, for any static host.

    Visitors rate items and get recommendations in their own browser: no rating is sent anywhere. With --agreement there
    is another page, join.html, for those who were invited to let their ratings count.
    """
    from dpmf.serve.site import ABOUT_FILE
    from dpmf.serve.site import export_site as export

    files = export(release, folder, accept_unproven=accept_unproven, agreement=agreement)
    size = sum(map(len, files.values()))
    if as_json:
        about = json.loads(files[ABOUT_FILE])
        facts = {name: about[name] for name in ("items", "factors", "epsilon", "delta", "unit", "mode", "certified")}
        print_json({**facts, "files": len(files), "bytes": size, "out": str(folder)})
        return
    say(f"{len(files)} files, {size / 1e6:.1f} MB, in {folder}: copy the folder to any web host.")
    say(f"To try it here: python -m http.server --bind 127.0.0.1 --directory {shlex.quote(str(folder))}", "dim")
