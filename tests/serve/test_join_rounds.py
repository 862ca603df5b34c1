"""Rounds in which pages answer: the answers of Python, to the bit, within the bound, and once."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.federated.certified.messages import Inquiry
from dpmf.federated.certified.recommender import Recommender
from dpmf.federated.certified.third_party import ThirdParty
from dpmf.federated.certified.user import User
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.identity import signed
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.masks import new_seed
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY
from dpmf.files import dump_json
from dpmf.privacy.noise import STEPS_PER_SD

from .host import Host
from .joining import Joining
from .joining_world import METHODS, Offered, entries_of, offered, packed, some_ratings, told_of

MODULES = ["agreement", "user", "bytes"]
READ = """
const kinds = { "<f8": Float64Array, "<f4": Float32Array, "<i4": Int32Array };
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const { file, catalogue, people, rounds } = vectors;
const agreement = await readAgreement(file, new TextEncoder().encode(catalogue));
const toldOf = (round, packed) => Object.fromEntries(agreement.rounds[round].told.map(({ name, dtype }) =>
  [name, new kinds[dtype](bytesOf(packed[name]).buffer)]));
"""
ANSWER = """
return people.map((entries) => {
  const own = ownRatings(entries, agreement.scale, agreement.items.ids.length);
  return rounds.map((packed, round) =>
    agreement.rounds[round].questions.map((question) => [...question.answer(own, toldOf(round, packed))]));
});
"""


@pytest.fixture(scope="module")
def joining(browser: Any, host: Host) -> Any:
    """Return a blank page with the modules at hand."""
    with Joining(browser, host) as joining:
        yield joining


def exact(user: User, offer: Offered, told: list[dict[str, NDArray[Any]]]) -> list[list[list[int]]]:
    """Return what a user of Python answers in all rounds, without noise."""
    questions = [offer.agreement.questions(number, one) for number, one in enumerate(told)]
    return [[user.exact_answer(question).reshape(-1).tolist() for question in asked] for asked in questions]


@pytest.mark.parametrize("name", METHODS)
def test_answers_of_the_page_are_those_of_python(joining: Joining, name: str) -> None:
    offer = offered(name)
    told = [told_of(offer.agreement, number) for number in range(len(offer.agreement.rounds))]
    ratings = [some_ratings(number) for number in range(5)]
    vectors = {"people": [entries_of(*one) for one in ratings], "rounds": [packed(one) for one in told]}
    found = joining.run(MODULES, READ + ANSWER, {**offer.to_page(), **vectors})
    for own, answers in zip(ratings, found, strict=True):
        user = User(*own, offer.agreement, KeyPair().public, KeyPair().public)
        for round_, (expected, got) in enumerate(zip(exact(user, offer, told), answers, strict=True)):
            for what, one, other in zip(offer.agreement.rounds[round_].releases, expected, got, strict=True):
                if what == "user moments":  # Python's fit may add up in another order
                    np.testing.assert_allclose(other, one, atol=1e-5 * STEPS_PER_SD)
                else:
                    assert one == other, what


@pytest.mark.parametrize("name", ["als", "als-replace", "als-per-item", "ease"])
def test_nobody_exceeds_the_bound_whatever_is_rated_and_asked(joining: Joining, name: str) -> None:
    offer = offered(name)
    rng = np.random.default_rng(1)
    scales = [1e-200, 1e-3, 1.0, 1e3, 1e200]
    told = [
        [told_of(offer.agreement, number, scale) for number in range(len(offer.agreement.rounds))] for scale in scales
    ]
    extreme = [(np.arange(count), rng.choice([-1e30, 1.0, 3.0, 5.0, 1e30], count)) for count in (1, 2, 3, 40)]
    people = [entries_of(*one) for one in extreme]
    twice = [*people[2], {"position": 0, "rating": 1.0}, {"position": 99, "rating": 5.0}]
    parts: dict[str, float] = {}
    for arrays in told:
        vectors = {"people": [*people, twice], "rounds": [packed(one) for one in arrays]}
        for answers in joining.run(MODULES, READ + ANSWER, {**offer.to_page(), **vectors}):
            for round_, parts_of_round in enumerate(answers):
                for what, part in zip(offer.agreement.rounds[round_].releases, parts_of_round, strict=True):
                    assert all(float(one).is_integer() for one in part)
                    parts[what] = max(parts.get(what, 0.0), float(np.linalg.norm(part)))
    neighbours = offer.agreement.budget.neighbours
    for event in offer.agreement.events:
        most = STEPS_PER_SD / event.noise_multiplier
        part = parts[event.what] * {"add-remove": 1.0, "replace": 2**0.5}[neighbours]
        assert part <= most, event.what
        assert part > 0.6 * most / 2**0.5, event.what  # the search is one


PLAY = """
window.users ??= [];
window.taken ??= [];
const { handles, keys: [recommender, thirdParty], silent } = vectors;
for (const [place, entries] of people.entries()) {
  const own = ownRatings(entries, agreement.scale, agreement.items.ids.length);
  const account = { begin: async (round) => window.taken.push([handles[place], round]) };
  const noise = silent ? (count) => new Float64Array(count) : undefined;
  const parties = { recommender: unhex(recommender, 32), thirdParty: unhex(thirdParty, 32) };
  window.users[handles[place]] = await makeUser({ agreement, own, ...parties, account, noise });
}
return handles.map((handle) => hex(window.users[handle].public));
"""
RECEIVE = """
const results = [];
for (const [handle, message] of vectors) {
  const text = atob(message);
  const question = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  results.push(await window.users[handle].receive(question).then(
    ({ message: sealed }) => btoa(String.fromCharCode(...sealed)), (error) => ({ refused: error.message })));
}
return results;
"""


class MixedWorld:
    """A recommender and a third party of Python, with people of Python, and people in a browser."""

    def __init__(self, joining: Joining, offer: Offered, n_pages: int, *, silent: bool) -> None:
        agreement = offer.agreement
        self.joining, self.agreement = joining, agreement
        self.recommender = Recommender(agreement)
        self.third_party = ThirdParty(agreement, self.recommender.public)
        self.recommender.meet(self.third_party.public)
        keys = self.recommender.public, self.third_party.public
        self.ratings = [some_ratings(number + 1, agreement.n_items) for number in range(agreement.n_users)]
        self.pages = list(range(n_pages))
        self.users = {
            number: User(*self.ratings[number], agreement, *keys) for number in range(n_pages, agreement.n_users)
        }
        vectors = {
            **offer.to_page(), "people": [entries_of(*self.ratings[number]) for number in self.pages], "rounds": [],
            "handles": self.pages, "keys": [key.hex() for key in keys], "silent": silent,
        }  # fmt: skip
        publics = joining.run(MODULES, READ + PLAY, vectors)
        known = {number: user.public for number, user in self.users.items()}
        known |= {number: bytes.fromhex(public) for number, public in zip(self.pages, publics, strict=True)}
        for number, public in known.items():
            self.recommender.admit(number, public)
            self.third_party.admit(number, public)

    def answers(self, messages: list[tuple[int, bytes]]) -> list[Any]:
        """Return the sealed answers of pages to sealed questions."""
        sent = [[number, base64.b64encode(message).decode()] for number, message in messages]
        found = self.joining.run([], RECEIVE, sent)
        return [base64.b64decode(one) if isinstance(one, str) else one["refused"] for one in found]

    def play(self, told: dict[str, NDArray[Any]]) -> tuple[NDArray[np.int64], list[int]]:
        """Play a round, and return the sums over everybody in steps, and the lengths of answers."""
        number = self.recommender.round
        questions = self.agreement.questions(number, told)
        to_pages, lengths = [], []
        for outgoing in self.recommender.ask(range(self.agreement.n_users), questions):
            if outgoing.to == THIRD_PARTY:
                self.third_party.receive(RECOMMENDER, outgoing.message)
            elif outgoing.to in self.users:
                for answer in self.users[outgoing.to].receive(outgoing.message):
                    self.third_party.receive(outgoing.to, answer.message)
                    lengths.append(len(answer.message))
            else:
                to_pages.append((outgoing.to, outgoing.message))
        self.last = to_pages
        for (page, _), answer in zip(to_pages, self.answers(to_pages), strict=True):
            assert isinstance(answer, bytes), answer
            self.third_party.receive(page, answer)
            lengths.append(len(answer))
        for total in self.third_party.close():
            self.recommender.receive(THIRD_PARTY, total.message)
        noisy = self.recommender.take()
        return np.concatenate([np.rint(one.values * one.steps).reshape(-1) for one in noisy]).astype(np.int64), lengths


def test_python_opens_adds_and_unmasks_what_pages_send(joining: Joining) -> None:
    offer = offered("als", n_users=3, dropouts=0, colluders=0)
    world = MixedWorld(joining, offer, 3, silent=True)
    users = [User(*own, offer.agreement, KeyPair().public, KeyPair().public) for own in world.ratings]
    for number in range(len(offer.agreement.rounds)):
        told = told_of(offer.agreement, number)
        sums, lengths = world.play(told)
        questions = offer.agreement.questions(number, told)
        parts = [np.concatenate([user.exact_answer(one).reshape(-1) for one in questions]) for user in users]
        np.testing.assert_allclose(sums, sum(parts), atol=1e-4 * STEPS_PER_SD)  # moments differ by some steps
        assert set(lengths) == {offer.file.lengths("bytes_up")[number]}
    assert not world.third_party.refusals.by_reason
    assert not world.recommender.refusals.by_reason


def test_pages_and_programs_answer_together_with_all_of_the_noise(joining: Joining) -> None:
    offer = offered("als-biases", n_items=2000)
    world = MixedWorld(joining, offer, 2, silent=False)
    users = [User(*own, offer.agreement, KeyPair().public, KeyPair().public) for own in world.ratings]
    told = told_of(offer.agreement, 0)
    sums, lengths = world.play(told)
    (question,) = offer.agreement.questions(0, told)
    noise = (sums - sum(user.exact_answer(question) for user in users)) / STEPS_PER_SD
    spread = (4 / offer.agreement.crowd.n_shares) ** 0.5  # four shares where two have to be there
    assert abs(noise.std() / spread - 1) < 0.15  # 2000 numbers: nine standard deviations of the estimate
    assert len(set(lengths)) == 1
    assert world.answers(world.last) == ["the message was received before, or is older than one that was"] * 2


def test_what_pages_refuse(joining: Joining) -> None:
    offer = offered("als")
    agreement = offer.agreement
    recommender, third_party = KeyPair(), KeyPair()
    vectors = {
        **offer.to_page(), "people": [entries_of(*some_ratings(3))], "rounds": [], "handles": [0], "silent": False,
        "keys": [recommender.public.hex(), third_party.public.hex()],
    }  # fmt: skip
    (public,) = joining.run(MODULES, "window.taken = [];" + READ + PLAY, vectors)
    channel = Channel(recommender, bytes.fromhex(public), 2)
    told = told_of(agreement, 3)

    def inquiry(**changed: Any) -> bytes:
        arrays = {**told, **changed}
        return Inquiry(3, agreement.digest, new_seed(), arrays).encoded(agreement)

    good = inquiry()
    cases: dict[str, bytes] = {
        "too short": good[:20],
        "another version": bytes([1]) + good[1:],
        "another kind": good[:1] + bytes([17]) + good[2:],
        "not in the agreement": good[:2] + (99).to_bytes(4, "little") + good[6:],
        "another agreement": good[:6] + bytes(16) + good[22:],
        "wrong length": good + b"\0",
        "weights is out of range": inquiry(weights=np.full_like(told["weights"], np.nan)),
        "ridges is out of range": inquiry(ridges=np.zeros_like(told["ridges"])),
        "V is out of range": inquiry(V=np.full_like(told["V"], 1e9)),
    }

    def refusals(messages: list[bytes]) -> list[Any]:
        sent = [[0, base64.b64encode(channel.seal(message)).decode()] for message in messages]
        found = joining.run([], RECEIVE, sent)
        return [one if isinstance(one, str) else one["refused"] for one in found]

    for (words, _), found in zip(cases.items(), refusals(list(cases.values())), strict=True):
        assert words in found, (words, found)
    assert joining.run([], "return window.taken;") == []  # nothing is entered for what is refused
    (answer,) = refusals([good])
    opened = Channel(third_party, bytes.fromhex(public), 2).open(base64.b64decode(answer))
    assert len(opened) == offer.file.lengths("bytes_up")[3] - 24
    assert joining.run([], "return window.taken;") == [[0, 3]]


def changed(offer: Offered, change: Callable[[dict[str, Any]], None]) -> str:
    """Return an agreement that says something else, signed by both servers all the same."""
    content = json.loads(offer.file.text)
    change(content)
    file = AgreementFile(dump_json(content), {})
    roles = zip(("recommender", "third_party"), offer.servers, strict=True)
    return (
        AgreementFile(file.text, {role: signed(key, "agreement", file.id) for role, key in roles}).to_bytes().decode()
    )


def test_agreements_that_are_not_what_they_promise_are_refused(joining: Joining) -> None:
    offer = offered("als")

    def factors(content: dict[str, Any]) -> Any:
        return content["computed"]["rounds"][3]["questions"][1]

    cases: dict[str, Callable[[dict[str, Any]], Any]] = {
        "costs more than": lambda content: content["budget"].update(epsilon=4.9),
        "else than the agreement pays for": lambda content: factors(content).update(
            noise_multiplier=1.0, steps=2.0**28 / factors(content)["sensitivity"]
        ),
        "weighs more": lambda content: content["computed"]["constants"].update(clip=5.0),
        "another grid": lambda content: factors(content).update(steps=factors(content)["steps"] * 2),
        "another shape": lambda content: factors(content).update(shape=[40, 3]),
        "version 2 of the wire": lambda content: content.update(wire=1),
        "does not protect a person": lambda content: content["budget"].update(unit="rating"),
        "as many shares of noise": lambda content: content["people"].update(colluders=0),
        "shares of noise as it takes": lambda content: (
            content["people"].update(dropouts=-5),
            content["computed"].update(n_shares=8),
        ),
        "promises next to nothing": lambda content: content["budget"].update(delta=0.5),
        "about something else": lambda content: content.update(scale="counts"),
        "is damaged": lambda content: content["method"].pop("settings"),
        "cannot answer what is asked": lambda content: factors(content).update(what="everything"),
        "secret coins": lambda content: factors(content).update(sampling_rate=0.5),
        "more numbers than": lambda content: content["computed"]["events"][-1].update(coordinates=100),
        "a page can only be invited": lambda content: content["admission"].update(kind="list"),
        "no safe address": lambda content: content["recommender"].update(url="ws://recommender.example"),
        "safe address": lambda content: content["third_party"].update(url="wss://a.example;script-src"),
        "messages of another length": lambda content: content["computed"]["rounds"][0].update(bytes_up=7),
        "a kind that this page does not know": lambda content: content["computed"]["events"][0].update(kind="claim"),
        "the catalogue is another": lambda content: content["catalogue"].update(sha256="00"),
    }
    files = [changed(offer, change) for change in cases.values()]
    unsigned = json.loads(offer.file.to_bytes())
    unsigned["signatures"]["third_party"] = unsigned["signatures"]["recommender"]
    found = joining.run(
        ["agreement"],
        """
        const catalogue = new TextEncoder().encode(vectors.catalogue);
        const reasons = [];
        for (const file of vectors.files) {
          reasons.push(await readAgreement(file, catalogue).then(({ epsilon }) => epsilon, (error) => error.message));
        }
        return reasons;
        """,
        {"catalogue": offer.catalogue.decode(), "files": [offer.to_page()["file"], *files, json.dumps(unsigned), "{}"]},
    )
    assert found[0] == pytest.approx(5.0, rel=1e-6)
    for words, reason in zip([*cases, "The library did not sign", "no agreement"], found[1:], strict=True):
        assert words in str(reason), (words, reason)
