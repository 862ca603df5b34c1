"""`dpmf federate join`, for one person, and `simulate-crowd`, for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.federate_agree import catalogue_beside
from dpmf.cli.output import json_option, print_json, say
from dpmf.cli.recommend import read_own_counts, read_own_ratings
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.federated.deploy.admission import Invitation

_file = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--agreement", type=_file, required=True, metavar="FILE", help="Signed by both servers.")
@click.option("--invitation", type=_file, metavar="FILE", help="This person's own.")
@click.option("--key", type=_file, metavar="FILE", help="Instead: identity.pem, if its public key is on a list.")
@click.option("--number", type=int, metavar="N", help="Of that key's line in the list, from 0.")
@click.option("--ratings", type=_file, required=True, metavar="FILE", help="A CSV file: item (id or title), rating.")
@click.option("--ledger", "ledger_file", type=_file, required=True, metavar="FILE", help="Of everything ever joined.")
@click.option("--cap", type=float, metavar="E", help="What all agreements in a new --ledger may cost together.")
@click.option("--catalogue", type=_file, metavar="FILE", help="Beside the agreement unless given.")
@click.option("--share", type=float, default=1.0, show_default=True, help="Weight to have, from 0 to 1; costs less.")
@click.option("--patience", type=int, metavar="N", help="Give up after N attempts to connect in vain.")
@json_option
def join(
    agreement: Path,
    invitation: Path | None,
    key: Path | None,
    number: int | None,
    ratings: Path,
    ledger_file: Path,
    cap: float | None,
    catalogue: Path | None,
    share: float,
    patience: int | None,
    as_json: bool,
) -> None:
    """Take part in a run with one's own ratings, which stay here. What leaves is bounded, noisy and masked."""
    from dpmf.federated.deploy.agreement_file import AgreementFile
    from dpmf.federated.deploy.device import Device, check_dates, check_invitation, own_places
    from dpmf.federated.deploy.joining import take_part
    from dpmf.federated.deploy.transport import check_installed, run_loop

    check_installed()
    if not 0 < share <= 1:
        raise InvalidArgument(f"--share {share:g} is out of range: give a number above 0, up to 1")
    file = AgreementFile.read(agreement)
    file.check_signed()
    check_dates(file, datetime.now(UTC))
    own = _admitted(invitation, key, number)
    check_invitation(file, own)
    agreed = file.agreement(_catalogue(agreement, catalogue))
    scale = agreed.scale
    given = (read_own_counts if agreed.method.facts().get("feedback") == "implicit" else read_own_ratings)(ratings)
    odd = next((item for item, value in given.items() if not scale.lo <= value <= scale.hi), None)
    if odd is not None and agreed.method.facts().get("feedback") != "implicit":
        raise InvalidArgument(f"{ratings}: the rating of {odd!r} is off the scale {scale} of the agreement: correct it")
    places, values, unknown = own_places(agreed.catalogue, given)
    if unknown:
        click.echo(f"dpmf: {unknown} rated items are not in the catalogue and were left out", err=True)
    ledger = _ledger(ledger_file, cap, agreed, file.run, share)
    device = Device(file, agreed, own, places, values, ledger, share)

    def tell(number: int) -> None:
        if not as_json:
            say(f"answered round {number + 1} of {len(agreed.rounds)}: {device.bytes_out:,} bytes so far")

    progress = run_loop(take_part(file, device, on_answer=tell, patience=patience))
    spent = ledger.spent()
    facts: dict[str, Any] = {"outcome": progress.outcome, "answered": device.answered, "connects": progress.connects}
    facts |= {"bytes_down": device.bytes_in, "bytes_up": device.bytes_out, "spent": spent, "cap": ledger.cap.epsilon}
    if as_json:
        print_json(facts)
        return
    say(f"The run is over: {progress.outcome}. {device.answered} rounds were answered from here.")
    say(f"The ledger has epsilon={spent:g} of {ledger.cap.epsilon:g}.")


