"""People of a federation who do not do what they should, among those who do: started by `federation.py run`.

    python benchmarks/federation_misbehaving.py AGREEMENT INVITER_KEY FOLDER FIRST COUNT

COUNT people, with numbers from FIRST on, behave in turn in one of these ways, each with two TLS connections and an
invitation of its own, until the run is over:

- slow: answers after 2 s;
- silent: joins, and answers nothing;
- late: answers when the round is over;
- garbled: sends as many bytes as an answer has, which are none;
- flooding: sends nine messages that are no answers whenever it has joined;
- too long: sends more than any answer has;
- duplicate: two devices with one invitation, of which the second displaces the first.

Beside them, as many connections as there are such people are opened to each server and say nothing; when they are
closed, others are opened. What happened to whom is printed as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path

from dpmf.errors import DpmfError
from dpmf.federated.deploy.admission import Invitation, invite_many
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import ROLES
from dpmf.federated.deploy.catalogue_file import catalogue_beside
from dpmf.federated.deploy.crowd import CrowdSettings, crowd_ratings
from dpmf.federated.deploy.device import Device
from dpmf.federated.deploy.frames import JOIN_PATH
from dpmf.federated.deploy.identity import read_identity
from dpmf.federated.deploy.joining import take_part
from dpmf.federated.deploy.transport import Unreachable, allow_connections, connected, run_loop
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger

WAYS = ("slow", "silent", "late", "garbled", "flooding", "too long", "duplicate")


async def misbehave(agreement: Path, inviter: Path, folder: Path, first: int, count: int) -> Counter[str]:
    """Let everybody misbehave until the run is over, and return what became of them."""
    file = AgreementFile.read(agreement)
    agreed = file.agreement(catalogue_beside(agreement).read_bytes())
    ratings = crowd_ratings(CrowdSettings(agreement, agreement, inviter, folder, first + count), agreed.n_items)
    budget = Budget(agreed.budget.epsilon, agreed.budget.delta, neighbours=agreed.budget.neighbours)
    gate, happened = asyncio.Semaphore(8), Counter[str]()

    def device_of(invitation: Invitation, name: str) -> Device:
        own = folder / f"{invitation.handle:07d} {name}"
        own.mkdir(parents=True)
        items, values = ratings.of_user(invitation.handle)
        return Device(file, agreed, invitation, items, values, Ledger(own / "ledger.json", budget))

    async def one(invitation: Invitation, way: str, name: str = "") -> None:
        device = device_of(invitation, name)

        async def answer(question: bytes) -> bytes | None:
            happened[f"{way}: questions"] += 1
            if way == "slow":
                await asyncio.sleep(2)
            if way == "late":
                await asyncio.sleep(file.timing.round_seconds + 1)
            made = device.question(question)
            if way == "silent" or made is None:
                return None
            if way == "garbled":
                return os.urandom(len(made))
            if way == "too long":
                return os.urandom(max(file.lengths("bytes_up")) + 10_000)
            return made

        if way == "flooding":
            whole = device.unconfirmed
            device.unconfirmed = lambda: [*whole(), *(os.urandom(1000) for _ in range(9))]  # type: ignore[method-assign]
        for _ in range(1000):
            try:
                progress = await take_part(file, device, answering=answer, gate=gate)
            except DpmfError as error:
                happened[f"{way}: {type(error).__name__}"] += 1
                if way in ("duplicate", "too long", "flooding"):
                    await asyncio.sleep(30)
                continue
            happened[f"{way}: {progress.outcome}, connected"] += progress.connects
            return

    async def idle(role: str) -> None:
        while True:
            try:
                async with connected(file.servers[role], JOIN_PATH, 1 << 20) as connection:
                    async for _ in connection.messages():
                        pass
                happened["idle: closed"] += 1
            except Unreachable:
                happened["idle: turned away"] += 1
            await asyncio.sleep(1)

    people = invite_many(file, read_identity(inviter), range(first, first + count))
    tasks = []
    for place, invitation in enumerate(people):
        way = WAYS[place % len(WAYS)]
        tasks.append(one(invitation, way))
        if way == "duplicate":
            tasks.append(one(invitation, way, "second"))
    idling = [asyncio.create_task(idle(role)) for role in ROLES for _ in range(count)]
    await asyncio.gather(*tasks)
    for task in idling:
        task.cancel()
    return happened


def main() -> None:
    """Read the command line."""
    agreement, inviter, folder = (Path(word) for word in sys.argv[1:4])
    allow_connections()
    happened = run_loop(misbehave(agreement, inviter, folder, int(sys.argv[4]), int(sys.argv[5])))
    print(json.dumps(dict(sorted(happened.items()))))


if __name__ == "__main__":
    main()
