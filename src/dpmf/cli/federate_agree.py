"""`dpmf federate keys`, `agree`, `sign`, `invite` and `explain`: everything before the first connection."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.groups import all_of, grouped
from dpmf.cli.options import parse_settings
from dpmf.cli.output import json_option, print_json, say
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.federated.certified.agreement import Agreement
    from dpmf.federated.deploy.agreement_file import AgreementFile
    from dpmf.federated.deploy.agreement_parts import Admission, Server, Timing

_file = click.Path(path_type=Path, dir_okay=False)
agreement_argument = click.argument("agreement", type=_file)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--host", metavar="NAME", help="Also make a TLS certificate of one's own for this host.")
@json_option
def keys(folder: Path, host: str | None, as_json: bool) -> None:
    """Make the keys of a server or an inviter, in FOLDER.

    identity.pem stays there; identity.pub is for the agreement.
    """
    from dpmf.federated.deploy.certificate import write_certificate
    from dpmf.federated.deploy.identity import public_of, write_identity

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    public = public_of(write_identity(folder / "identity.pem")).hex()
    made = {"private": str(folder / "identity.pem"), "public": str(folder / "identity.pub"), "hex": public}
    if host is not None:
        write_certificate(host, folder / "tls.pem", folder / "tls.key")
        made |= {"certificate": str(folder / "tls.pem"), "certificate_key": str(folder / "tls.key")}
    if as_json:
        print_json(made)
        return
    say(f"Keys are in {folder}. identity.pem and tls.key never leave it; identity.pub and tls.pem are public.")
    say(f"The public key in hexadecimal digits, as in a list of people: {public}")


@dataclass(frozen=True)
class MethodOptions:
    """What is computed."""

    method: str
    epsilon: float
    delta: float
    neighbours: str
    settings: tuple[str, ...]
    items: Path
    scale: str | None


@dataclass(frozen=True)
class PeopleOptions:
    """Who takes part, how many, and when."""

    per_round: int
    dropouts: int
    colluders: int
    inviter: Path | None
    people: Path | None
    admitted_by: str
    most: int | None
    begins: datetime | None
    ends: datetime
    round_seconds: float
    grace_seconds: float
    wire: int


@dataclass(frozen=True)
class ServerOptions:
    """Where and who the servers are."""

    recommender_name: str
    recommender_url: str
    recommender_key: Path
    recommender_root: tuple[Path, ...]
    third_party_name: str
    third_party_url: str
    third_party_key: Path
    third_party_root: tuple[Path, ...]


_WHAT = (
    click.option("--method", default="als", show_default=True, metavar="NAME", help="What is computed: als, ease, …"),
    click.option("--epsilon", type=float, required=True, metavar="E", help="What all rounds may cost one person."),
    click.option("--delta", type=float, default=1e-6, show_default=True, metavar="D", help="Budget, too."),
    click.option(
        "--neighbours",
        type=click.Choice(["add-remove", "replace"]),
        default="add-remove",
        show_default=True,
        help="Which data sets should look alike.",
    ),
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the method."),
    click.option("--items", type=_file, required=True, metavar="FILE", help="The catalogue: a CSV file of items."),
    click.option("--scale", metavar="LO:HI", help="Of ratings; not needed for implicit feedback."),
)
_WHO = (
    click.option("--per-round", type=int, required=True, metavar="K", help="People in a round."),
    click.option("--dropouts", type=int, default=0, show_default=True, metavar="D", help="Of them, may not answer."),
    click.option("--colluders", type=int, default=0, show_default=True, metavar="C", help="Of them, may collude."),
    click.option("--inviter", type=_file, metavar="FILE", help="Public key of whoever invites people."),
    click.option(
        "--people", type=_file, metavar="FILE", help="Instead: a list of people's public keys, in hex digits."
    ),
    click.option(
        "--admitted-by", required=True, metavar="NAME", help="Who decides who takes part, for people to read."
    ),
    click.option("--most", type=int, metavar="N", help="How many may be invited; 100,000 unless given."),
    click.option("--begins", type=click.DateTime(), help="UTC; now unless given."),
    click.option("--ends", type=click.DateTime(), required=True, help="UTC."),
    click.option("--round-seconds", type=float, default=60.0, show_default=True, help="How long people may answer."),
    click.option("--grace-seconds", type=float, default=5.0, show_default=True, help="Wait for lost connections."),
    click.option(
        "--wire",
        type=click.IntRange(1, 2),
        default=1,
        show_default=True,
        help="Version of sealed messages: with 2, people can also join from a page in their browser.",
    ),
)


def _server_options(role: str, title: str) -> tuple[Any, ...]:
    return (
        click.option(f"--{role}-name", required=True, metavar="NAME", help=f"Who operates the {title}."),
        click.option(f"--{role}-url", required=True, metavar="URL", help=f"The {title}'s address, wss://host:port."),
        click.option(f"--{role}-key", type=_file, required=True, metavar="FILE", help=f"The {title}'s identity.pub."),
        click.option(
            f"--{role}-root",
            type=_file,
            multiple=True,
            metavar="FILE",
            help=f"Certificate that the {title}'s must be, or be signed by; any public authority's unless given.",
        ),
    )


@click.command()
@click.argument("out", type=_file)
@click.option("--name", required=True, help="What the run is about, for people to read.")
@all_of(_WHAT)
@all_of(_WHO)
@all_of(_server_options("recommender", "recommender"))
@all_of(_server_options("third-party", "third party"))
@json_option
@grouped(what=MethodOptions, who=PeopleOptions, where=ServerOptions)
def agree(out: Path, name: str, what: MethodOptions, who: PeopleOptions, where: ServerOptions, as_json: bool) -> None:
    """Write an agreement to the file OUT, and its catalogue beside it; both servers' operators then sign it."""
    from dpmf.federated.deploy.agreement_file import draft
    from dpmf.federated.deploy.catalogue_file import catalogue_bytes
    from dpmf.files import write_bytes

    catalogue = catalogue_beside(out)
    for path in (out, catalogue):
        if path.exists():
            raise InvalidArgument(f"{path} is there already: agreements are not replaced; choose another name")
    agreement = _agreement(what, who)
    file = draft(
        agreement,
        name=name,
        recommender=_server(
            where.recommender_name, where.recommender_url, where.recommender_key, where.recommender_root
        ),
        third_party=_server(
            where.third_party_name, where.third_party_url, where.third_party_key, where.third_party_root
        ),
        admission=_admission(who),
        timing=_timing(who),
    )
    write_bytes(catalogue, catalogue_bytes(agreement.catalogue))
    file.write(out)
    if as_json:
        print_json(_facts(file))
        return
    say(f"The agreement is in {out}, its catalogue in {catalogue}. Nobody has signed it yet.")
    say(f"Read it: dpmf federate explain {out}. Then each operator, on their own machine: dpmf federate sign {out} …")


