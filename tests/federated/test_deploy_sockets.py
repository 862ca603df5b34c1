"""Both services and devices over TLS on loopback."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from dpmf.engine.journal import locked
from dpmf.errors import InvalidArgument
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.deploy.admission import invite_many
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY, Server
from dpmf.federated.deploy.catalogue_file import catalogue_bytes
from dpmf.federated.deploy.certificate import write_certificate
from dpmf.federated.deploy.device import Device
from dpmf.federated.deploy.frames import JOIN_PATH
from dpmf.federated.deploy.joining import take_part
from dpmf.federated.deploy.round_log import opened_log
from dpmf.federated.deploy.services import RecommenderService, ServiceSettings, ThirdPartyService
from dpmf.federated.deploy.transport import Connection, Listening, Unreachable, connected, serving
from dpmf.methods import ALS
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger

from .deploy_world import KEYS, signed_file, some_people


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def test_a_renewed_certificate_is_for_new_connections_and_pinned_ones_are_checked(tmp_path: Path) -> None:
    roots = []
    for name in ("old", "new"):
        write_certificate("localhost", tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        roots.append((tmp_path / f"{name}.pem").read_text())
    place = Listening("localhost", free_ports(1)[0], tmp_path / "tls.pem", tmp_path / "tls.key")
    server = Server("Ann", f"wss://localhost:{place.port}", bytes(32), tuple(roots))
    only_old = replace(server, roots=(roots[0],))

    def use(name: str) -> None:
        for kind in ("pem", "key"):
            (tmp_path / f"tls.{kind}").write_bytes((tmp_path / f"{name}.{kind}").read_bytes())

    async def echo(connection: Connection) -> None:
        async for message in connection.messages():
            connection.send(message)

    async def heard(connection: Connection, text: str) -> str | bytes:
        connection.send(text)
        return await anext(connection.messages())

    async def play() -> None:
        use("old")
        context = place.context()
        assert context is not None
        async with (
            serving(place, {JOIN_PATH: echo}, lambda path: None, 1000, context),
            connected(only_old, JOIN_PATH, 1000) as before,
        ):
            use("new")
            place.load(context)  # as at SIGHUP
            assert await heard(before, "still there") == "still there"
            async with connected(server, JOIN_PATH, 1000) as after:
                assert await heard(after, "under the new one") == "under the new one"
            with pytest.raises(Unreachable, match="not the agreement's"):
                await connected(only_old, JOIN_PATH, 1000).__aenter__()

    asyncio.run(play())


def test_a_second_process_on_the_same_folder_disturbs_nobody(tmp_path: Path) -> None:
    ratings = some_people(5, 10)
    agreement = Agreement(ALS(n_factors=0, budget=Budget(5.0)), ratings.catalogue, ratings.scale, n_users=5)
    ports = free_ports(2)
    file = signed_file(agreement, (f"ws://127.0.0.1:{ports[0]}", f"ws://127.0.0.1:{ports[1]}"))
    heard: list[int] = []
    for role, kind in ((RECOMMENDER, RecommenderService), (THIRD_PARTY, ThirdPartyService)):
        where = Listening("127.0.0.1", ports[0])
        settings = ServiceSettings(file, catalogue_bytes(ratings.catalogue), KEYS[role], tmp_path / role, where)
        with locked(tmp_path / role), pytest.raises(InvalidArgument, match="another process"):
            asyncio.run(kind(settings, heard.append).run())
    assert not heard


def test_a_recommender_on_a_wrong_folder_does_not_end_the_run(tmp_path: Path) -> None:
    ratings = some_people(1, 10)
    agreement = Agreement(ALS(n_factors=0, budget=Budget(5.0)), ratings.catalogue, ratings.scale, n_users=1)
    ports = free_ports(2)
    file = signed_file(agreement, (f"ws://127.0.0.1:{ports[0]}", f"ws://127.0.0.1:{ports[1]}"))
    with opened_log(tmp_path / THIRD_PARTY, file.id) as rounds:  # as another process of the recommender asked for it
        rounds.opened(0)
        rounds.closed(0)

    async def play() -> None:
        services = [
            kind(ServiceSettings(file, catalogue_bytes(ratings.catalogue), KEYS[role], tmp_path / role, where))
            for role, kind, where in (
                (RECOMMENDER, RecommenderService, Listening("127.0.0.1", ports[0])),
                (THIRD_PARTY, ThirdPartyService, Listening("127.0.0.1", ports[1])),
            )
        ]
        recommender, third_party = (asyncio.create_task(one.run()) for one in services)
        (invitation,) = invite_many(file, KEYS["inviter"], range(1))
        ledger = Ledger(tmp_path / "ledger.json", Budget(30.0))
        device = Device(file, agreement, invitation, *ratings.of_user(0), ledger)
        person = asyncio.create_task(take_part(file, device))
        with pytest.raises(InvalidArgument, match="name the folder"):
            await asyncio.wait_for(recommender, 60)
        assert not services[1].over.is_set()
        assert not person.done()
        person.cancel()
        services[1].stopping.set()
        await third_party

    asyncio.run(play())


def test_a_run_over_tls_on_loopback(tmp_path: Path) -> None:
    ratings = some_people(5, 10)
    agreement = Agreement(
        ALS(n_factors=2, n_epochs=2, budget=Budget(20.0)), ratings.catalogue, ratings.scale, n_users=5
    )
    ports = free_ports(2)
    roots, listening = [], []
    for role, port in zip((RECOMMENDER, THIRD_PARTY), ports, strict=True):
        certificate, key = tmp_path / f"{role}.pem", tmp_path / f"{role}.key"
        write_certificate("localhost", certificate, key)
        roots.append([certificate.read_text()])
        listening.append(Listening("localhost", port, certificate, key))
    file = signed_file(
        agreement, (f"wss://localhost:{ports[0]}", f"wss://localhost:{ports[1]}"), roots=(roots[0], roots[1])
    )
    catalogue = catalogue_bytes(ratings.catalogue)

    def settings(role: str, where: Listening) -> ServiceSettings:
        return ServiceSettings(file, catalogue, KEYS[role], tmp_path / role, where, linger_seconds=2.0)

    async def play() -> None:
        ready = asyncio.Event()
        recommender = RecommenderService(settings(RECOMMENDER, listening[0]), lambda port: ready.set())
        third_party = ThirdPartyService(settings(THIRD_PARTY, listening[1]))
        servers = [asyncio.create_task(one.run()) for one in (recommender, third_party)]
        devices = []
        for handle, invitation in enumerate(invite_many(file, KEYS["inviter"], range(5))):
            ledger = Ledger(tmp_path / f"{handle}.json", Budget(30.0))
            devices.append(Device(file, agreement, invitation, *ratings.of_user(handle), ledger))
        await ready.wait()
        impostor = replace(file.servers[RECOMMENDER], roots=file.servers[THIRD_PARTY].roots)
        with pytest.raises(Unreachable, match="certificate"):
            await connected(impostor, JOIN_PATH, 100).__aenter__()
        people = [asyncio.create_task(take_part(file, one)) for one in devices]
        found = await asyncio.wait_for(asyncio.gather(*people), 60)
        assert [one.outcome for one in found] == ["finished"] * 5
        assert {one.answered for one in devices} == {len(agreement.rounds)}
        recommender.stopping.set()
        third_party.stopping.set()
        release, _ = await asyncio.gather(*servers)
        assert release is not None
        assert release.guarantee.certified

    asyncio.run(play())
