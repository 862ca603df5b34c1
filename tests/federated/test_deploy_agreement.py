"""The agreement as a file, who may take part, what a device refuses to join, and what is explained."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.errors import BudgetExceeded, DamagedFile, DpmfError, InvalidArgument, NotVerified
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.deploy.admission import Invitation, Listed, admission_of, invite, list_admission
from dpmf.federated.deploy.agreement_file import AgreementFile, draft
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY, Server
from dpmf.federated.deploy.catalogue_file import catalogue_bytes
from dpmf.federated.deploy.device import Device, check_dates, check_invitation, own_places
from dpmf.federated.deploy.explanation import explain_agreement
from dpmf.federated.deploy.frames import hello
from dpmf.federated.deploy.identity import public_of
from dpmf.federated.deploy.transport import Listening
from dpmf.federated.wire.channels import KeyPair
from dpmf.methods import ALS, EASE, Joint
from dpmf.methods.als.implicit import NO_RATINGS
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Items, Scale

from .deploy_world import KEYS, TIMING, signed_file

CATALOGUE = Items.of([7, 8, 9], ["Heat", "Alien", "Up"], ["Crime", "", ""])
METHOD = ALS(n_factors=1, n_epochs=2, budget=Budget(5.0))


def an_agreement(method: CertifiedMethod = METHOD, scale: Scale = Scale(1, 5)) -> Agreement:  # noqa: B008
    return Agreement(method, CATALOGUE, scale, n_users=4, dropouts=1)


@pytest.fixture(scope="module")
def file() -> AgreementFile:
    return signed_file(an_agreement())


@pytest.mark.parametrize(
    ("method", "scale"),
    [
        (METHOD, Scale(1, 5)),
        (ALS(n_factors=2, n_epochs=1, feedback="implicit", budget=Budget(5.0, neighbours="replace")), NO_RATINGS),
        (EASE(head=2, feedback="implicit", budget=Budget(5.0)), Scale.of_counts()),
        (Joint(n_factors=1, n_epochs=1, head=2, budget=Budget(5.0)), Scale(0.5, 5.0)),
    ],
)
def test_what_is_read_is_what_was_agreed(method: CertifiedMethod, scale: Scale, tmp_path: Path) -> None:
    agreement = an_agreement(method, scale)
    signed_file(agreement).write(tmp_path / "agreement.json")
    found = AgreementFile.read(tmp_path / "agreement.json")
    found.check_signed()
    read = found.agreement(catalogue_bytes(CATALOGUE))
    assert read.digest == agreement.digest
    assert read.catalogue.titles == CATALOGUE.titles
    stated = found.content["computed"]["rounds"]
    assert [one["elements"] for one in stated] == [agreement.n_elements(number) for number in range(len(stated))]


def test_every_change_of_the_text_breaks_the_signatures(file: AgreementFile) -> None:
    for old, new in (
        ('"epsilon": 5.0', '"epsilon": 50.0'),
        ("a.example", "c.example"),
        ('"colluders": 0', '"colluders": 1'),
    ):
        assert old in file.text
        changed = replace(file, text=file.text.replace(old, new))
        with pytest.raises(NotVerified, match="did not sign"):
            changed.check_signed()
    with pytest.raises(NotVerified, match="the third party did not sign"):
        replace(file, signatures={RECOMMENDER: file.signatures[RECOMMENDER]}).check_signed()
    swapped = {RECOMMENDER: file.signatures[THIRD_PARTY], THIRD_PARTY: file.signatures[RECOMMENDER]}
    with pytest.raises(NotVerified):
        replace(file, signatures=swapped).check_signed()
    with pytest.raises(InvalidArgument, match="neither server"):
        file.signed_by(Ed25519PrivateKey.generate())


def signed_again(file: AgreementFile, change: Callable[[dict[str, Any]], None]) -> AgreementFile:
    """Return a file with other content that both servers have signed: they may be wrong, or collude."""
    content = json.loads(file.text)
    change(content)
    return AgreementFile(json.dumps(content), {}).signed_by(KEYS[RECOMMENDER]).signed_by(KEYS[THIRD_PARTY])


def test_noise_that_does_not_follow_from_the_settings_is_refused_although_both_signed(file: AgreementFile) -> None:
    def less_noise(content: dict[str, Any]) -> None:
        content["computed"]["events"][0]["noise_multiplier"] /= 2

    def more_shares(content: dict[str, Any]) -> None:
        content["people"]["dropouts"] = 0

    for change in (less_noise, more_shares):
        with pytest.raises(NotVerified, match="other rounds or other noise"):
            signed_again(file, change).agreement(catalogue_bytes(CATALOGUE))
    other = Items.of([7, 8, 10], ["Heat", "Alien", "Up"], ["Crime", "", ""])
    with pytest.raises(NotVerified, match="catalogue"):
        file.agreement(catalogue_bytes(other))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"format": "dpmf-signed-agreement", "version": 1, "agreement": "{}", "signatures": {}}',
    ],
)
def test_what_is_no_agreement_is_refused_in_a_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DamagedFile, match=r"a\.json"):
        AgreementFile.read(tmp_path / "a.json")


def test_servers_have_to_be_apart_and_encrypted(file: AgreementFile) -> None:
    servers = [file.servers[RECOMMENDER], file.servers[THIRD_PARTY]]
    about: dict[str, Any] = {"name": "Films", "admission": file.admission, "timing": TIMING}
    with pytest.raises(InvalidArgument, match="same key"):
        draft(an_agreement(), recommender=servers[0], third_party=replace(servers[1], key=servers[0].key), **about)
    with pytest.raises(InvalidArgument, match="not be encrypted"):
        Server("Ann", "ws://a.example:1", bytes(32))
    assert Server("Ann", "ws://127.0.0.1:1", bytes(32)).url
    with pytest.raises(InvalidArgument, match="TLS"):
        Listening("0.0.0.0", 1)
    with pytest.raises(InvalidArgument, match="admit more"):
        draft(
            an_agreement(),
            recommender=servers[0],
            third_party=servers[1],
            **{**about, "admission": replace(file.admission, most=3)},
        )


def test_an_invitation_is_to_one_agreement_and_one_number(file: AgreementFile) -> None:
    mine = invite(KEYS["inviter"], file.id, 2)
    assert Invitation.parse(mine.text()) == mine
    assert repr(mine) == "Invitation(2)"
    check_invitation(file, mine)
    elsewhere = signed_again(file, lambda content: content.update(run="00" * 16))
    for wrong in (replace(mine, handle=3), replace(mine, certificate=bytes(64)), invite(KEYS["inviter"], file.id, 4)):
        with pytest.raises(NotVerified, match="another agreement"):
            check_invitation(file, wrong)
    with pytest.raises(NotVerified, match="another agreement"):
        check_invitation(elsewhere, mine)
    for text in ("", "dpmf-invitation-1:", mine.text()[:-9], "x" + mine.text(), mine.text() + "é"):
        with pytest.raises(InvalidArgument, match="no invitation"):
            Invitation.parse(text)


def test_a_list_of_keys_admits_those_on_it(file: AgreementFile, tmp_path: Path) -> None:
    keys = [public_of(Ed25519PrivateKey.generate()) for _ in range(4)]
    path = tmp_path / "people.txt"
    path.write_text("\n".join(key.hex() for key in keys))
    servers = {"recommender": file.servers[RECOMMENDER], "third_party": file.servers[THIRD_PARTY]}
    listed = draft(an_agreement(), name="Films", admission=list_admission("Ann", path), timing=TIMING, **servers)
    admits = admission_of(AgreementFile.from_bytes(listed.to_bytes()), path)
    assert isinstance(admits, Listed)
    assert [admits(handle, keys[1], b"") for handle in (0, 1, 4)] == [False, True, False]
    path.write_text("\n".join(key.hex() for key in keys[::-1]))
    with pytest.raises(NotVerified, match="not the list"):
        admission_of(listed, path)
    for text in ("", "12", f"{keys[0].hex()}\n{keys[0].hex()}"):
        path.write_text(text)
        with pytest.raises(InvalidArgument):
            list_admission("Ann", path)


def test_a_device_joins_what_its_ledger_allows_and_pays_once_for_a_run(file: AgreementFile, tmp_path: Path) -> None:
    ledger, places = Ledger(tmp_path / "ledger.json", Budget(6.0)), np.array([0, 2])
    agreement = an_agreement()

    def joining(what: AgreementFile) -> None:
        device = Device(what, agreement, invite(KEYS["inviter"], what.id, 0), places, np.array([4.0, 2.0]), ledger)
        for role in (RECOMMENDER, THIRD_PARTY):  # the keys of a session are other ones every time
            device.hello(role, json.loads(hello(KEYS[role], role, what.id, KeyPair().public)))
        device.join()

    joining(file)
    joining(file)
    assert len(ledger.entries()) == 1
    assert ledger.spent() <= 5.0
    with pytest.raises(BudgetExceeded, match="cap"):
        joining(signed_again(file, lambda content: content.update(run="11" * 16)))
    assert len(ledger.entries()) == 1


def test_a_device_refuses_what_is_not_signed_and_servers_that_are_not_those_of_the_agreement(
    file: AgreementFile, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(6.0))
    mine = invite(KEYS["inviter"], file.id, 0), np.array([0]), np.array([4.0]), ledger
    with pytest.raises(NotVerified):
        Device(replace(file, signatures={}), an_agreement(), *mine)
    device, public = Device(file, an_agreement(), *mine), KeyPair().public
    wrong = [
        hello(Ed25519PrivateKey.generate(), RECOMMENDER, file.id, public),
        hello(KEYS[THIRD_PARTY], THIRD_PARTY, file.id, public),
        hello(KEYS[RECOMMENDER], RECOMMENDER, bytes(32), public),
    ]
    for text in wrong:
        with pytest.raises(DpmfError, match="server"):
            device.hello(RECOMMENDER, json.loads(text))
    assert not ledger.entries()


def test_dates_are_compared_with_a_clock_that_may_be_a_day_wrong(file: AgreementFile) -> None:
    hour = timedelta(hours=1)
    check_dates(file, TIMING.begins - 23 * hour)
    check_dates(file, TIMING.ends + 23 * hour)
    with pytest.raises(InvalidArgument, match="begins on"):
        check_dates(file, TIMING.begins - 25 * hour)
    with pytest.raises(InvalidArgument, match="ended on"):
        check_dates(file, datetime(2031, 1, 1, tzinfo=UTC))


def test_own_ratings_are_found_by_id_or_title() -> None:
    places, values, unknown = own_places(CATALOGUE, {"7": 5.0, "Up": 2.0, "Heat 2": 1.0})
    assert (places.tolist(), values.tolist(), unknown) == ([0, 2], [5.0, 2.0], 1)
    with pytest.raises(InvalidArgument, match="twice"):
        own_places(CATALOGUE, {"7": 5.0, "Heat": 2.0})


def test_an_explanation_names_everybody_and_says_if_somebody_did_not_sign(file: AgreementFile) -> None:
    text = " ".join(sentence for part in explain_agreement(file) for sentence in (part.title, *part.sentences))
    for words in (
        "Ann's shop",
        "Bob's office",
        "ε = 5",
        "If more than 1 of",
        "Both servers have signed",
        file.id.hex(),
    ):
        assert words in text
    assert f"{sum(file.lengths('bytes_up')):,} leave it" in text
    unsigned = explain_agreement(replace(file, signatures={}))
    assert "DO NOT JOIN" in " ".join(unsigned[-1].sentences)
