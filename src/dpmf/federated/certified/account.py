"""A person's own account over all agreements: what they cost together never exceeds a cap that the person chose.

An agreement bounds what one run costs. Who takes part in several pays for each of them, and nobody else can be trusted
to add that up. So a device keeps a ledger (`dpmf.privacy.ledger`), and enters an agreement, with all that it may cost,
before anything leaves the device; what would exceed the cap is refused. Rounds are entered one by one before they are
answered, so that a process that died, or a copy of the device's state, answers none of them a second time.

>>> import tempfile
>>> from dpmf.methods import ALS
>>> from dpmf.privacy import Budget
>>> from dpmf.ratings import Items, Scale
>>> agreement = Agreement(ALS(n_factors=0, budget=Budget(5.0)), Items.of([1, 2, 3]), Scale(1, 5), n_users=4)
>>> ledger = Ledger(tempfile.mkdtemp() + "/mine.json", Budget(8.0))
>>> account = Account(ledger, agreement, bytes(32), bytes(32))
>>> account.last_round, ledger.spent()
(-1, 5.0)
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dpmf.errors import BudgetExceeded
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.wire.refusals import Refused
from dpmf.privacy import Guarantee
from dpmf.privacy.ledger import Ledger


class Account:
    """One agreement in a person's ledger; making it enters the agreement, unless the same run is there already.

    A run is told by the agreement and by the keys of both parties, which are new in every run; or by an identity that
    it keeps, where these are new in every process.

    Args:
        ledger: of the person, with the unit and the neighbours of the agreement.
        agreement: what the person is about to agree to.
        recommender, third_party: their public keys.
        share: what part of the full weight the person wants to have; what they pay is in proportion to it.
        identity: of the run; by default agreement and keys.
        seeded: whether noise is from a seed, which no cap covers.

    Attributes:
        last_round: the last round that was answered, or begun; -1 for none.

    Raises:
        BudgetExceeded: with this agreement, all of them together would cost more than the cap.
    """

    __slots__ = ("_ledger", "_run", "last_round")

    def __init__(
        self,
        ledger: Ledger,
        agreement: Agreement,
        recommender: bytes,
        third_party: bytes,
        share: float = 1.0,
        identity: bytes | None = None,
        *,
        seeded: bool = False,
    ) -> None:
        self._ledger = ledger
        identity = agreement.digest + recommender + third_party if identity is None else identity
        self._run = _run_of(identity)
        ledger.spend(f"{agreement.method.name}, federated", own_guarantee(agreement, share, seeded), run=self._run)
        self.last_round = next(one.started for one in ledger.entries() if one.run == self._run) - 1

    def begin(self, number: int) -> None:
        """Enter a round before it is answered, or refuse one that was begun before, in this process or another."""
        try:
            self._ledger.start(self._run, number)
        except BudgetExceeded:
            raise Refused("the round is not a new one") from None
        self.last_round = number


def check_cap(ledger: Ledger, agreement: Agreement, identity: bytes, share: float = 1.0) -> None:
    """Refuse an agreement that `Account` would refuse, before anybody is connected to; nothing is entered."""
    if any(one.run == _run_of(identity) for one in ledger.entries()):
        return
    total = ledger.total_with(own_guarantee(agreement, share, seeded=False))
    if total > ledger.cap.epsilon:
        raise BudgetExceeded(
            f"with this agreement all together would cost you epsilon={total:g}, more than the cap of your ledger, "
            f"{ledger.cap.epsilon:g}: nothing was sent"
        )


@lru_cache(maxsize=4)  # one and the same however often a device joins
def own_guarantee(agreement: Agreement, share: float, seeded: bool) -> Guarantee:
    """Return what one person pays at most: all events, with noise that is larger relative to a smaller part in sums."""
    whole = agreement.guarantee(agreement.method.assumptions(agreement.catalogue, agreement.crowd), seeded=seeded)
    if not 0 < share < 1:
        return whole  # somebody without any weight pays no less than this, which is safe
    budget, planned = agreement.plan.guaranteed()
    events: list[Any] = list(planned)
    scaled = [replace(event, noise_multiplier=event.noise_multiplier / share) for event in events]
    about: dict[str, Any] = {"releases": whole.releases, "assumptions": whole.assumptions, "seeded": seeded}
    return Guarantee.certified_by(budget, scaled, **about)


def _run_of(identity: bytes) -> str:
    return hashlib.blake2b(identity, digest_size=16).hexdigest()
