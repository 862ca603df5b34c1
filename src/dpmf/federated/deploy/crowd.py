"""Many real devices on one machine, for tests, in several processes: each with keys, ledger and connections of its own.

Ratings are synthetic. Nothing of a device is simulated but the person: it is the same code as for one.
"""

from __future__ import annotations

import asyncio
import math
import random
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from dpmf.errors import DpmfError, InvalidArgument
from dpmf.federated.certified.simulation import noise_of
from dpmf.federated.deploy.admission import Invitation, invite_many
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.device import Device
from dpmf.federated.deploy.identity import read_identity
from dpmf.federated.deploy.joining import take_part
from dpmf.federated.deploy.transport import allow_connections, run_loop
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make


@dataclass(frozen=True)
class CrowdSettings:
    """What a crowd is like.

    Attributes:
        agreement, catalogue: the files.
        inviter: private key of the inviter, who invites everybody.
        folder: for everybody's ledgers.
        n_people: how many people, numbered from 0.
        n_processes: that they are spread over.
        seed: of the ratings, and of who leaves when.
        mean_ratings: about how many ratings a person has.
        leave: the probability that a person loses the connections when a question arrives.
        away_seconds: how long they are gone then.
        noise_seed: research only; the same noise every time, and no guarantee.
        joining: how many people of each process connect and join at a time.
        patience: after this many attempts to connect in vain, one after the other, a person gives up.
    """

    agreement: Path
    catalogue: Path
    inviter: Path
    folder: Path
    n_people: int
    n_processes: int = 1
    seed: int = 0
    mean_ratings: float = 60.0
    leave: float = 0.0
    away_seconds: float = 5.0
    noise_seed: int | None = None
    joining: int = 16
    patience: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.n_processes <= min(self.n_people, 256):
            raise InvalidArgument(
                f"{self.n_people} people in {self.n_processes} processes: give one person each or more"
            )
        if not 0 <= self.leave < 1:
            raise InvalidArgument(f"leave={self.leave:g} should be a probability below 1")


@dataclass(frozen=True)
class CrowdReport:
    """What a crowd, or a part of it, has done.

    Attributes:
        outcomes: how many people heard which outcome, or saw which error.
        answered: how many questions were answered.
        said_again: how many of the answers were given again, to servers that were killed before their round was closed.
        bytes_in, bytes_out: of questions and answers, sealed.
        connects: how often somebody connected to both servers.
        cpu_seconds: of all processes.
        peak_bytes: of memory, of the largest process.
    """

    outcomes: dict[str, int]
    answered: int
    said_again: int
    bytes_in: int
    bytes_out: int
    connects: int
    cpu_seconds: float
    peak_bytes: int

    def __add__(self, other: CrowdReport) -> CrowdReport:
        """Return what both have done."""
        outcomes = {
            one: self.outcomes.get(one, 0) + other.outcomes.get(one, 0) for one in self.outcomes | other.outcomes
        }
        return CrowdReport(
            outcomes,
            self.answered + other.answered,
            self.said_again + other.said_again,
            self.bytes_in + other.bytes_in,
            self.bytes_out + other.bytes_out,
            self.connects + other.connects,
            self.cpu_seconds + other.cpu_seconds,
            max(self.peak_bytes, other.peak_bytes),
        )


class _Left(Exception):
    """A person has lost the connections."""


def crowd_ratings(settings: CrowdSettings, n_items: int) -> Ratings:
    """Return everybody's ratings; items are positions in the catalogue."""
    return make(settings.n_people, n_items, seed=settings.seed, mean_ratings=settings.mean_ratings)


def simulate_crowd(settings: CrowdSettings) -> CrowdReport:
    """Let everybody take part until the run is over."""
    file = AgreementFile.read(settings.agreement)
    invitations = invite_many(file, read_identity(settings.inviter), range(settings.n_people))
    size = math.ceil(settings.n_people / settings.n_processes)
    parts = [invitations[start : start + size] for start in range(0, settings.n_people, size)]
    if len(parts) == 1:
        return crowd_part(settings, parts[0])
    with ProcessPoolExecutor(len(parts), get_context("spawn")) as pool:
        reports = list(pool.map(crowd_part, [settings] * len(parts), parts))
    found = reports[0]
    for report in reports[1:]:
        found += report
    return found


def crowd_part(settings: CrowdSettings, invitations: list[Invitation]) -> CrowdReport:
    """Let some of the people take part, in this process."""
    allow_connections()
    began = time.process_time()
    devices, outcomes, connects = run_loop(_play(settings, invitations))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return CrowdReport(
        outcomes,
        sum(one.answered for one in devices),
        sum(one.said_again for one in devices),
        sum(one.bytes_in for one in devices),
        sum(one.bytes_out for one in devices),
        connects,
        time.process_time() - began,
        peak,
    )


async def _play(settings: CrowdSettings, invitations: list[Invitation]) -> tuple[list[Device], dict[str, int], int]:
    file = AgreementFile.read(settings.agreement)
    agreement = file.agreement(settings.catalogue.read_bytes())
    ratings = crowd_ratings(settings, agreement.n_items)
    cap = agreement.budget.epsilon if settings.noise_seed is None else math.inf
    budget = Budget(cap, agreement.budget.delta, neighbours=agreement.budget.neighbours)
    devices = []
    for invitation in invitations:
        own = settings.folder / f"{invitation.handle:07d}"
        own.mkdir(parents=True, exist_ok=True)
        noise = None if settings.noise_seed is None else noise_of(settings.noise_seed, invitation.handle)
        about = file, agreement, invitation, *ratings.of_user(invitation.handle)
        devices.append(Device(*about, Ledger(own / "ledger.json", budget), noise=noise))

    gate = asyncio.Semaphore(settings.joining)  # they would come faster than this machine can let them in

    async def one(place: int) -> tuple[str, int]:
        device, chance = devices[place], random.Random(f"{settings.seed} {invitations[place].handle}")

        async def answer(message: bytes) -> bytes | None:
            if chance.random() < settings.leave:
                raise _Left
            return device.question(message)

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(max(seconds, settings.away_seconds) if settings.leave else seconds)

        try:
            progress = await take_part(
                file, device, answering=answer, sleep=sleep, patience=settings.patience, gate=gate
            )
        except DpmfError as error:
            return f"{type(error).__name__}: {error}", 0
        return progress.outcome, progress.connects

    found = await asyncio.gather(*(one(place) for place in range(len(devices))))
    outcomes: dict[str, int] = {}
    for outcome, _ in found:
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return devices, outcomes, sum(connects for _, connects in found)