@click.command()
@agreement_argument
@click.option("--key", type=_file, required=True, metavar="FILE", help="identity.pem of one of the two servers.")
@json_option
def sign(agreement: Path, key: Path, as_json: bool) -> None:
    """Sign an AGREEMENT for one of the two servers, in place."""
    from dpmf.federated.deploy.agreement_file import AgreementFile
    from dpmf.federated.deploy.identity import read_identity

    file = AgreementFile.read(agreement)
    file.agreement(read_catalogue(agreement))
    file = file.signed_by(read_identity(key))
    file.write(agreement)
    missing = [role.replace("_", " ") for role in file.missing_signatures()]
    if as_json:
        print_json(_facts(file))
        return
    say("Both servers have signed." if not missing else f"Signed. The {missing[0]} has yet to sign.")


@click.command()
@agreement_argument
@click.option("--key", type=_file, required=True, metavar="FILE", help="identity.pem of the inviter.")
@click.option("--first", type=int, default=0, show_default=True, metavar="N", help="Number of the first invitation.")
@click.option("--count", type=int, required=True, metavar="N", help="How many.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR", help="For files."
)
@json_option
def invite(agreement: Path, key: Path, first: int, count: int, out: Path, as_json: bool) -> None:
    """Write invitations to an AGREEMENT, a file for each person: a secret between the inviter and them."""
    from dpmf.federated.deploy.admission import invite_many, write_invitations
    from dpmf.federated.deploy.agreement_file import AgreementFile
    from dpmf.federated.deploy.identity import read_identity

    if count < 1:
        raise InvalidArgument(f"--count {count}: invite at least one person")
    file = AgreementFile.read(agreement)
    write_invitations(invite_many(file, read_identity(key), range(first, first + count)), out)
    if as_json:
        print_json({"invitations": count, "first": first, "out": str(out)})
        return
    say(f"{count:,} invitations are in {out}. Each is for one person, who should be the only one to see it.")


