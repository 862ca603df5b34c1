"""Audits of honest methods pass, and a fault in the mechanism or in whoever sums is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf.audit import answerers, canaries, noise, sensitivity, two_worlds
from dpmf.audit.persons import Person
from dpmf.audit.statistics import VERDICT
from dpmf.audit.subject import Pair
from dpmf.audit.transcript import overhear
from dpmf.privacy import Budget

from .faults import LargerClip, smaller, subject_of, without_first

CERTIFIED: dict[str, dict[str, Any]] = {
    "als": {},
    "als implicit": {"feedback": "implicit"},
    "als replace": {"budget": Budget(1.0, neighbours="replace")},
    "ease": {},
    "joint": {},
    "gaussian": {},
    "sgld": {"sampling_rate": 0.5},
    "sgld replace": {"sampling_rate": 0.5, "budget": Budget(1.0, neighbours="replace")},
    "sketch": {"sampling_rate": 0.5},
    "objective": {},
}
every = pytest.mark.parametrize("label", CERTIFIED)
QUICK = pytest.mark.parametrize("label", ["als", "ease", "sgld", "objective"])
MIXED = Person.of([0, 1], [5.0, 1.0])
OTHER = Person.of([0, 1], [1.0, 1.0])


def settings_of(label: str) -> tuple[str, dict[str, Any]]:
    return label.split()[0], CERTIFIED[label]


def pair_of(label: str) -> Pair:
    return Pair(OTHER if label == "objective" or "replace" in label else None, MIXED)


@every
def test_nobody_passes_a_bound_of_an_honest_method_and_all_answerers_agree(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensitivity, "_RANDOM", 5)
    monkeypatch.setattr(sensitivity, "_CLIMBS", 3)
    name, settings = settings_of(label)
    subject = subject_of(name, **settings)
    searched = sensitivity.search(subject)
    paths = answerers.same_shift(subject, searched.worst)
    found = sensitivity.finding(searched, paths)
    assert found.ok, found.sentence
    assert set(paths) == {"memory", "block store", "parties"}
    ratios = [one.ratio for one in searched.farthest.values()]
    assert max(ratios) > 0.8  # the search is not idle
    assert len(ratios) == len(subject.events)


@every
def test_a_clip_a_tenth_too_large_is_found_exactly(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensitivity, "_RANDOM", 0)
    monkeypatch.setattr(sensitivity, "_CLIMBS", 0)
    name, settings = settings_of(label)
    searched = sensitivity.search(subject_of(name, **settings, answerer=LargerClip))
    assert max(one.ratio for one in searched.farthest.values()) == pytest.approx(1.1, abs=0.05)
    assert not sensitivity.finding(searched, {}).ok


@pytest.mark.parametrize("label", ["als", "sgld"])
def test_with_a_cap_nothing_is_asked_of_parties_and_the_others_agree(label: str) -> None:
    name, settings = settings_of(label)
    subject = subject_of(name, **settings, cap=3)
    everything = Person.of(np.arange(12), np.where(np.arange(12) % 2, 5.0, 1.0))
    assert answerers.same_shift(subject, Pair(None, everything)) == {"memory": True, "block store": True}


def test_an_answerer_that_lets_one_person_move_more_than_their_answer_is_found() -> None:
    """Sums that grow with the square of the people: no single answer is too long, and the sum is wrong all the same."""

    class Crowded(LargerClip):
        def answer(self, asked: Any) -> Any:
            sums = super(LargerClip, self).answer(asked)
            return [one + self.n_users * (self.n_users - 1) for one in sums]

    subject = subject_of("ease", answerer=Crowded)
    paths = answerers.same_shift(subject, Pair(None, MIXED))
    assert not paths["memory"]
    assert paths["parties"]


@QUICK
def test_noise_as_stated_passes(label: str) -> None:
    name, settings = settings_of(label)
    subject = subject_of(name, **settings)
    said = overhear(subject, subject.world([MIXED]))
    found = noise.measure(subject, said, pair_of(label), 200)
    assert {one.what for one in found} == set(subject.events)
    assert all(one.ok(3 * len(found)) for one in found), found
    assert all(one.low < 1 < one.high or abs(one.spread - 1) < 0.06 for one in found)


@QUICK
def test_noise_a_tenth_too_small_is_found_at_p_below_a_thousandth(label: str) -> None:
    name, settings = settings_of(label)
    subject = subject_of(name, **settings, change=smaller)
    said = overhear(subject, subject.world([MIXED]))
    found = noise.measure(subject, said, pair_of(label), noise.KEYS)
    assert min(one.p_small for one in found) < VERDICT / (3 * len(found))
    assert not all(one.ok(3 * len(found)) for one in found)
    assert all(one.spread == pytest.approx(0.9, abs=0.08) for one in found)


def test_a_single_number_without_noise_is_found() -> None:
    subject = subject_of("ease", change=without_first)
    found = noise.measure(subject, overhear(subject, subject.world([MIXED])), pair_of("ease"), 100)
    assert any(one.p_weakest < 1e-9 for one in found if one.n > 400)


def test_a_key_that_is_used_twice_is_found() -> None:
    from dpmf.privacy.mechanism import Mechanism
    from dpmf.privacy.noise import Noise

    subject = replace(subject_of("ease"), mechanism=lambda events, _: Mechanism(events, Noise(noise_seed=7)))
    found = noise.measure(subject, overhear(subject, subject.world([MIXED])), pair_of("ease"), 20)
    assert any(one.repeated == 19 for one in found)
    assert not all(one.ok(9) for one in found)


def test_coins_that_fall_too_often_are_found() -> None:
    from dpmf.privacy.mechanism import Mechanism
    from dpmf.privacy.noise import Noise

    class Eager(Mechanism):
        def participants(self, what: str, n_people: int) -> Any:
            return np.random.default_rng(1).random(n_people) < 0.55

    honest = subject_of("sgld", sampling_rate=0.5)
    eager = replace(honest, mechanism=lambda events, _: Eager(events, Noise(noise_seed=1)))
    (good,), (bad,) = noise.measure_coins(honest), noise.measure_coins(eager)
    assert good.ok(3)
    assert bad.p_small < 1e-9


def test_shares_of_parties_add_up_to_the_noise_that_is_stated() -> None:
    found = noise.measure_parties(subject_of("ease"), pair_of("ease"))
    assert found is not None
    assert 0.85 < found.spread < 1.15  # of 1,500 numbers with fresh noise: eight standard deviations


@pytest.mark.parametrize("label", ["als", "sgld", "sgld replace", "objective"])
def test_two_worlds_keep_within_the_guarantee(label: str) -> None:
    name, settings = settings_of(label)
    found = two_worlds.examine(subject_of(name, **settings), pair_of(label), runs=20)
    assert found.ok, found.sentence
    assert found.figures["best_possible"] > found.figures["epsilon_clopper_pearson"]
    assert found.figures["best_possible"] > found.figures["best_possible_for_verdict"] > 0
    assert f"{found.figures['best_possible_for_verdict']:.3f} at best" in found.notes[0]


def test_the_exact_shift_is_what_the_scores_are_apart() -> None:
    subject = subject_of("ease", 20.0)
    scores = two_worlds.attack(subject, pair_of("ease"), 80)
    found = two_worlds.judge(scores, 20.0, 1e-6, None)
    measured = (scores.second.mean() - scores.first.mean()) / scores.first.std()
    assert measured == pytest.approx(scores.shift, rel=0.25)
    assert scores.shift > 2
    assert found.figures["epsilon_clopper_pearson"] > 1  # an attack that is as strong as allowed is seen


def test_a_mechanism_with_half_the_noise_loses_in_two_worlds() -> None:
    def halved(drawn: Any) -> Any:
        return np.rint(0.5 * drawn).astype(np.int64)

    found = two_worlds.examine(subject_of("ease", 5.0, change=halved), pair_of("ease"), runs=80)
    assert not found.ok
    assert found.figures["mu"] > 1.5 * found.figures["mu_planned"]


def test_answers_longer_than_their_bound_lose_in_two_worlds_whatever_the_noise() -> None:
    found = two_worlds.examine(subject_of("ease", answerer=LargerClip), pair_of("ease"), runs=10)
    assert not found.ok


@pytest.mark.parametrize("label", ["als", "sgld", "objective"])
def test_one_run_with_canaries_keeps_within_the_guarantee(label: str) -> None:
    name, settings = settings_of(label)
    found = canaries.examine(subject_of(name, **settings), canaries=12)
    assert found.ok, found.sentence
    assert found.figures["canaries"] in (6, 12)


def test_guesses_about_canaries_are_right_where_noise_is_small_and_chance_where_it_is_large() -> None:
    clear = subject_of("ease", 20.0, change=lambda drawn: drawn // 100)
    pairs = canaries.canaries_of(clear, 12)
    whole = replace(clear, n_targets=len(pairs))
    assert canaries.guess(whole, pairs).correct(6) == 6
    hidden = replace(subject_of("ease", 0.01), n_targets=len(pairs))
    assert canaries.guess(hidden, pairs).correct(6) < 6


def test_the_number_of_guesses_does_not_depend_on_the_run() -> None:
    assert canaries.guesses_for(1.5, 200, 1e-6, 0) == canaries.guesses_for(1.5, 200, 1e-6, 0) <= 200


def test_guesses_beyond_the_guarantee_are_a_violation() -> None:
    there = np.arange(400) % 2 == 0
    perfect = canaries.Guessed(there.astype(np.float64), there)
    assert not canaries.judge(perfect, 400, 1.0, 1e-6, None).ok
    assert canaries.judge(perfect, 4, 1.0, 1e-6, None).ok  # four right guesses prove little
