"""The agreement as a public file that both servers have signed: everything that a device has to know before it joins.

What is signed is a text, so that nobody has to agree on one way of writing JSON. The file also states what follows from
the settings (rounds, noise, lengths), for clients that have no accountant; here it is computed again and compared, so
that a file from another version of the code, or a wrong one, is refused.

See docs/federated-protocol.md for every field.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.errors import DamagedFile, DpmfError, InvalidArgument, NotVerified
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, ROLES, THIRD_PARTY, Admission, Server, Timing
from dpmf.federated.deploy.catalogue_file import catalogue_bytes
from dpmf.federated.deploy.computed import computed
from dpmf.federated.deploy.identity import is_signed, public_of, signed
from dpmf.files import dump_json, write_text
from dpmf.methods import METHODS
from dpmf.methods.als.implicit import NO_RATINGS
from dpmf.methods.certified.method import CertifiedMethod, known_settings
from dpmf.privacy import Budget
from dpmf.ratings import Items, Scale

WIRES = (1, 2)
_FORMAT, _SIGNED, _VERSION = "dpmf-agreement", "dpmf-signed-agreement", 1
_MOST_BYTES = 1 << 22
_MOST_ANSWER_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class AgreementFile:
    """A text that states an agreement, and who signed it.

    Attributes:
        text: what is signed.
        signatures: by the servers' roles.
    """

    text: str
    signatures: Mapping[str, bytes]

    @cached_property
    def id(self) -> bytes:
        """The SHA-256 of the text, which everything else refers to."""
        return hashlib.sha256(self.text.encode()).digest()

    @property
    def run(self) -> bytes:
        """What a device's ledger tells this run by, whatever the keys of the servers' processes."""
        return b"dpmf-run:" + self.id

    @cached_property
    def content(self) -> dict[str, Any]:
        """What the text says."""
        content = json.loads(self.text)
        if not isinstance(content, dict):
            raise ValueError("it is no JSON object")
        return content

    @property
    def name(self) -> str:
        """What the run is about."""
        return str(self.content["name"])

    @cached_property
    def servers(self) -> dict[str, Server]:
        """Both servers by role."""
        return {role: Server.from_json(self.content[role]) for role in ROLES}

    @cached_property
    def admission(self) -> Admission:
        """Who may take part."""
        return Admission.from_json(self.content["admission"])

    @cached_property
    def timing(self) -> Timing:
        """When the run is."""
        return Timing.from_json(self.content["timing"])

    def lengths(self, way: str) -> list[int]:
        """Return the lengths of the sealed questions ("bytes_down") or answers ("bytes_up") of all rounds."""
        return [int(one[way]) for one in self.content["computed"]["rounds"]]

    def signed_by(self, key: Ed25519PrivateKey) -> AgreementFile:
        """Return the file with the signature of one more server."""
        roles = [role for role in ROLES if self.servers[role].key == public_of(key)]
        if not roles:
            raise InvalidArgument("the key is of neither server of the agreement: sign with one of theirs")
        ours = dict.fromkeys(roles, signed(key, "agreement", self.id))
        return dataclasses.replace(self, signatures={**self.signatures, **ours})

    def missing_signatures(self) -> list[str]:
        """Return the roles of servers that have not signed, or whose signature is wrong."""
        return [
            role
            for role in ROLES
            if not is_signed(self.servers[role].key, "agreement", self.id, self.signatures.get(role, b""))
        ]

    def check_signed(self) -> None:
        """Raise `NotVerified` unless both servers have signed."""
        missing = self.missing_signatures()
        if missing:
            who = " and ".join(f"the {role.replace('_', ' ')}" for role in missing)
            raise NotVerified(f"{who} did not sign the agreement: do not join; ask for a file that both have signed")

    def agreement(self, catalogue: bytes) -> Agreement:
        """Return what the protocol goes by, made of the settings and the bytes of the catalogue's file.

        Raises:
            NotVerified: the catalogue is another one, or the file states what does not follow from the settings.
        """
        if hashlib.sha256(catalogue).hexdigest() != self.content["catalogue"]["sha256"]:
            raise NotVerified("the catalogue is not the one of the agreement: get it from the recommender again")
        agreement = _agreement_of(self.content, _catalogue_of(catalogue))
        if json.loads(json.dumps(computed(agreement))) != self.content["computed"]:
            raise NotVerified(
                "the agreement states other rounds or other noise than follow from its settings: it was made by "
                "another version of dpmf, or is wrong; do not join"
            )
        return agreement

    def to_bytes(self) -> bytes:
        """Return the file."""
        signatures = {role: signature.hex() for role, signature in self.signatures.items()}
        return dump_json(
            {"format": _SIGNED, "version": _VERSION, "agreement": self.text, "signatures": signatures}
        ).encode()

    def write(self, path: Path) -> None:
        """Write the file."""
        write_text(path, self.to_bytes().decode())

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the agreement") -> AgreementFile:
        """Read a file; signatures are not checked here."""
        try:
            found = json.loads(content.decode())
            if found.get("format") != _SIGNED:
                raise ValueError("it has another format")
            if found["version"] != _VERSION:
                raise InvalidArgument(f"{name} is of another version of dpmf: update dpmf")
            signatures = {str(role): bytes.fromhex(one) for role, one in found["signatures"].items()}
            file = cls(str(found["agreement"]), signatures)
            file._check()
        except InvalidArgument:
            raise
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise DamagedFile(f"{name} is no agreement, or damaged: {error}") from None
        return file

    @classmethod
    def read(cls, path: Path) -> AgreementFile:
        """Read a file; signatures are not checked here."""
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise InvalidArgument(f"cannot read the agreement {path}: {error.strerror}") from None
        if len(content) > _MOST_BYTES:
            raise DamagedFile(f"{path} is too long for an agreement")
        return cls.from_bytes(content, str(path))

    def _check(self) -> None:
        """Raise an error if the text lacks anything that is read without the catalogue."""
        content = self.content
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise ValueError("its text has another format")
        if content["wire"] not in WIRES:
            raise InvalidArgument(f"the agreement has version {content['wire']} of sealed messages: update dpmf")
        self.servers, self.admission, self.timing, self.name  # noqa: B018
        if self.servers[RECOMMENDER].key == self.servers[THIRD_PARTY].key:
            raise ValueError("both servers have the same key: they have to be apart")
        self.lengths("bytes_up"), self.lengths("bytes_down")
        _budget_of(content["budget"])


def draft(
    agreement: Agreement,
    *,
    name: str,
    recommender: Server,
    third_party: Server,
    admission: Admission,
    timing: Timing,
) -> AgreementFile:
    """Return an agreement that nobody has signed yet."""
    method, budget = agreement.method, agreement.budget
    if not isinstance(method, CertifiedMethod):
        raise InvalidArgument(f"{method.name} needs profiles, which no agreement has: choose another method")
    if agreement.script.places is not None:
        raise InvalidArgument(f"{method.name} asks people for their place among all: choose another method")
    if agreement.n_users > admission.most:
        raise InvalidArgument(f"a round has {agreement.n_users} people, and {admission.most} may take part: admit more")
    if recommender.key == third_party.key:
        raise InvalidArgument("both servers have the same key: each needs its own, made where it will run")
    settings = {one.name: getattr(method, one.name) for one in dataclasses.fields(method)}
    promised = {one: getattr(budget, one) for one in ("epsilon", "delta", "unit", "neighbours")}
    people = {"per_round": agreement.n_users, "dropouts": agreement.dropouts, "colluders": agreement.colluders}
    catalogue = catalogue_bytes(agreement.catalogue)
    content: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "run": secrets.token_hex(16),
        "name": name,
        "wire": agreement.wire,
        "method": {
            "name": method.name,
            "settings": {one: value for one, value in settings.items() if one not in ("budget", "noise_seed")},
        },
        "budget": promised,
        "scale": _scale_to_json(agreement.scale),
        "catalogue": {"n_items": agreement.n_items, "sha256": hashlib.sha256(catalogue).hexdigest()},
        "people": people,
        "timing": timing.to_json(),
        RECOMMENDER: recommender.to_json(),
        THIRD_PARTY: third_party.to_json(),
        "admission": admission.to_json(),
    }
    content["computed"] = computed(_agreement_of(content, _catalogue_of(catalogue)))  # as devices will make it
    file = AgreementFile(dump_json(content), {})
    longest = max(file.lengths("bytes_up"))
    if longest > _MOST_ANSWER_BYTES:
        raise InvalidArgument(
            f"an answer would have {longest:,} bytes, and devices send {_MOST_ANSWER_BYTES:,} at once at most: "
            "choose a smaller head, fewer factors or fewer items"
        )
    return file


def _agreement_of(content: Mapping[str, Any], catalogue: Items) -> Agreement:
    try:
        name, settings = str(content["method"]["name"]), dict(content["method"]["settings"])
        if name not in METHODS:
            raise InvalidArgument(f"the method {name!r} is not known to this version of dpmf: update dpmf")
        kind = METHODS[name]
        more: dict[str, Any] = {"budget": _budget_of(content["budget"]), **known_settings(kind, settings)}
        n_users, dropouts, colluders = (int(content["people"][one]) for one in ("per_round", "dropouts", "colluders"))
        method = kind(**more)
        if not isinstance(method, CertifiedMethod):
            raise InvalidArgument(f"{name} has no protocol in which people answer for themselves")
        return Agreement(method, catalogue, _scale_of(content["scale"]), n_users, dropouts, colluders, content["wire"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DpmfError):
            raise
        raise DamagedFile(f"the agreement is damaged: {error}") from None


def _catalogue_of(content: bytes) -> Items:
    try:
        found = json.loads(content.decode())
        return Items.of(list(found["ids"]), found["titles"], found["genres"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"the catalogue is damaged: {error}") from None


def _budget_of(content: Mapping[str, Any]) -> Budget:
    budget = Budget.recorded(*(content[one] for one in ("epsilon", "delta", "unit", "neighbours")))
    if not math.isfinite(budget.epsilon):
        raise ValueError("its epsilon is infinite")
    return budget


def _scale_to_json(scale: Scale) -> Sequence[float] | str | None:
    if scale == NO_RATINGS:
        return None
    return "counts" if scale.counts else [scale.lo, scale.hi]


def _scale_of(content: Any) -> Scale:
    if content is None:
        return NO_RATINGS
    return Scale.of_counts() if content == "counts" else Scale.of(content)