@click.command()
@agreement_argument
@json_option
def explain(agreement: Path, as_json: bool) -> None:
    """Say in plain words what joining an AGREEMENT promises against each party, and what it costs."""
    from dpmf.federated.deploy.agreement_file import AgreementFile
    from dpmf.federated.deploy.explanation import explain_agreement

    file = AgreementFile.read(agreement)
    if catalogue_beside(agreement).exists():
        file.agreement(read_catalogue(agreement))
    else:
        click.echo(f"dpmf: {catalogue_beside(agreement)} is missing: rounds and noise were not checked", err=True)
    parts = explain_agreement(file)
    if as_json:
        print_json({**_facts(file), "parts": {part.title: list(part.sentences) for part in parts}})
        return
    for part in parts:
        say(part.title, "bold")
        for sentence in part.sentences:
            say(f"  {sentence}")


def catalogue_beside(agreement: Path) -> Path:
    """Return where the catalogue of an agreement is, unless said otherwise."""
    from dpmf.federated.deploy import catalogue_file

    return catalogue_file.catalogue_beside(agreement)


def read_catalogue(agreement: Path) -> bytes:
    """Return the bytes of the catalogue beside an agreement."""
    path = catalogue_beside(agreement)
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(
            f"cannot read the catalogue {path}: {error.strerror}; it belongs beside the agreement"
        ) from None


def _agreement(what: MethodOptions, who: PeopleOptions) -> Agreement:
    from dpmf.federated.certified.agreement import Agreement
    from dpmf.methods import METHODS, configure
    from dpmf.methods.als.implicit import NO_RATINGS
    from dpmf.methods.certified.method import CertifiedMethod
    from dpmf.ratings import Items, Scale

    if what.method not in METHODS or not issubclass(METHODS[what.method], CertifiedMethod):
        possible = [name for name, one in METHODS.items() if issubclass(one, CertifiedMethod)]
        raise InvalidArgument(f"--method {what.method} has no protocol without profiles: choose {', '.join(possible)}")
    private = METHODS[what.method].private_fields("certified", what.epsilon, what.delta, neighbours=what.neighbours)
    method = configure(what.method, {**parse_settings(what.settings), **private})
    assert isinstance(method, CertifiedMethod)
    if method.is_implicit:
        scale = NO_RATINGS if what.scale is None else Scale.of_counts()
    elif what.scale is None:
        raise InvalidArgument("--scale is missing: ratings have one, such as 1:5")
    else:
        scale = Scale.parse(what.scale)
    return Agreement(method, Items.read(what.items), scale, who.per_round, who.dropouts, who.colluders, who.wire)


def _server(name: str, url: str, key: Path, roots: tuple[Path, ...]) -> Server:
    from dpmf.federated.deploy.agreement_parts import Server
    from dpmf.federated.deploy.identity import read_public

    try:
        certificates = tuple(root.read_text(encoding="ascii") for root in roots)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"cannot read a certificate: {error}") from None
    for root, text in zip(roots, certificates, strict=True):
        if "BEGIN CERTIFICATE" not in text or "PRIVATE" in text:
            raise InvalidArgument(
                f"{root} holds no certificate in PEM form, or a private key, too: give the certificate"
            )
    return Server(name, url.rstrip("/"), read_public(key), certificates)


def _admission(who: PeopleOptions) -> Admission:
    from dpmf.federated.deploy.admission import list_admission
    from dpmf.federated.deploy.agreement_parts import Admission
    from dpmf.federated.deploy.identity import read_public

    if (who.inviter is None) == (who.people is None):
        raise InvalidArgument("say who may take part: --inviter FILE, or --people FILE")
    if who.inviter is not None:
        return Admission(who.admitted_by, 100_000 if who.most is None else who.most, read_public(who.inviter))
    if who.most is not None:
        raise InvalidArgument("--most is for --inviter: with --people, their list says how many there are")
    assert who.people is not None
    return list_admission(who.admitted_by, who.people)


def _timing(who: PeopleOptions) -> Timing:
    from dpmf.federated.deploy.agreement_parts import Timing

    begins = datetime.now(UTC).replace(microsecond=0) if who.begins is None else who.begins.replace(tzinfo=UTC)
    return Timing(begins, who.ends.replace(tzinfo=UTC), who.round_seconds, who.grace_seconds)


def _facts(file: AgreementFile) -> dict[str, Any]:
    budget = file.content["budget"]
    return {
        "id": file.id.hex(),
        "name": file.name,
        "epsilon": budget["epsilon"],
        "delta": budget["delta"],
        "rounds": len(file.content["computed"]["rounds"]),
        "bytes_down": sum(file.lengths("bytes_down")),
        "bytes_up": sum(file.lengths("bytes_up")),
        "signed": not file.missing_signatures(),
        "missing_signatures": file.missing_signatures(),
    }
