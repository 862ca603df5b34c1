"""An agreement that a site offers its visitors to join, from the page in their browser: see docs/federated.md."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf.errors import InvalidArgument
from dpmf.model import Release

if TYPE_CHECKING:
    from dpmf.federated.deploy.agreement_file import AgreementFile

AGREEMENT_FILE, CATALOGUE_FILE = "join/agreement.json", "join/catalogue.json"
_METHODS = ("als", "ease", "joint")  # whose questions the page can answer, where people have ratings …
_ANSWERED = {  # … and what these release, as js/federated/questions.js has it
    "item popularity", "item weights", "item biases", "item factors", "user moments", "item pairs",
}  # fmt: skip
_ADDRESS = re.compile(r"wss?://[\w.:\[\]-]+")  # nothing that a content policy reads as more than an address


@dataclass(frozen=True)
class Offer:
    """What a site needs to offer an agreement.

    Attributes:
        name: of the agreement, for people.
        servers: the names of the recommender and the third party.
        addresses: theirs, the only ones that the page for joining may connect to.
        files: the agreement and its catalogue, by their paths in the site.
    """

    name: str
    servers: tuple[str, str]
    addresses: tuple[str, str]
    files: dict[str, bytes]

    def to_json(self) -> dict[str, Any]:
        """Return what about.json says of it."""
        return {"name": self.name, "servers": list(self.servers)}


def read_offer(path: Path, release: Release) -> Offer:
    """Read an agreement that visitors of a release's page can join.

    Raises:
        InvalidArgument: the page could not take part in it, or ratings on the page are of another kind.
        NotVerified: one of the servers has not signed it.
    """
    from dpmf.federated.deploy.agreement_file import AgreementFile
    from dpmf.federated.deploy.agreement_parts import RECOMMENDER, ROLES, THIRD_PARTY
    from dpmf.federated.deploy.catalogue_file import catalogue_beside, catalogue_bytes

    file, beside = AgreementFile.read(path), catalogue_beside(path)
    file.check_signed()
    _check_page_can_join(file, path)
    catalogue = beside.read_bytes() if beside.is_file() else catalogue_bytes(release.items)
    if hashlib.sha256(catalogue).hexdigest() != file.content["catalogue"]["sha256"]:
        raise InvalidArgument(f"the catalogue of {path} is not that of the release: put its file there as {beside}")
    agreement = file.agreement(catalogue)
    if release.feedback != "explicit" or agreement.scale != release.scale:
        raise InvalidArgument(f"{path} is about ratings of another kind than those on the page of the release")
    servers = {role: file.servers[role] for role in ROLES}
    for server in servers.values():
        if not _ADDRESS.fullmatch(server.url):
            raise InvalidArgument(f"{server.url} cannot be stated in the policy of a page: use a plain address")
    both = servers[RECOMMENDER], servers[THIRD_PARTY]
    return Offer(
        name=file.name,
        servers=(both[0].name, both[1].name),
        addresses=(both[0].url, both[1].url),
        files={AGREEMENT_FILE: path.read_bytes(), CATALOGUE_FILE: catalogue},
    )


def _check_page_can_join(file: AgreementFile, path: Path) -> None:
    content = file.content
    if content["wire"] != 2:
        raise InvalidArgument(f"{path} has version {content['wire']} of the wire: make one with --wire 2, for browsers")
    asked = {question["what"] for one in content["computed"]["rounds"] for question in one["questions"]}
    if content["method"]["name"] not in _METHODS or not isinstance(content["scale"], list) or not asked <= _ANSWERED:
        able = ", ".join(_METHODS)
        raise InvalidArgument(f"the page cannot answer what {path} asks: it can for {able} on ratings, without links")
    if file.admission.key is None:
        raise InvalidArgument(f"{path} admits people by a list of keys: a page needs invitations")
