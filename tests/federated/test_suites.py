"""Two versions of the wire: the same protocol and sums, other ciphers, and nothing in common that could mix."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpmf.cli.federate import federate
from dpmf.errors import InvalidArgument
from dpmf.federated.certified.messages import Answer
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.catalogue_file import catalogue_beside
from dpmf.federated.deploy.identity import write_identity
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.codec import Reader, encode_header
from dpmf.federated.wire.masks import mask_elements
from dpmf.federated.wire.refusals import Refused
from dpmf.federated.wire.ring import Ring

from .certified_world import World, agreement_of


def hkdf(secret: bytes, info: bytes, length: int) -> bytes:
    """Return what RFC 5869 derives without salt."""
    key, found, block = hmac.digest(bytes(32), secret, "sha256"), b"", b""
    while len(found) < length:
        block = hmac.digest(key, block + info + bytes([len(found) // 32 + 1]), "sha256")
        found += block
    return found[:length]


def test_seals_of_the_second_version_are_aes_in_galois_counter_mode() -> None:
    one, other = sorted((KeyPair(), KeyPair()), key=lambda keys: keys.public)
    sealed = Channel(one, other.public, 2).seal(b"hello")
    info = b"dpmf federated channel 2" + one.public + other.public
    key = hkdf(one.shared_with(other.public), info, 64)[:32]  # of the end whose public key is smaller
    assert sealed[:8] == (1).to_bytes(8, "little")
    assert AESGCM(key).decrypt(bytes(4) + sealed[:8], sealed[8:], None) == b"hello"


def test_masks_of_the_second_version_are_aes_in_counter_mode() -> None:
    seed = bytes(range(32))
    stream = Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor().update(bytes(8 * 40_000))
    elements = mask_elements(seed, Ring(5), 40_000, version=2)
    assert elements.tobytes() == stream
    assert mask_elements(seed, Ring(4), 7, version=2).tobytes() == stream[:28]


def test_versions_do_not_open_each_others_seals_or_messages() -> None:
    one, other = KeyPair(), KeyPair()
    for here, there in ((1, 2), (2, 1)):
        with pytest.raises(Refused, match="seal is broken"):
            Channel(other, one.public, there).open(Channel(one, other.public, here).seal(b"hello"))
        with pytest.raises(Refused, match="another version"):
            Reader(encode_header(17, 0, here), 17, there)
    with pytest.raises(InvalidArgument, match="wire=3"):
        agreement_of(wire=3)


def test_an_agreement_of_the_second_version_has_a_digest_of_its_own_and_names_its_ciphers() -> None:
    first, second = agreement_of(wire=1), agreement_of(wire=2)
    assert len(first.digest) == len(second.digest) == 16
    assert first.digest != second.digest
    assert any("AES-256" in one for one in second.guarantee([], seeded=False).assumptions)
    assert not any("AES" in one for one in first.guarantee([], seeded=False).assumptions)
    content = Answer(0, np.zeros(12, np.uint64)).encoded(second)
    with pytest.raises(Refused, match="another version"):
        Answer.decoded(content, first)


@pytest.mark.parametrize("name", ["als", "ease"])
def test_rounds_of_the_second_version_give_the_sums_of_the_first(name: str) -> None:
    worlds = [World(agreement_of(name, wire=wire)) for wire in (1, 2)]
    for number in range(len(worlds[0].agreement.rounds)):
        one, other = (world.play(silent=[1] if number % 2 else []) for world in worlds)
        for first, second in zip(one, other, strict=True):
            np.testing.assert_array_equal(first.values, second.values)
    lengths = [{user: len(message) for user, message in world.seen.items()} for world in worlds]
    assert lengths[0] == lengths[1]
    assert hashlib.sha256(worlds[0].seen[0]).digest() != hashlib.sha256(worlds[1].seen[0]).digest()


def test_the_command_makes_agreements_of_either_version(tmp_path: Path) -> None:
    keys = {role: tmp_path / role / "identity.pub" for role in ("recommender", "third-party", "inviter")}
    for file in keys.values():
        file.parent.mkdir()
        write_identity(file.with_suffix(".pem"))
    (tmp_path / "items.csv").write_text("item,title\n1,Heat\n2,Up\n")
    words = ["--name", "Films", "--epsilon", "5", "--items", str(tmp_path / "items.csv"), "--scale", "1:5", "--json"]
    words += ["--per-round", "3", "--inviter", str(keys["inviter"]), "--admitted-by", "Ann", "--ends", "2099-01-01"]
    for role in ("recommender", "third-party"):
        words += [f"--{role}-name", role, f"--{role}-url", f"wss://{role}.example", f"--{role}-key", str(keys[role])]
    for wire in ("1", "2"):
        out = tmp_path / f"{wire}.json"
        made = CliRunner().invoke(federate, ["agree", str(out), *words, "--wire", wire])
        assert made.exit_code == 0, made.output
        made_file = AgreementFile.read(out)
        agreement = made_file.agreement(catalogue_beside(out).read_bytes())
        assert agreement.wire == made_file.content["wire"] == int(wire)
    assert CliRunner().invoke(federate, ["agree", str(tmp_path / "3.json"), *words, "--wire", "3"]).exit_code != 0
    assert not (tmp_path / "3.json").exists()
