"""What every certified method must do: release what its events say, guarantee that, and be charged for it."""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.methods import METHODS
from dpmf.methods.base import RunOptions
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.conversation import Conversation, converse
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.questions import Noisy, Question
from dpmf.methods.certified.run import Terms, certify
from dpmf.methods.certified.steps import Centre, PublicSteps
from dpmf.methods.gaussian.certified import FullBatchPlan
from dpmf.privacy import Budget, NormNoiseEvent
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism, PlannedEvent
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import verify

from .cases import ALL, CERTIFIED, PAPER, PLAIN, RATINGS, Case, label_of
from .halves import HALVES, Half, Setting
from .test_contract_bounds import CROWD
from .watch import Killed, Watch

every = pytest.mark.parametrize("case", ALL, ids=label_of)
certified = pytest.mark.parametrize("case", CERTIFIED, ids=label_of)
half = pytest.mark.parametrize("half", HALVES)


def test_every_method_has_a_case_in_every_mode() -> None:
    assert {case.method for case in CERTIFIED} == {name for name, one in METHODS.items() if "certified" in one.modes}
    assert {case.method for case in PAPER} == {name for name, one in METHODS.items() if "paper" in one.modes}
    assert {case.method for case in PLAIN} == METHODS.keys()
    implicit = {case.method for case in CERTIFIED if case.settings.get("feedback") == "implicit"}
    assert implicit == {name for name, one in METHODS.items() if "implicit" in one.feedbacks}
    for cases, kinds in ((CERTIFIED, {"certified"}), (PAPER, {"paper"}), (PLAIN, {"none", "published"})):
        assert {case.kind for case in cases} == kinds


# What was released equals the events


@certified
def test_what_was_released_is_what_the_guarantee_lists(case: Case, watch: Watch) -> None:
    model = case.fit(RATINGS)
    guarantee, records = model.guarantee, watch.records
    assert {one.what for one in records} == {one.what for one in guarantee.events}
    for event in guarantee.events:
        sizes = [one.sums.size for one in records if one.what == event.what]
        assert (event.to_json()["count"], event.to_json()["coordinates"]) == (len(sizes), sum(sizes))
    budget = case.settings["budget"]
    assert (guarantee.mode, guarantee.certified) == ("certified", True)
    assert (guarantee.unit, guarantee.neighbours) == (budget.unit, budget.neighbours)
    verdict = verify(guarantee)
    assert verdict.ok
    assert verdict.recomputed_epsilon is not None
    assert guarantee.epsilon is not None
    assert verdict.recomputed_epsilon <= guarantee.epsilon
    if case.profiles != "release":  # which costs something, too
        assert 0.9 * budget.epsilon < guarantee.epsilon <= budget.epsilon


@certified
def test_a_mechanism_that_carried_out_a_plan_releases_no_more(case: Case, watch: Watch) -> None:
    case.fit(RATINGS)
    done = watch.mechanisms[-1]
    done.finish()
    for one in done.records:
        with pytest.raises(BudgetExceeded, match="not in the plan"):
            done.release(one.what, np.zeros_like(one.sums), one.sensitivity)
        with pytest.raises(BudgetExceeded, match="not in the plan"):
            done.forfeit(one.what)


