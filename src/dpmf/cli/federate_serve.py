"""`dpmf federate recommender` and `dpmf federate third-party`."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmf.cli.federate_agree import read_catalogue
from dpmf.cli.groups import all_of, grouped
from dpmf.cli.output import json_option, print_json, say

if TYPE_CHECKING:
    from dpmf.federated.deploy.services import ServiceSettings

_file = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True)
class ServeOptions:
    """What both servers are started with."""

    agreement: Path
    key: Path
    folder: Path
    host: str
    port: int | None
    tls_cert: Path | None
    tls_key: Path | None
    people: Path | None
    metrics_port: int | None
    most_waiting: int
    linger: float

    def settings(self, role: str, gather_seconds: float = 30.0) -> ServiceSettings:
        """Return the settings of a server."""
        from urllib.parse import urlsplit

        from dpmf.federated.deploy.agreement_file import AgreementFile
        from dpmf.federated.deploy.door import Limits
        from dpmf.federated.deploy.identity import read_identity
        from dpmf.federated.deploy.services import ServiceSettings
        from dpmf.federated.deploy.transport import Listening, check_installed

        check_installed()
        file = AgreementFile.read(self.agreement)
        port = self.port
        if port is None:
            parts = urlsplit(file.servers[role].url)
            port = parts.port or (443 if parts.scheme == "wss" else 80)
        return ServiceSettings(
            file,
            read_catalogue(self.agreement),
            read_identity(self.key),
            self.folder,
            Listening(self.host, port, self.tls_cert, self.tls_key),
            self.people,
            self.metrics_port,
            Limits(most_waiting=self.most_waiting),
            gather_seconds,
            self.linger,
        )


_OPTIONS = all_of(
    (
        click.option("--agreement", type=_file, required=True, metavar="FILE", help="Signed by both servers."),
        click.option("--key", type=_file, required=True, metavar="FILE", help="identity.pem of this server."),
        click.option(
            "--folder",
            type=click.Path(path_type=Path, file_okay=False),
            required=True,
            metavar="DIR",
            help="For this server's state; the other server must not be able to read it.",
        ),
        click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
        click.option("--port", type=int, metavar="N", help="Port to listen on; that of the agreement unless given."),
        click.option("--tls-cert", type=_file, metavar="FILE", help="Certificate; needed off loopback."),
        click.option("--tls-key", type=_file, metavar="FILE", help="Its private key. SIGHUP loads both again."),
        click.option(
            "--people", type=_file, metavar="FILE", help="The list of people's keys, if the agreement has one."
        ),
        click.option(
            "--metrics-port", type=int, metavar="N", help="Serve Prometheus metrics on this port of loopback."
        ),
        click.option(
            "--most-waiting",
            type=int,
            default=512,
            show_default=True,
            metavar="N",
            help="Connections that have not joined yet, at most.",
        ),
        click.option(
            "--linger",
            type=float,
            default=60.0,
            show_default=True,
            metavar="SECONDS",
            help="How long to tell people that the run is over.",
        ),
    )
)


@click.command("third-party")
@_OPTIONS
@grouped(asked=ServeOptions)
def third_party(asked: ServeOptions) -> None:
    """Serve as the third party: add up answers that it cannot read, until the run is over or it is stopped."""
    from dpmf.federated.deploy.agreement_parts import THIRD_PARTY
    from dpmf.federated.deploy.services import ThirdPartyService
    from dpmf.federated.deploy.transport import run_loop

    _log_to_stderr()
    run_loop(ThirdPartyService(asked.settings(THIRD_PARTY)).run())


@click.command()
@_OPTIONS
@click.option(
    "--gather",
    type=float,
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for people before a round begins with some of them missing.",
)
@json_option
@grouped(asked=ServeOptions)
def recommender(asked: ServeOptions, gather: float, as_json: bool) -> None:
    """Serve as the recommender: ask, learn from noisy sums, and save the release in the folder."""
    from dpmf.federated.deploy.agreement_parts import RECOMMENDER
    from dpmf.federated.deploy.services import RecommenderService
    from dpmf.federated.deploy.transport import run_loop

    _log_to_stderr()
    release = run_loop(RecommenderService(asked.settings(RECOMMENDER, gather)).run())
    out = None if release is None else asked.folder / "release"
    if as_json:
        guarantee = None if release is None else release.guarantee.to_json()
        print_json({"out": None if out is None else str(out), "guarantee": guarantee})
    elif release is None:
        say("Stopped before the run was over; start it again with the same folder to continue.")
    else:
        say(f"Guarantee: {release.guarantee}", "bold")
        say(f"Release saved in {out}")


def _log_to_stderr() -> None:
    """Log events as lines of JSON, beside warnings of everything else."""
    logger = logging.getLogger("dpmf.federated.deploy")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter('{"time": "%(asctime)s", "log": %(message)s}'))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
