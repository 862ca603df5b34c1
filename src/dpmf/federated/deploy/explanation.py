"""An agreement in plain words: what joining promises, against each party, what it costs, and what is not covered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY
from dpmf.privacy.explain import guess


class Part(NamedTuple):
    """A part of an explanation.

    Attributes:
        title: of the part.
        sentences: in it.
    """

    title: str
    sentences: Sequence[str]


def explain_agreement(file: AgreementFile) -> list[Part]:
    """Return what an agreement means for somebody who joins; signatures are checked, and reported, not required."""
    return [_what(file), *_promises(file), _not_covered(file), _costs(file), _trust(file)]


def _what(file: AgreementFile) -> Part:
    content, timing = file.content, file.timing
    asker, adder = file.servers[RECOMMENDER], file.servers[THIRD_PARTY]
    n_items, people = content["catalogue"]["n_items"], content["people"]
    return Part(
        f"What it is: {file.name}",
        (
            f"{asker.name} ({asker.url}) learns a recommender for {n_items:,} items by the method "
            f"{content['method']['name']}. Your ratings, and the profile made of them, stay on your device.",
            f"In up to {len(content['computed']['rounds'])} rounds, {people['per_round']:,} people each are asked for "
            "sums of their answers. Your device bounds your answer, adds noise, hides it behind a mask, and sends it "
            f"to {adder.name} ({adder.url}), who adds up what it cannot read. {asker.name} gets the noisy sum alone.",
            f"It runs from {timing.begins:%Y-%m-%d %H:%M} to {timing.ends:%Y-%m-%d %H:%M} UTC.",
        ),
    )


def _promises(file: AgreementFile) -> list[Part]:
    asker, adder = file.servers[RECOMMENDER].name, file.servers[THIRD_PARTY].name
    budget, people = file.content["budget"], file.content["people"]
    epsilon, delta = float(budget["epsilon"]), float(budget["delta"])
    of_hundred = min(100.0, math.ceil(1000 * guess(epsilon, delta) - 1e-9) / 10)
    changed = "other ratings" if budget["neighbours"] == "replace" else "no ratings"
    odds = f"one in {math.floor(1 / delta + 1e-6):,}"
    strength = (
        f"All rounds together are (ε = {epsilon:g}, δ = {odds})-differentially private for you: somebody who knows "
        f"everything else and has to guess whether you answered for your ratings or for {changed} is right at most "
        f"{of_hundred:.1f} times out of 100. A coin is right 50 times."
    )
    colluders = people["colluders"]
    others = (
        f"There is enough noise even if up to {colluders:,} of the {people['per_round']:,} people tell what they did."
        if colluders
        else "Nobody is taken to collude: nothing is promised against a participant, who knows a bit of the noise."
    )
    return [
        Part(
            f"Against {asker}, and everybody who sees what it publishes",
            (strength, "It may ask whatever it likes: your device bounds every answer, and answers each round once."),
        ),
        Part(
            f"Against {adder}",
            (
                "It sees who takes part in which round, and when, and numbers that are uniformly random to it. It "
                "learns nothing of your ratings beyond what is published, at the same ε and δ.",
                f"If more than {people['dropouts']:,} of a round's people do not answer, it forgets the round, because "
                "there may be too little noise in it.",
            ),
        ),
        Part("Against other participants", (others,)),
    ]


def _not_covered(file: AgreementFile) -> Part:
    asker, adder = file.servers[RECOMMENDER].name, file.servers[THIRD_PARTY].name
    n_shares = file.content["computed"]["n_shares"]
    return Part(
        "What is not covered",
        (
            "That you take part: both see it, and the network sees that your device talks to both.",
            f"{asker} and {adder} together: they would see your own answer, with about one part in {n_shares:,} of the "
            "noise's variance. They have to be apart: two organisations, two machines, no shared keys.",
            f"{file.admission.by} decides who the people are. Whoever can make up people can fill a round with them; "
            f"nothing is promised beyond {file.content['people']['colluders']:,} of these.",
            "What your own device gives away, and whoever can watch how long it computes.",
        ),
    )


def _costs(file: AgreementFile) -> Part:
    down, up = file.lengths("bytes_down"), file.lengths("bytes_up")
    budget = file.content["budget"]
    return Part(
        "What it costs you",
        (
            f"In all rounds at most {sum(down):,} bytes come to your device and {sum(up):,} leave it; in one round at "
            f"most {max(down):,} and {max(up):,}. How many there are does not depend on your ratings.",
            f"Your ledger enters ε = {budget['epsilon']:g} before anything is sent, whether or not you stay to the "
            "end. Nothing is refunded, and a device that starts again answers no round twice.",
        ),
    )


def _trust(file: AgreementFile) -> Part:
    missing = [file.servers[role].name for role in file.missing_signatures()]
    signed = "Both servers have signed it." if not missing else f"DO NOT JOIN: {' and '.join(missing)} did not sign it."
    return Part(
        "This file",
        (
            signed,
            f"Its fingerprint is {file.id.hex()}: compare it with what {file.admission.by} tells you elsewhere.",
        ),
    )
