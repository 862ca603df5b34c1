"""A certified run: ledger, checkpoint, noise and account around the conversation of a method with people.

Every certified method is a public half, which asks questions, and people, who answer them: see
`dpmf.methods.certified.questions`. `certify` brings the two together. Noise is drawn by the mechanism, never by whoever
sums; what is released is what the plan's events say, or the run ends with an error. Ledger, journal and snapshots are
the business of `dpmf.methods.certified.staged_run`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.cluster import Cluster
from dpmf.engine.grid import checksum_of
from dpmf.engine.resources import Resources
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.files import digest_of
from dpmf.methods.base import RunOptions
from dpmf.methods.certified.answer import Answerer, RatingsAnswerer
from dpmf.methods.certified.conversation import Partner, PublicHalf
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.personal import personal_epsilons
from dpmf.methods.certified.staged_run import staged_run
from dpmf.methods.certified.workers import people_on
from dpmf.methods.counted import counted_ratings
from dpmf.methods.snapshots import fingerprint_of, identity_of
from dpmf.model import EpochRecord
from dpmf.privacy import Guarantee
from dpmf.privacy.budget import delta_warning
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings

logger = logging.getLogger(__name__)
RELEASES = ("item factors", "item biases", "the configuration")


@dataclass(frozen=True, eq=False)
class Terms:
    """What a run rests on beside its plan and its ratings.

    Attributes:
        settings: a name, and everything the result depends on: what makes two runs the same run.
        assumptions: what the guarantee rests on.
        noise_seed: research only; the same noise every time, and no guarantee.
        cap: how many ratings of a user count at most; None for all.
        seed: of the choice of those.
        caps_fits: whether the others do not count in a user's own fit either.
        releases: what is published, a few words each.
        personal: whether users chose an epsilon of their own in what the run builds on.
    """

    settings: Mapping[str, Any]
    assumptions: Sequence[str]
    noise_seed: int | None
    cap: int | None = None
    seed: int = 0
    caps_fits: bool = False
    releases: Sequence[str] = RELEASES
    personal: bool = False

    @classmethod
    def of(cls, label: str, settings: Mapping[str, Any], assumptions: Sequence[str], **more: Any) -> Terms:
        """Return the terms of all settings of a method; its budget is part of the plan."""
        facts = {name: value for name, value in settings.items() if name != "budget"}
        return cls({"name": label, **facts}, assumptions, settings["noise_seed"], seed=settings["seed"], **more)


@dataclass(frozen=True, eq=False)
class Certified:
    """What a run ends with.

    Attributes:
        guarantee: of what is released.
        history: a record per round.
        resources: what the run was allowed to use.
        released: numbers of people, as released, by name; None if the run was begun by a version that stored none.
    """

    guarantee: Guarantee
    history: tuple[EpochRecord, ...]
    resources: Resources
    released: Mapping[str, float] | None


MakePartner = Callable[[NDArray[np.float64], Noise, Resources], Partner]


def certify(
    public: PublicHalf,
    ratings: AnyRatings,
    terms: Terms,
    options: RunOptions,
    *,
    guarantee: Callable[..., Guarantee] | None = None,
    partner: MakePartner | None = None,
) -> Certified:
    """Carry out a certified run; what it found is in the public half.

    Args:
        public: asks the questions.
        ratings: of everybody who answers.
        terms: what it rests on.
        options: threads, callbacks, checkpoint, ledger, budgets of single users.
        guarantee: makes the guarantee, given `assumptions`, whether noise is `seeded` and budgets are `personal`; by
            default that of the plan.
        partner: makes whoever asks people, of their shares, the source of noise and the resources; by default the
            holder of the ratings.
    """
    plan, noise = public.plan, Noise(terms.noise_seed)
    if noise.seeded:
        logger.warning("%s", SEEDED)
    budget, events = plan.guaranteed()
    warning = delta_warning(budget.delta, ratings.users_about)
    if warning is not None:
        logger.warning("%s", warning)
    stated: dict[str, Any] = {"seeded": noise.seeded, "personal": terms.personal or bool(options.user_budgets)}
    if guarantee is None:
        guarantee = partial(Guarantee.certified_by, budget, events, releases=terms.releases)
    promised = guarantee(assumptions=terms.assumptions, **stated)
    shares = plan.shares(personal_epsilons(ratings.user_ids, plan.budget, options.user_budgets))
    if not shares.any():
        raise InvalidArgument("there are no ratings to train on: everybody wants to be left out")
    resources = Resources(options.n_threads)
    if isinstance(ratings, StoredRatings) and options.cluster is None:
        sizes = plan.sum_size, plan.working_size
        resources = Resources.for_sums(ratings, plan.most_factors, options.n_threads, *sizes)

    def identity() -> dict[str, Any]:
        return _identity(ratings, terms, str(plan.budget), shares, promised)

    with contextlib.ExitStack() as stack:
        run = stack.enter_context(staged_run(options.checkpoint, identity, plan.stages(), noise.seeded))
        run.enter(options.ledger, ratings.name or "release", promised)
        if partner is None:
            mechanism = Mechanism(plan.events(), noise)
            people = stack.enter_context(_people(ratings, terms, shares, resources.n_threads, options.cluster))
            asking: Partner = Curator(people, mechanism, plan.budget.neighbours)
        else:
            asking = partner(shares, noise, resources)
        history = run.carry_out(public, asking, options.callbacks)
        asking.finish()
    return Certified(promised, history, resources, run.released)


@contextlib.contextmanager
def _people(
    ratings: AnyRatings, terms: Terms, shares: NDArray[np.float64], n_threads: int, cluster: Cluster | None
) -> Iterator[Answerer]:
    """Yield people whose ratings are all here, or on the workers of a cluster."""
    before, after = (terms.cap, None) if terms.caps_fits else (None, terms.cap)
    if cluster is not None:
        assert isinstance(ratings, StoredRatings)
        with people_on(cluster, ratings, shares, (before, after), terms.seed) as elsewhere:
            yield elsewhere
        return
    with counted_ratings(ratings, before, seed=terms.seed) as held:
        yield RatingsAnswerer(held, shares, n_threads, cap=after, seed=terms.seed)


def _identity(
    ratings: AnyRatings, terms: Terms, budget: str, shares: NDArray[np.float64], guarantee: Guarantee
) -> dict[str, Any]:
    """Return what makes two runs the same run; one that streams is not one that does not."""
    if isinstance(ratings, Ratings):
        fingerprint = fingerprint_of(ratings)
    else:
        fingerprint = f"{ratings.blocks.fingerprint()}, streamed"
    return identity_of(
        terms.settings,
        ratings,
        fingerprint,
        budget=budget,  # by itself, so that a refusal names it
        user_budgets=f"{checksum_of((shares,)):08x}",
        guarantee=digest_of(guarantee.to_json()),
    )
