"""All ways to sum answers: in memory, from a block store, and by people who answer for themselves.

Whoever sums, one person moves the exact sum by their own answer and nothing else. Here that is checked bit by bit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmf.audit.subject import Pair, Subject
from dpmf.audit.transcript import Said, Witness, overhear
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.scenario import CertifiedScenario
from dpmf.federated.certified.simulation import Parties
from dpmf.methods.certified.answer import Asked, RatingsAnswerer
from dpmf.methods.certified.method import CertifiedMethod, Learner
from dpmf.methods.certified.questions import Integers, Noisy
from dpmf.methods.counted import counted_ratings
from dpmf.methods.objective import ObjectivePerturbation
from dpmf.methods.objective.certified import ProfiledObjective
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource

MEMORY, STORE, PARTIES = "memory", "block store", "parties"


def same_shift(subject: Subject, pair: Pair) -> dict[str, bool]:
    """Return, by answerer, whether sums of the two worlds differ by what the person alone answers.

    The pair has to be one that a file could hold.
    """
    worlds, facts = [subject.world([one]) for one in pair], subject.method.facts()
    cap, caps_fits = facts.get("cap"), getattr(subject.method, "caps_fits", False)
    before, after = (cap, None) if caps_fits else (None, cap)
    asked = [one.asked._replace(participants=None) for one in overhear(subject, worlds[1])]
    expected = subject.shift(asked, pair)
    found = {MEMORY: _same(expected, [subject.people(world).answer(asked) for world in worlds])}
    with tempfile.TemporaryDirectory(prefix="dpmf-audit-") as folder:
        stored: list[AnyRatings] = [
            StoredRatings.build(MemorySource(world), Path(folder) / str(number)) for number, world in enumerate(worlds)
        ]
        sums = []
        for world in stored:
            with counted_ratings(world, before, seed=facts["seed"]) as held:
                sums.append(
                    RatingsAnswerer(held, np.ones(held.n_users), 1, cap=after, seed=facts["seed"]).answer(asked)
                )
        found[STORE] = _same(expected, sums)
    if has_parties(subject):
        found[PARTIES] = _same_of_parties(subject, pair, worlds[1])
    return found


def has_parties(subject: Subject) -> bool:
    """Return whether people can answer for themselves: not with a cap, which is the holder's."""
    return subject.method.facts().get("cap") is None


def overhear_parties(subject: Subject, ratings: Ratings, *, weightless: bool) -> list[Said]:
    """Carry out a conversation with people who answer for themselves, each with noise of a new key.

    Args:
        subject: what to run.
        ratings: of everybody.
        weightless: whether nobody has any weight, so that nothing but noise is in the sums.
    """
    learner, agreement, scenario = _agreed(subject, ratings)
    weights = np.zeros(ratings.n_users) if weightless else np.ones(ratings.n_users)
    parties = Parties(ratings, scenario, agreement, 1, weights)
    witness = Witness(parties)
    witness.listen(learner.public_half(ratings.catalogue, agreement.scale, agreement.crowd))
    asked = [Asked(question, noisy.steps) for question, noisy in witness.said]
    people = RatingsAnswerer(ratings, weights, 1)
    sums = people.answer(asked)
    # In units of the noise that the agreement asks for: there is a little more, for those who may drop out.
    return [
        Said(one, exact, exact + (noisy.values * noisy.steps - exact) * _sd(agreement, one, noisy))
        for one, exact, (_, noisy) in zip(asked, sums, witness.said, strict=True)
    ]


def _sd(agreement: Agreement, asked: Asked, noisy: Noisy) -> float:
    """Return the noise that an event states over that which is to be expected of all who took part."""
    event = next(one for one in agreement.events if one.what == asked.question.what)
    stated = event.noise_multiplier * asked.question.sensitivity(agreement.budget.neighbours)
    return stated / noisy.sd


def _agreed(subject: Subject, ratings: Ratings) -> tuple[Learner, Agreement, CertifiedScenario]:
    method, facts = subject.method, subject.method.facts()
    if isinstance(method, ObjectivePerturbation):
        method = replace(method, noise=None)  # people draw shares of Gaussian noise, whatever the holder would draw
    assert isinstance(method, CertifiedMethod | ObjectivePerturbation)
    same = {name: facts[name] for name in ("seed", "items_public")}
    scenario = CertifiedScenario(subject.budget, method=method, **same)
    learner = subject.learner(ratings)
    if isinstance(scenario.learner, ObjectivePerturbation):
        learner = ProfiledObjective.of(scenario.learner, subject.profiles, ratings, 1)
    return learner, scenario.agreement(ratings, learner), scenario


def _same_of_parties(subject: Subject, pair: Pair, ratings: Ratings) -> bool:
    """Return whether a user's own side answers as the person alone does."""
    _, agreement, scenario = _agreed(subject, ratings)
    parties = Parties(ratings, scenario, agreement, 1, np.ones(ratings.n_users))
    user = parties.user(ratings.n_users - 1)
    other = replace(subject, method=scenario.learner) if subject.protects_values else subject
    assert pair.second is not None
    for said in overhear_parties(other, ratings, weightless=not subject.protects_values):
        (expected,) = other.answers([said.asked], pair.second)
        if not np.array_equal(user.exact_answer(said.asked.question), expected):
            return False
    return True


def _same(expected: Sequence[Integers], sums: Sequence[Sequence[Integers]]) -> bool:
    first, second = sums
    return all(np.array_equal(two - one, shift) for one, two, shift in zip(first, second, expected, strict=True))
