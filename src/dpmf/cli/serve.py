"""`dpmf serve`."""

from __future__ import annotations

from pathlib import Path

import click

from dpmf.cli.output import json_option, print_json, say


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; by default, only this machine can reach it.",
)
@click.option("--port", type=int, default=8000, show_default=True, help="0 for any free port.")
@click.option("--workers", type=int, default=1, show_default=True, metavar="N", help="Number of processes.")
@click.option(
    "--recommend-here",
    is_flag=True,
    help="Also answer POST /api/recommend, which SENDS RATINGS TO THIS SERVER; it stores and logs nothing.",
)
@click.option(
    "--accept-unproven",
    is_flag=True,
    help="Serve a release that is not certified to other machines, with a red banner.",
)
@click.option(
    "--agreement",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Offer visitors to join this agreement from their browser; by default the page sends nothing to anybody.",
)
@json_option
def serve(
    release: Path, host: str, port: int, workers: int, recommend_here: bool, accept_unproven: bool,
    agreement: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Serve a page that recommends in the visitor's browser.

    Visitors send their ratings nowhere.
    """
    from dpmf.serve.server import ServerSettings, build_application, listening_socket
    from dpmf.serve.server import serve as serve_until_stopped

    offered = None if agreement is None else str(agreement.absolute())
    settings = ServerSettings(str(release.absolute()), host, port, workers, recommend_here, accept_unproven, offered)
    application, sock = build_application(settings), listening_socket(settings)
    address = f"http://{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}/"
    if as_json:
        print_json({"address": address, "release": str(release), "workers": workers, "recommends": recommend_here})
    else:
        say(f"Serving {release} at {address} (Ctrl-C stops)")
        if agreement is not None:
            say(f"Visitors who have an invitation can join {agreement} at {address}join.html")
        if recommend_here:
            say("POST /api/recommend is on: whoever uses it sends ratings to this server.", "bold red")
    serve_until_stopped(settings, application, sock)
