"""The programs themselves, each in a process of its own, one of which is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY
from dpmf.federated.deploy.catalogue_file import catalogue_bytes
from dpmf.methods import ALS
from dpmf.methods.verification import verify_release
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Items, Scale

from .deploy_world import KEYS, signed_file
from .test_deploy_sockets import free_ports

PEOPLE, ITEMS = 3, 12
PATIENCE = 240  # seconds, for a machine that has better things to do


def started(*words: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen([sys.executable, "-m", "dpmf", "federate", *words], stdout=file, stderr=file)


def test_the_programs_finish_a_run_although_the_third_party_is_killed(tmp_path: Path) -> None:
    method = ALS(n_factors=1, n_epochs=2, budget=Budget(5.0))
    catalogue = Items.of(list(range(ITEMS)))
    agreement = Agreement(method, catalogue, Scale(1.0, 5.0), n_users=PEOPLE)
    ports = free_ports(2)
    file = signed_file(agreement, (f"ws://127.0.0.1:{ports[0]}", f"ws://127.0.0.1:{ports[1]}"))
    file.write(tmp_path / "films.json")
    (tmp_path / "films.catalogue.json").write_bytes(catalogue_bytes(catalogue))
    for role, key in KEYS.items():
        (tmp_path / f"{role}.pem").write_bytes(private_pem(key))
        (tmp_path / f"{role}.pem").chmod(0o600)

    def server(role: str) -> subprocess.Popen[bytes]:
        place = {RECOMMENDER: "recommender", THIRD_PARTY: "third-party"}[role]
        how = ["--agreement", str(tmp_path / "films.json"), "--key", str(tmp_path / f"{role}.pem"), "--linger", "30"]
        return started(place, *how, "--folder", str(tmp_path / role), log=tmp_path / f"{role}.log")

    third_party, recommender = server(THIRD_PARTY), server(RECOMMENDER)
    about = ["--agreement", str(tmp_path / "films.json"), "--inviter-key", str(tmp_path / "inviter.pem")]
    how = ["--folder", str(tmp_path / "ledgers"), "--people", str(PEOPLE), "--json"]
    crowd = started("simulate-crowd", *about, *how, log=tmp_path / "crowd.log")
    try:
        wait_for(tmp_path / f"{THIRD_PARTY}.log", "listening")
        third_party.send_signal(signal.SIGKILL)
        third_party.wait()
        third_party = server(THIRD_PARTY)
        assert crowd.wait(PATIENCE) == 0
        assert recommender.poll() is None  # it tells whoever comes late
        for process in (recommender, third_party):
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    finally:
        for process in (recommender, third_party, crowd):
            process.kill()
            process.wait()
    report = json.loads((tmp_path / "crowd.log").read_text().splitlines()[-1])
    assert report["outcomes"] == {"finished": PEOPLE}
    release = Release.load(tmp_path / RECOMMENDER / "release")
    assert release.guarantee.certified
    assert verify_release(release).ok
    for place in range(PEOPLE):
        (entry,) = Ledger(tmp_path / "ledgers" / f"{place:07d}" / "ledger.json").entries()
        assert entry.started == len(agreement.rounds)
    said = (tmp_path / f"{THIRD_PARTY}.log").read_text() + (tmp_path / f"{RECOMMENDER}.log").read_text()
    assert "handle" not in said


def wait_for(log: Path, words: str) -> None:
    """Wait until a program has logged something."""
    from time import monotonic, sleep

    until = monotonic() + PATIENCE
    while words not in log.read_text():
        assert monotonic() < until, log.read_text()
        sleep(0.05)


def private_pem(key: object) -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    assert isinstance(key, Ed25519PrivateKey)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(*form)
