"""Agreements that pages can join, and the Python side of rounds with them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.deploy.admission import Invitation, invite
from dpmf.federated.deploy.agreement_file import AgreementFile, draft
from dpmf.federated.deploy.agreement_parts import Admission, Server, Timing
from dpmf.federated.deploy.catalogue_file import catalogue_bytes
from dpmf.federated.deploy.identity import public_of
from dpmf.methods import ALS, EASE, Joint
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.privacy import Budget
from dpmf.ratings import Items, Scale

BUDGET = Budget(5.0)
METHODS: dict[str, CertifiedMethod] = {
    "als": ALS(n_factors=3, n_epochs=2, budget=BUDGET),
    "als-replace": ALS(n_factors=7, n_epochs=1, budget=Budget(5.0, neighbours="replace")),
    "als-per-item": ALS(n_factors=2, n_epochs=1, moments="per-item", budget=BUDGET),
    "als-biases": ALS(n_factors=0, budget=BUDGET),
    "ease": EASE(head=15, budget=BUDGET),
    "joint": Joint(n_factors=2, n_epochs=1, head=5, budget=BUDGET),
}
PEOPLE = {"n_users": 4, "dropouts": 1, "colluders": 1}


class Offered(NamedTuple):
    """An agreement that both servers signed, and what belongs to it."""

    file: AgreementFile
    agreement: Agreement
    inviter: Ed25519PrivateKey
    servers: tuple[Ed25519PrivateKey, Ed25519PrivateKey]

    @property
    def catalogue(self) -> bytes:
        return catalogue_bytes(self.agreement.catalogue)

    def invitation(self, handle: int) -> Invitation:
        return invite(self.inviter, self.file.id, handle)

    def to_page(self) -> dict[str, Any]:
        """Return what the page reads, as JSON values."""
        return {"file": self.file.to_bytes().decode(), "catalogue": self.catalogue.decode()}


def offered(
    method: str | CertifiedMethod = "als",
    urls: tuple[str, str] = ("wss://recommender.example:8443", "wss://third.example:8444"),
    n_items: int = 40,
    items: Items | None = None,
    keys: Sequence[Ed25519PrivateKey] = (),
    roots: Sequence[str] = (),
    wire: int = 2,
    **people: int,
) -> Offered:
    """Return an agreement, signed by both servers."""
    method = METHODS[method] if isinstance(method, str) else method
    if items is None:
        genres = [("calm", "loud", "odd")[item % 3] for item in range(n_items)]
        items = Items.of(list(range(n_items)), [f"Film {item}" for item in range(n_items)], genres)
    agreement = Agreement(method, items, Scale(1.0, 5.0), **{**PEOPLE, **people}, wire=wire)
    keys = keys or [Ed25519PrivateKey.generate() for _ in range(2)]
    inviter = Ed25519PrivateKey.generate()
    now = datetime.now(UTC)
    file = draft(
        agreement,
        name="Films of a club",
        recommender=Server("The club", urls[0], public_of(keys[0]), tuple(roots)),
        third_party=Server("The library", urls[1], public_of(keys[1]), tuple(roots)),
        admission=Admission("the club", 1000, public_of(inviter)),
        timing=Timing(now - timedelta(minutes=1), now + timedelta(days=1), round_seconds=600.0),
    )
    return Offered(file.signed_by(keys[0]).signed_by(keys[1]), agreement, inviter, (keys[0], keys[1]))


def told_of(agreement: Agreement, number: int, scale: float = 1.0) -> dict[str, NDArray[Any]]:
    """Return arrays that a round may well come with."""
    rng, found = np.random.default_rng(number), {}
    for one in agreement.told(number):
        if one.name == "length":
            found[one.name] = np.full(one.shape, number % 2, one.dtype)
        elif one.name == "head":
            found[one.name] = np.sort(rng.choice(agreement.n_items, one.shape, replace=False)).astype(one.dtype)
        elif one.least >= 0:
            found[one.name] = np.clip(rng.uniform(0.1, 1, one.shape) * scale, one.least, one.most).astype(one.dtype)
        else:
            found[one.name] = np.clip(rng.normal(size=one.shape) * scale, one.least, one.most).astype(one.dtype)
    return found


def packed(told: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Return arrays as a page decodes them."""
    return {name: base64.b64encode(array.tobytes()).decode() for name, array in told.items()}


def some_ratings(number: int, n_items: int = 40) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the ratings of a person; the first one has none, and the second one of them."""
    rng = np.random.default_rng(100 + number)
    count = number if number < 2 else int(rng.integers(2, n_items))
    items = np.sort(rng.choice(n_items, count, replace=False))
    return items, rng.integers(1, 6, len(items)).astype(np.float32)


def entries_of(items: NDArray[Any], values: NDArray[Any]) -> list[dict[str, float]]:
    """Return ratings as the page has them."""
    return [{"position": int(item), "rating": float(value)} for item, value in zip(items, values, strict=True)]