@half
def test_a_mechanism_refuses_larger_sums_and_unknown_ones_and_to_end_early(half: str) -> None:
    events = Setting(half).public().plan.events()
    mechanism = Mechanism(events, Noise(1))
    for event in events:
        shape = (event.coordinates // event.count + 1, *((1,) if isinstance(event, NormNoiseEvent) else ()))
        with pytest.raises(BudgetExceeded, match="at most in the plan"):
            mechanism.release(event.what, np.zeros(shape, np.int64), 1.0)
        with pytest.raises(InvalidArgument, match="was released 0 times"):
            mechanism.finish()
    with pytest.raises(BudgetExceeded, match="is not in the plan"):
        mechanism.release("everybody's ratings", np.zeros(1, np.int64), 1.0)


class Greedy:
    """A public half that asks the questions of its last stage twice."""

    def __init__(self, public: Half) -> None:
        self.public, self.plan = public, public.plan

    def converse(self, stage: Stage) -> Conversation:
        conversation = self.public.converse(stage)
        questions = next(conversation)
        answers: tuple[Noisy, ...] = yield questions
        if stage == self.plan.stages()[-1]:
            yield questions
        while True:
            try:
                questions = conversation.send(answers)
            except StopIteration:
                return
            answers = yield questions

    def __getattr__(self, name: str) -> Any:
        return getattr(self.public, name)


def curator_of(events: Sequence[PlannedEvent]) -> Curator:
    ratings = Setting("als").ratings(CROWD)
    people = RatingsAnswerer(ratings, np.ones(ratings.n_users), 1)
    return Curator(people, Mechanism(events, Noise(1)), "add-remove")


@half
def test_a_public_half_that_asks_for_more_than_it_planned_is_refused(half: str) -> None:
    greedy: Any = Greedy(Setting(half).public())
    curator = curator_of(greedy.plan.events())
    *first, last = greedy.plan.stages()
    for stage in first:
        assert converse(greedy, stage, curator)
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        converse(greedy, last, curator)


@half
def test_a_run_that_left_a_stage_out_does_not_end(half: str) -> None:
    public = Setting(half).public()
    curator = curator_of(public.plan.events())
    for stage in public.plan.stages()[:-1]:
        assert converse(public, stage, curator)
    with pytest.raises(InvalidArgument, match=r"was released \d times, not \d"):
        curator.finish()


def test_a_certified_run_does_not_end_before_its_plan_does() -> None:
    class Short(FullBatchPlan):
        def stages(self) -> tuple[Stage, ...]:
            return super().stages()[:-1]

    keys, centre = RATINGS.catalogue.ids.keys, Centre(3.0)
    public = PublicSteps(Short(RATINGS.n_items, 2, 3, 0.5, Budget(5.0)), RATINGS.scale, keys, centre, 1.0, 2, 1)
    with pytest.raises(InvalidArgument, match="was released 2 times, not 3"):
        certify(public, RATINGS, Terms({}, (), None), RunOptions(1))


@half
def test_what_a_stage_releases_and_does_not_ask_for_is_given_up(half: str) -> None:
    public, asked = Setting(half).public(), Counter[str]()

    class Silent(Greedy):
        def converse(self, stage: Stage) -> Conversation:
            return
            yield

    curator = curator_of(public.plan.events())
    forfeit = curator.forfeit

    def count(what: str) -> None:
        asked[what] += 1
        forfeit(what)

    curator.forfeit = count  # type: ignore[method-assign]
    silent: Any = Silent(public)
    for stage in public.plan.stages():
        assert converse(silent, stage, curator)
    curator.finish()
    assert asked == {event.what: event.count for event in public.plan.events()}


def test_questions_bound_what_they_say() -> None:
    """Replaced neighbours are apart by twice the reach, or by its √2-fold where nothing in a sum is negative."""
    seen: dict[type[Question], Question] = {}

    class Listening(Curator):
        def ask(self, questions: Sequence[Question]) -> tuple[Noisy, ...]:
            seen.update({type(one): one for one in questions})
            return super().ask(questions)

    for half in HALVES:
        public, ratings = Setting(half).public(), Setting("als").ratings(CROWD)
        people = RatingsAnswerer(ratings, np.ones(ratings.n_users), 1)
        curator = Listening(people, Mechanism(public.plan.events(), Noise(1)), "add-remove")
        for stage in public.plan.stages():
            converse(public, stage, curator)
    assert len(seen) == 12
    for question in seen.values():
        assert question.sensitivity("add-remove") == question.reach > 0
        factor = math.sqrt(2) if question.nonnegative else 1 if getattr(question, "sampled", False) else 2
        assert question.sensitivity("replace") == pytest.approx(factor * question.reach, rel=1e-15)


# Seeded noise


@certified
def test_seeded_noise_is_not_certified_and_said_to_be_so(
    case: Case, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="dpmf"):
        release = case.fit(RATINGS, {"noise_seed": 918273645}).release
    guarantee = release.guarantee
    assert not guarantee.certified
    assert not guarantee.is_private
    assert guarantee.assumptions[0] == SEEDED
    assert str(guarantee).startswith("not private")
    assert caplog.messages == [SEEDED]
    release.save(tmp_path / "release")
    assert "918273645" not in (tmp_path / "release" / "release.json").read_text()
    ledger = Ledger(tmp_path / "ledger.json", replace(case.settings["budget"], epsilon=1000.0))
    with pytest.raises(BudgetExceeded):  # it is unbounded
        case.fit(RATINGS, {"noise_seed": 1}, ledger=ledger)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="dpmf"):
        case.fit(RATINGS)
    assert not caplog.messages


@certified
def test_a_release_tells_nothing_about_people(case: Case, tmp_path: Path) -> None:
    model = case.fit(RATINGS)
    model.release.save(tmp_path / "release")
    assert sorted(path.name for path in (tmp_path / "release").iterdir()) == ["release.json", "release.safetensors"]
    facts = json.loads((tmp_path / "release" / "release.json").read_text())
    for name in ("items", "sha256", "digest"):
        facts.pop(name)
    numbers = set(_numbers_in(facts))
    for secret in (RATINGS.n_users, len(RATINGS), *(record.train_rmse for record in model.history)):
        assert secret not in numbers
    text = json.dumps(facts)
    assert "person-" not in text
    assert "noise_seed" not in text
    assert "budget" not in facts["configuration"]
    assert facts["configuration"]["method"] == case.method


def _numbers_in(content: Any) -> list[float]:
    if isinstance(content, Mapping):
        return [number for value in content.values() for number in _numbers_in(value)]
    if isinstance(content, list):
        return [number for value in content for number in _numbers_in(value)]
    return [content] if isinstance(content, int | float) else []


# The ledger


@certified
def test_a_ledger_is_charged_before_noise_is_drawn_and_once_full_lets_none_be_drawn(
    case: Case, tmp_path: Path, watch: Watch
) -> None:
    room = replace(case.settings["budget"], epsilon=1.3 * case.settings["budget"].epsilon)
    ledger = Ledger(tmp_path / "ledger.json", replace(room, epsilon=2 * room.epsilon))
    watch.kill_at = 1
    with pytest.raises(Killed):
        case.fit(RATINGS, ledger=ledger)
    (entry,) = ledger.entries()
    watch.kill_at = None
    before = len(watch.drawn)
    small = Ledger(tmp_path / "small.json", replace(room, epsilon=0.5))
    with pytest.raises(BudgetExceeded, match="more than the cap"):
        case.fit(RATINGS, ledger=small)
    assert small.entries() == ()
    assert len(watch.drawn) == before
    model = case.fit(RATINGS, ledger=Ledger(tmp_path / "own.json", replace(room, epsilon=2 * room.epsilon)))
    assert entry.guarantee == model.guarantee  # stays charged, though it failed
    assert ledger.spent() == pytest.approx(model.guarantee.epsilon, abs=1e-4)


@certified
def test_a_callback_cannot_stop_a_run_whose_cost_is_fixed(case: Case) -> None:
    heard: list[int] = []

    def stop(record: Any) -> bool:
        heard.append(record.epoch)
        return True

    model = case.fit(RATINGS, callbacks=[stop])
    assert heard == [record.epoch for record in model.history] == list(range(1, len(case.stages) - case.before + 1))
