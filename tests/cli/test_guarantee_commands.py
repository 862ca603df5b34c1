"""`dpmf verify`, `explain` and `ledger`, for people and for programs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.files import digest_of
from dpmf.methods import ALS
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee, PoissonGaussianEvent
from dpmf.privacy.ledger import Ledger
from dpmf.ratings.synthetic import make

Command = Callable[..., subprocess.CompletedProcess[str]]

EVENT = GaussianEvent("item sums", 5.0, 1, 40)
PROMISE = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"])
PAPER = Guarantee.paper(
    epsilon=1,
    delta=0,
    unit="user",
    neighbours="add-remove",
    claim="a theorem",
    releases=["item factors"],
    assumptions=["The chain has converged."],
)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    pem = serialization.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture
def folder(release: Release, tmp_path: Path) -> Path:
    """Return a folder with a certified release."""
    replace(release, guarantee=PROMISE).save(tmp_path / "release")
    return tmp_path / "release"


def edit(folder: Path, change: Callable[[dict[str, Any]], object], *, seal: bool) -> None:
    facts = json.loads((folder / "release.json").read_text())
    change(facts)
    if seal:
        facts["digest"] = digest_of({name: facts[name] for name in facts if name not in ("digest", "signature")})
    (folder / "release.json").write_text(json.dumps(facts))


def test_an_honest_release_verifies(command: Command, folder: Path) -> None:
    done = command("verify", folder, "--without-plan", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert list(report) == ["epsilon", "delta", "recomputed_epsilon", "certified", "ok", "plan", "signed", "warning"]
    assert (report["delta"], report["certified"], report["ok"], report["signed"]) == (1e-6, True, True, False)
    assert report["epsilon"] == pytest.approx(report["recomputed_epsilon"], abs=2e-6)
    shown = command("verify", folder, "--without-plan").stdout
    for words in ("checksums agree", "certified", "the events cost what is stated", "trusted as written"):
        assert words in shown
    assert report["plan"] is None
    assert "not rebuilt, because an older version of dpmf wrote the release" in shown


def test_without_a_plan_a_release_is_verified_by_its_signature_alone(
    command: Command, release: Release, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    """Else whoever takes the plan away could state any epsilon."""
    folder = tmp_path / "signed"
    replace(release, guarantee=PROMISE).save(folder, sign_key=keys[0])
    done = command("verify", folder, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["certified"], report["plan"]) == (1, False, False, None)
    assert done.stderr.count("\n") == 1
    assert "accept that with --without-plan" in done.stderr
    for option in (("--public-key", keys[1]), ("--without-plan",)):
        report = json.loads(command("verify", folder, *option, "--json").stdout)
        assert (report["ok"], report["certified"], report["plan"]) == (True, True, None)


def test_a_release_is_compared_with_the_plan_of_its_method(command: Command, tmp_path: Path) -> None:
    folder, event = tmp_path / "release", GaussianEvent("item sums", 100.0, 1, 1)
    ALS(n_factors=1, n_epochs=1, budget=Budget(5.0)).fit(make(60, 30), n_threads=1).release.save(folder)
    assert json.loads(command("verify", folder, "--json").stdout)["plan"] is True
    assert "account for everything in the release" in command("verify", folder).stdout
    cheap = Guarantee.certified_by(Budget(1.0), [event], releases=["item factors"])
    edit(folder, lambda facts: facts.update(guarantee=cheap.to_json()), seal=True)
    done = command("verify", folder, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["plan"], report["certified"]) == (1, False, False, False)
    assert "'item sums' is not among what its method releases; do not trust it" in done.stderr
    assert done.stderr.count("\n") == 1
    for order in ("explain", "verify"):
        done = command(order, folder)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    edit(folder, lambda facts: facts["configuration"].pop("plan"), seal=True)
    assert "it has 30 items, and its events released 1 numbers" in command("verify", folder).stderr


def test_a_large_delta_is_warned_about_wherever_epsilon_is_printed(
    command: Command, release: Release, tmp_path: Path
) -> None:
    loose = Guarantee.certified_by(Budget(1.0, 0.01), [EVENT], releases=["item factors"])
    replace(release, guarantee=loose).save(tmp_path / "loose")
    words = "delta=0.01 is too large: publishing the ratings of one person in 100 would be within it"
    for order in (("verify", "--without-plan"), ("explain",)):
        assert words in " ".join(command(*order, tmp_path / "loose").stdout.split())
        assert words in json.loads(command(*order, tmp_path / "loose", "--json").stdout)["warning"]
    configuration = {**release.configuration, "n_users": 2_000_000}
    replace(release, guarantee=PROMISE, configuration=configuration).save(tmp_path / "many")
    words = "delta=1e-06 is too large for about 2,000,000 users"
    for order in (("verify", "--without-plan"), ("explain",)):
        assert words in " ".join(command(*order, tmp_path / "many").stdout.split())
    assert words in json.loads(command("verify", tmp_path / "many", "--json").stdout)["warning"]
    Ledger(tmp_path / "ledger.json", Budget(1.0, 0.01))
    assert "is too large" in command("ledger", tmp_path / "ledger.json").stdout
    trained = command("train", "synthetic", "--method", "als", "--epsilon", 5, "--delta", 0.001, "--epochs", 1)
    assert "WARNING: delta=0.001 is too large" in " ".join(trained.stdout.split())
    refused = command("train", "synthetic", "--epsilon", 5, "--delta", 0.5)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "--delta 0.5 protects nobody" in refused.stderr
    assert "dpmf train --allow-large-delta" in refused.stderr
    meant = ("train", "synthetic", "--method", "als", "--epsilon", 5, "--delta", 0.5, "--allow-large-delta")
    trained = command(*meant, "--epochs", 1, "--out", tmp_path / "meant", "--ledger", tmp_path / "all.json", "--cap", 9)
    assert "WARNING: delta=0.5 is too large" in " ".join(trained.stdout.split())
    assert "delta=0.5 is too large" in " ".join(command("verify", tmp_path / "meant").stdout.split())
    assert "delta=0.5" in command("ledger", tmp_path / "all.json").stdout


def test_a_wrong_epsilon_fails_loudly(command: Command, folder: Path) -> None:
    edit(folder, lambda facts: facts["guarantee"].update(epsilon=0.5), seal=True)
    done = command("verify", folder, "--json")
    assert done.returncode == 1
    assert "epsilon=0.5 is stated, but the events cost epsilon=0.834" in done.stderr
    report = json.loads(done.stdout)
    assert (report["ok"], report["certified"], report["epsilon"]) == (False, False, 0.5)
    assert command("verify", folder).stdout == ""


@pytest.mark.parametrize("file", ["release.json", "release.safetensors"])
def test_a_damaged_file_fails(command: Command, folder: Path, file: str) -> None:
    content = bytearray((folder / file).read_bytes())
    content[-20] ^= 1
    (folder / file).write_bytes(content)
    done = command("verify", folder)
    assert done.returncode == 1
    assert "is damaged" in done.stderr


def test_signatures(command: Command, release: Release, folder: Path, keys: tuple[Path, Path]) -> None:
    unsigned = command("verify", folder, "--public-key", keys[1])
    assert (unsigned.returncode, unsigned.stdout) == (1, "")
    assert "is not signed" in unsigned.stderr
    replace(release, guarantee=PROMISE).save(folder, sign_key=keys[0])
    assert json.loads(command("verify", folder, "--public-key", keys[1], "--json").stdout)["signed"] is True
    shown = command("verify", folder, "--public-key", keys[1]).stdout
    assert "matches the public key" in shown
    assert "trusted as written" not in shown
    assert json.loads(command("verify", folder, "--json").stdout)["signed"] is None
    assert "present but not checked" in command("verify", folder, "--without-plan").stdout
    edit(folder, lambda facts: facts.update(mean=3.3), seal=True)
    assert (
        command("verify", folder, "--without-plan").returncode == 0
    )  # a digest alone does not stop whoever can recompute it
    tampered = command("verify", folder, "--public-key", keys[1])
    assert tampered.returncode == 1
    assert "does not match the public key" in tampered.stderr
    assert "cannot read the key" in command("verify", folder, "--public-key", "nowhere.pem").stderr


def test_nothing_guaranteed_is_nothing_to_verify(command: Command, release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "none")
    report = json.loads(command("verify", tmp_path / "none", "--json").stdout)
    assert (report["epsilon"], report["recomputed_epsilon"], report["certified"], report["ok"]) == (
        None,
        None,
        False,
        True,
    )
    shown = command("verify", tmp_path / "none").stdout
    assert "not private" in shown
    assert "nothing is guaranteed" in shown
    replace(release, guarantee=PAPER).save(tmp_path / "paper")
    report = json.loads(command("verify", tmp_path / "paper", "--json").stdout)
    assert (report["epsilon"], report["recomputed_epsilon"], report["certified"]) == (1.0, None, False)
    assert "no accountant here can recompute it" in command("verify", tmp_path / "paper").stdout


def test_explain_tells_people_and_programs_the_same(command: Command, folder: Path) -> None:
    shown = command("explain", folder).stdout
    report = json.loads(command("explain", folder, "--json").stdout)
    assert report["events"][0]["kind"] == "gaussian-noise"
    for title, sentences in report["explanation"].items():
        assert title in shown
        for sentence in sentences:
            assert sentence[:60] in shown


def test_what_does_not_follow_from_the_events_is_not_explained(command: Command, folder: Path) -> None:
    edit(folder, lambda facts: facts["guarantee"].update(epsilon=0.5), seal=True)
    for options in ((), ("--json",)):
        done = command("explain", folder, *options)
        assert (done.returncode, done.stdout) == (1, "")
        assert "epsilon=0.5 is stated, but the events cost epsilon=0.834" in done.stderr


def test_a_release_does_not_command_the_terminal(command: Command, folder: Path) -> None:
    edit(folder, lambda facts: facts["configuration"].update(method="\x1b[2Jals\r"), seal=True)
    shown = command("explain", folder).stdout
    assert "�[2Jals�" in shown
    assert "\x1b" not in shown


def test_a_release_that_would_take_minutes_to_verify_is_refused_at_once(command: Command, folder: Path) -> None:
    def many(facts: dict[str, Any]) -> None:
        facts["guarantee"]["events"] = [
            PoissonGaussianEvent("sums", 1 + place / 1000, 0.01, 10, 40).to_json() for place in range(1000)
        ]

    edit(folder, many, seal=True)
    for name in ("verify", "explain"):
        done = command(name, folder)
        assert done.returncode == 1
        assert "1000 kinds of sampled steps" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_ledger_is_shown(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    Ledger(path, Budget(2.0)).spend("June", PROMISE)
    report = json.loads(command("ledger", path, "--json").stdout)
    assert (report["cap"], report["delta"], report["spent"]) == (2.0, 1e-6, 0.834118)
    assert [entry["label"] for entry in report["entries"]] == ["June"]
    shown = command("ledger", path).stdout
    assert "June" in shown
    assert "epsilon=0.834118 of 2 is spent" in shown
    missing = command("ledger", tmp_path / "nowhere.json")
    assert missing.returncode == 1
    assert "no ledger" in missing.stderr