def _admitted(invitation: Path | None, key: Path | None, number: int | None) -> Invitation:
    from dpmf.federated.deploy.admission import Invitation
    from dpmf.federated.deploy.identity import read_identity

    if (invitation is None) == (key is None) or (key is None) != (number is None):
        raise InvalidArgument("say who joins: --invitation FILE, or --key FILE and --number N with a list of keys")
    if invitation is not None:
        return Invitation.read(invitation)
    assert key is not None
    assert number is not None
    if not 0 <= number < 1 << 32:
        raise InvalidArgument(f"--number {number} is no line of a list: count from 0")
    return Invitation(number, read_identity(key).private_bytes_raw())


def _catalogue(agreement: Path, catalogue: Path | None) -> bytes:
    path = catalogue_beside(agreement) if catalogue is None else catalogue
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(
            f"cannot read the catalogue {path}: {error.strerror}; name it with --catalogue, or get it from the "
            "recommender's address, path /v1/catalogue"
        ) from None


def _ledger(path: Path, cap: float | None, agreed: Any, run: bytes, share: float) -> Any:
    """Return the person's ledger, which has to allow for the agreement; a new one is not left behind if it does not."""
    from dpmf.errors import BudgetExceeded
    from dpmf.federated.certified.account import check_cap
    from dpmf.privacy import Budget
    from dpmf.privacy.ledger import Ledger

    if cap is None and not path.exists():
        raise InvalidArgument(
            f"no ledger {path}: add --cap E to start one, the most that all runs may ever cost you together"
        )
    budget, is_new = agreed.budget, not path.exists()
    ledger = Ledger(path, None if cap is None else Budget(cap, budget.delta, budget.unit, budget.neighbours))
    try:
        check_cap(ledger, agreed, run, share)
    except BudgetExceeded:
        if is_new:
            path.unlink()
        raise
    return ledger


@click.command("simulate-crowd")
@click.option("--agreement", type=_file, required=True, metavar="FILE", help="Signed by both servers.")
@click.option("--inviter-key", type=_file, required=True, metavar="FILE", help="identity.pem of the inviter.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="For everybody's ledgers; a disk that is slow to sync makes a crowd slow.",
)
@click.option("--people", type=int, required=True, metavar="N", help="How many.")
@click.option("--processes", type=int, default=1, show_default=True, metavar="N", help="That they are spread over.")
@click.option("--leave", type=float, default=0.0, show_default=True, help="Chance to be lost when a question arrives.")
@click.option("--away", type=float, default=5.0, show_default=True, metavar="SECONDS", help="How long, then.")
@click.option("--mean-ratings", type=float, default=60.0, show_default=True, help="About how many a person has.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of synthetic ratings, and of who is lost.")
@click.option("--noise-seed", type=int, help="Research only: the same noise every time, and no guarantee.")
@click.option("--patience", type=int, metavar="N", help="Give up after N attempts to connect in vain.")
@json_option
def simulate_crowd(
    agreement: Path,
    inviter_key: Path,
    folder: Path,
    people: int,
    processes: int,
    leave: float,
    away: float,
    mean_ratings: float,
    seed: int,
    noise_seed: int | None,
    patience: int | None,
    as_json: bool,
) -> None:
    """Start many real clients with synthetic ratings, for tests of a deployment."""
    from dataclasses import asdict

    from dpmf.federated.deploy.crowd import CrowdSettings
    from dpmf.federated.deploy.crowd import simulate_crowd as run_crowd
    from dpmf.federated.deploy.transport import check_installed

    check_installed()
    report = run_crowd(
        CrowdSettings(
            agreement, catalogue_beside(agreement), inviter_key, folder, people, processes, seed, mean_ratings, leave,
            away, noise_seed, patience=patience,
        )
    )  # fmt: skip
    if as_json:
        print_json(asdict(report))
        return
    for outcome, count in report.outcomes.items():
        say(f"{count:,} people: {outcome}")
    if report.said_again:
        say(f"{report.said_again:,} answers were given again, to servers that had started again")
    say(f"{report.answered:,} answers, {report.bytes_in:,} bytes down and {report.bytes_out:,} up")
    say(f"{report.connects:,} times somebody connected; {report.cpu_seconds:.1f} s of processor time")
