"""Signatures: whose they are, what they cover, and keys that will not do."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from dpmf.errors import InvalidArgument, NotVerified
from dpmf.files import digest_of
from dpmf.model import Release
from dpmf.model.release_json import is_signed

PLAIN = serialization.NoEncryption()


def write_keys(folder: Path, key: Any, name: str, encryption: Any = PLAIN) -> tuple[Path, Path]:
    """Write a key pair as PEM files and return their paths."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(pem, pkcs8, encryption))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return write_keys(tmp_path, ed25519.Ed25519PrivateKey.generate(), "ours")


def test_a_signed_release_is_known_by_its_key(release: Release, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    release.save(tmp_path / "release", sign_key=private)
    assert is_signed(tmp_path / "release")
    assert Release.load(tmp_path / "release", public_key=str(public)).mean == release.mean
    assert Release.load(tmp_path / "release").mean == release.mean
    assert sorted(file.name for file in (tmp_path / "release").iterdir()) == ["release.json", "release.safetensors"]


def test_another_key_does_not_fit(release: Release, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    _, other = write_keys(tmp_path, ed25519.Ed25519PrivateKey.generate(), "theirs")
    release.save(tmp_path / "release", sign_key=keys[0])
    with pytest.raises(NotVerified, match="does not match the public key"):
        Release.load(tmp_path / "release", public_key=other)


def test_an_unsigned_release_is_refused_if_a_key_is_given(
    release: Release, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    release.save(tmp_path / "release")
    assert not is_signed(tmp_path / "release")
    with pytest.raises(NotVerified, match="is not signed"):
        Release.load(tmp_path / "release", public_key=keys[1])


def reseal(facts: dict[str, Any]) -> None:
    """Do what somebody who tampers would do: make the digest fit again."""
    facts["digest"] = digest_of({name: facts[name] for name in facts if name not in ("digest", "signature")})


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.update(mean=3.3),
        lambda facts: facts["configuration"].update(method="als"),
        lambda facts: facts["items"]["titles"].reverse(),
        lambda facts: facts.update(signature="00" * 64),
        lambda facts: facts.update(signature="zz"),
        lambda facts: facts.update(signature=7),
        lambda facts: facts.update(signature=None),
        lambda facts: facts.pop("signature"),
    ],
)
def test_tampering_shows(
    release: Release, tmp_path: Path, keys: tuple[Path, Path], change: Callable[[dict[str, Any]], object]
) -> None:
    release.save(tmp_path / "release", sign_key=keys[0])
    file = tmp_path / "release" / "release.json"
    facts = json.loads(file.read_text())
    change(facts)
    reseal(facts)
    file.write_text(json.dumps(facts))
    with pytest.raises(NotVerified):
        Release.load(tmp_path / "release", public_key=keys[1])


def test_a_signature_of_another_release_does_not_fit(release: Release, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    release.save(tmp_path / "one", sign_key=keys[0])
    replace(release, mean=1.5).save(tmp_path / "two", sign_key=keys[0])
    one, two = (json.loads((tmp_path / name / "release.json").read_text()) for name in ("one", "two"))
    two["signature"] = one["signature"]
    (tmp_path / "two" / "release.json").write_text(json.dumps(two))
    with pytest.raises(NotVerified):
        Release.load(tmp_path / "two", public_key=keys[1])


def test_keys_that_will_not_do_are_refused_before_anything_is_written(
    release: Release, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    curve = write_keys(tmp_path, ec.generate_private_key(ec.SECP256R1()), "curve")
    secret = serialization.BestAvailableEncryption(b"secret")
    locked, _ = write_keys(tmp_path, ed25519.Ed25519PrivateKey.generate(), "locked", secret)
    (tmp_path / "text.pem").write_text("not a key")
    refusals = {
        curve[0]: "is not an Ed25519 key", keys[1]: "holds no private key", locked: "is encrypted",
        tmp_path / "text.pem": "holds no private key", tmp_path / "nowhere.pem": "cannot read the key",
    }  # fmt: skip
    for path, complaint in refusals.items():
        with pytest.raises(InvalidArgument, match=complaint) as refused:
            release.save(tmp_path / "release", sign_key=path)
        assert "\n" not in str(refused.value)
        assert not (tmp_path / "release").exists()
    release.save(tmp_path / "release", sign_key=keys[0])
    for path, complaint in {curve[1]: "is not an Ed25519 key", keys[0]: "holds no public key"}.items():
        with pytest.raises(InvalidArgument, match=complaint):
            Release.load(tmp_path / "release", public_key=path)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_keys_made_by_openssl_will_do(release: Release, tmp_path: Path) -> None:
    for line in ("genpkey -algorithm ed25519 -out private.pem", "pkey -in private.pem -pubout -out public.pem"):
        subprocess.run(["openssl", *line.split()], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    release.save(tmp_path / "release", sign_key=tmp_path / "private.pem")
    Release.load(tmp_path / "release", public_key=tmp_path / "public.pem")
