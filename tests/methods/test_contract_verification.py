"""What every certified release must be: verifiable as it is, and refused, in one line, once it contradicts itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint, Snapshots
from dpmf.federated.certified import CertifiedScenario, simulate_certified
from dpmf.files import digest_of
from dpmf.methods import ALS, EASE, METHODS, SGLD, Joint, ObjectivePerturbation
from dpmf.methods.certified.planned import PLAN
from dpmf.methods.certified.questions import Headcount
from dpmf.methods.objective.profiles import PROFILES, Profiles
from dpmf.methods.verification import verify_release
from dpmf.model import Release
from dpmf.model.ranking import Ranking
from dpmf.privacy import Budget, Event, GaussianEvent, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.guarantee import rounded_up
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Items, Ratings
from dpmf.ratings.synthetic import make

from .cases import CERTIFIED, LARGE, RATINGS, USER, VALUE, profiles_of
from .watch import Killed, Watch

SERIES = Ratings.of(
    np.repeat(np.arange(80), 3),
    np.tile(np.arange(12), 20),
    np.tile([5.0, 4.0, 3.0], 80),
    scale=(1, 5),
    items=Items.of(list(range(12)), [f"Series {item // 4} part {item % 4 + 1}" for item in range(12)]),
)
OFTEN = make(400, 20, mean_ratings=8, seed=3)  # enough for a head and factors that a run chooses


def _paid() -> Release:
    release = ALS(n_factors=1, n_epochs=1, budget=replace(USER, neighbours="replace")).fit(RATINGS, n_threads=1).release
    return ObjectivePerturbation(budget=VALUE).fit(RATINGS, profiles=Profiles.from_release(release, VALUE)).release


def _simulated(budget: Budget = USER, method: Any = None, **settings: Any) -> Release:
    scenario = CertifiedScenario(budget, method=method, **settings)
    profiles = profiles_of("public") if isinstance(method, ObjectivePerturbation) else None
    return simulate_certified(RATINGS, scenario, n_threads=1, profiles=profiles).model.release


MADE: dict[str, Callable[[], Release]] = {case.label: lambda case=case: case.fit(RATINGS).release for case in CERTIFIED}  # type: ignore[misc]
MADE |= {
    "als, chosen": lambda: ALS(n_epochs=2, budget=LARGE).fit(OFTEN).release,
    "als implicit, chosen": lambda: ALS(n_epochs=2, feedback="implicit", budget=LARGE).fit(OFTEN).release,
    "ease, chosen": lambda: EASE(budget=LARGE).fit(OFTEN).release,
    "ease, too few people": lambda: EASE(budget=Budget(1.0)).fit(RATINGS).release,
    "ease, linked": lambda: EASE(links=True, budget=LARGE).fit(SERIES).release,
    "joint, chosen": lambda: Joint(n_epochs=2, budget=LARGE).fit(OFTEN).release,
    "joint, replaced": lambda: Joint(n_epochs=2, budget=replace(LARGE, neighbours="replace")).fit(RATINGS).release,
    "als, personal": lambda: ALS(n_factors=2, n_epochs=2, budget=LARGE).fit(RATINGS, user_budgets={"1": 2.0}).release,
    "objective, paid": _paid,
    "parties, als": lambda: _simulated(n_factors=2, n_epochs=2),
    "parties, als chosen": lambda: _simulated(LARGE, n_epochs=2),
    "parties, ease": lambda: _simulated(LARGE, EASE(budget=LARGE)),
    "parties, joint": lambda: _simulated(LARGE, Joint(n_factors=2, n_epochs=1, head=5, budget=LARGE)),
    "parties, sgld": lambda: _simulated(USER, SGLD(n_factors=2, n_epochs=3, sampling_rate=0.5, budget=USER)),
    "parties, objective": lambda: _simulated(VALUE, ObjectivePerturbation(budget=VALUE, noise="gaussian")),
}


@cache
def made(name: str) -> Release:
    """Return a release, made once."""
    return MADE[name]()


@dataclass(frozen=True)
class Forged:
    """A release under the hands of a forger, who makes epsilon that of whatever the events are."""

    release: Release

    def with_events(self, *events: Event, delta: float | None = None) -> Release:
        guarantee = self.release.guarantee
        assert guarantee.neighbours is not None
        delta = guarantee.delta if delta is None else delta
        assert delta is not None
        epsilon = rounded_up(epsilon_of(events, delta, neighbours=guarantee.neighbours))
        return replace(self.release, guarantee=replace(guarantee, events=events, epsilon=epsilon, delta=delta))

    def with_one(self, **changes: Any) -> Release:
        """Change the event with most numbers; how many people there are is public where they are asked for factors."""
        events = list(self.release.guarantee.events)
        place = max(range(len(events)), key=lambda place: (events[place].what != PROFILES, _size(events[place])))
        events[place] = replace(events[place], **{name: change(events[place]) for name, change in changes.items()})
        return self.with_events(*events)

    def with_settings(self, **changes: Any) -> Release:
        return replace(self.release, configuration={**self.release.configuration, **changes})

    def with_record(self, **changes: Any) -> Release:
        return self.with_settings(**{PLAN: {**self.release.configuration[PLAN], **changes}})


def _size(event: Any) -> int:
    return int(event.coordinates) if ", in the release for profiles" not in event.what else 0


def _scaled(forged: Forged, factor: float) -> Release:
    return forged.with_events(*(_louder(event, factor) for event in forged.release.guarantee.events))


def _louder(event: Any, factor: float) -> Event:
    if ", in the release for profiles" in event.what:
        return event  # type: ignore[no-any-return]
    return replace(event, noise_multiplier=factor * event.noise_multiplier)  # type: ignore[no-any-return]


def _with_tensor(forged: Forged) -> Release:
    release = forged.release
    if release.predicts and not release.ranks:
        return replace(release, ranking=Ranking.by_popularity(np.ones(len(release.items), np.float32)))
    if not release.predicts:
        return replace(release, item_biases=np.ones(len(release.items), np.float32))
    assert release.ranking is not None
    if release.ranking.items.size:
        return replace(release, ranking=None)
    one, item = np.ones((1, 1), np.float32), np.zeros(1, np.int32)  # by popularity, which older versions did without
    longer = replace(release.ranking, items=item, left=one, right=one, indptr=np.zeros(2, np.int64))
    return replace(release, ranking=longer)


def _enlarged(forged: Forged, count: int) -> Release:
    more = np.ones((len(forged.release.items), count), np.float32)
    factors = np.c_[forged.release.item_factors, more]
    return replace(forged.with_settings(n_factors=factors.shape[1]), item_factors=factors)


def _reconfigured(forged: Forged) -> Release | None:
    """Change a setting that the plan depends on."""
    settings = forged.release.configuration
    own = settings[PLAN].get("of", settings)
    if own.get("n_epochs") is not None and own.get("n_factors") != 0:
        changed = {"n_epochs": own["n_epochs"] + 1}
    elif "head" in own:
        changed = {"links": None, "n_users": 7 if own["n_users"] is None else None}
        if own.get("head") == 0 and "head" not in settings[PLAN]["given"]:
            return None  # popularity alone: nothing else matters
    elif "noise" in own:
        changed = {"noise": "norm"}
    elif own["method"] == "objective":
        changed = {"noise": "gaussian"}
    else:
        changed = {"feedback": "implicit" if own["feedback"] == "explicit" else "explicit"}
    return forged.with_record(of={**own, **changed}) if "of" in settings[PLAN] else forged.with_settings(**changed)


def _dropped(forged: Forged) -> Release | None:
    events = forged.release.guarantee.events
    return forged.with_events(*events[:-1]) if len(events) > 1 else None


def _fewer(forged: Forged) -> Release | None:
    if max(getattr(event, "count", 1) for event in forged.release.guarantee.events) == 1:
        return None
    events: list[Any] = list(forged.release.guarantee.events)
    events = [replace(one, count=max(one.count - 1, 1)) for one in events]
    return forged.with_events(*events)


def _with_delta(forged: Forged) -> Release | None:
    if any(isinstance(event, NormNoiseEvent) for event in forged.release.guarantee.events):
        return None  # it costs no delta, so any is true
    return forged.with_events(*forged.release.guarantee.events, delta=1e-5)


def _with_neighbours(forged: Forged) -> Release | None:
    """Promise more, or less, with noise of the same size; of ratings there are neighbours of one kind only."""
    guarantee = forged.release.guarantee
    if guarantee.unit != "user":
        return None
    other = "replace" if guarantee.neighbours == "add-remove" else "add-remove"
    forged = Forged(replace(forged.release, guarantee=replace(guarantee, neighbours=other)))
    return forged.with_events(*guarantee.events)


def _of_people(forged: Forged, change: Callable[[], Release]) -> Release | None:
    """Change what is about people who answer for themselves, if they did."""
    return change() if "crowd" in forged.release.configuration[PLAN] else None


def _is_sketch(forged: Forged) -> bool:
    """Return whether items share cells, of which there may be any number."""
    return bool(forged.release.configuration["method"] == "sketch")


def _headcount(forged: Forged) -> Release:
    """Return a number of users between two steps of the grid, whatever the noise was."""
    released, guarantee = forged.release.configuration[PLAN]["released"], forged.release.guarantee
    if not released:
        return forged.with_record(released={"number of users": 123.0})
    ((what, number),) = released.items()
    (event,) = (one for one in guarantee.events if one.what == what)
    assert isinstance(event, GaussianEvent)
    assert guarantee.neighbours is not None
    step = 1 / Mechanism([event], Noise()).steps(what, Headcount(what).sensitivity(guarantee.neighbours))
    return forged.with_record(released={what: number + 0.5 * step})


FORGERIES: dict[str, Callable[[Forged], Release | None]] = {
    "events replaced": lambda one: one.with_events(GaussianEvent("item factors", 100.0, 1, 1)),
    "events replaced, plan taken away": lambda one: (
        None
        if _is_sketch(one)
        else replace(
            one.with_events(GaussianEvent("item factors", 100.0, 1, 1)),
            configuration={name: value for name, value in one.release.configuration.items() if name != PLAN},
        )
    ),
    "event dropped": _dropped,
    "count lowered": _fewer,
    "coordinates lowered": lambda one: one.with_one(coordinates=lambda event: event.coordinates - 1),
    "multiplier raised": lambda one: one.with_one(noise_multiplier=lambda event: 1.01 * event.noise_multiplier),
    "bound halved": lambda one: _scaled(one, 2.0),
    "name changed": lambda one: one.with_one(what=lambda event: f"{event.what} of somebody"),
    "event added": lambda one: one.with_events(
        *one.release.guarantee.events, GaussianEvent("something else", 1e6, 1, 1)
    ),
    "tensor added or taken away": _with_tensor,
    "mean measured": lambda one: replace(one.release, mean=one.release.scale.middle + 0.123),
    "feedback altered": lambda one: (
        replace(one.release, feedback="explicit" if one.release.is_implicit else "implicit")
        if "feedback" in one.release.configuration
        else None
    ),
    "factors enlarged": lambda one: None if _is_sketch(one) else _enlarged(one, 300),
    "one factor more than is said": lambda one: replace(
        _enlarged(one, 1), configuration={"n_factors": 0, **one.release.configuration}
    ),
    "headcount altered": _headcount,
    "headcount left out": lambda one: (
        one.with_record(released={}) if one.release.configuration[PLAN]["released"] else None
    ),
    "configuration altered": _reconfigured,
    "setting unknown": lambda one: one.with_record(given={"head": 1, "n_factors": 1, "speed": 1}),
    "setting in two places": lambda one: one.with_record(given={**one.release.configuration[PLAN]["given"], "seed": 0}),
    "method unknown": lambda one: one.with_settings(method=["als"], of={"method": "\n"}),
    "another method": lambda one: one.with_settings(method="sgd"),
    "delta altered": _with_delta,
    "budget altered": lambda one: one.with_record(epsilon=1.02 * one.release.configuration[PLAN]["epsilon"]),
    "a newer plan": lambda one: one.with_record(version=99),
    "a plan of no version": lambda one: one.with_record(version=0),
    "a damaged plan": lambda one: one.with_settings(**{PLAN: {"version": 1}}),
    "a strange crowd": lambda one: one.with_record(crowd=[3, 4]),
    "more promised": lambda one: one.with_record(promised={**one.release.configuration[PLAN]["promised"], "users": 7}),
    "more learnt than there is": lambda one: one.with_settings(learnt={"factors": 0, "rated": 2718, "popular": None}),
    "neighbours altered": _with_neighbours,
    "more colluders": lambda one: _of_people(one, lambda: one.with_settings(colluders=0.5)),
    "nobody drops out": lambda one: _of_people(one, lambda: one.with_settings(dropouts=-1.0)),
    "people denied": lambda one: _of_people(one, lambda: one.with_record(crowd=None)),
    "another crowd": lambda one: one.with_record(crowd=[1000, 900]),
}


SAMPLED = ("sgld", "sketch", "parties, sgld")
QUICK = ("events replaced", "multiplier raised", "tensor added or taken away", "headcount altered", "another method")
"""What is tried on sampled steps, of which it takes a while to make another plan, or to account for other events."""


def _sampled(event: Any) -> Event:
    return PoissonGaussianEvent(event.what, event.noise_multiplier, 0.5, event.count, event.coordinates)


@pytest.mark.parametrize("name", MADE)
def test_a_release_verifies_as_it_is_and_when_it_is_read_again(name: str, tmp_path: Path) -> None:
    made(name).save(tmp_path / "release")
    for release in (made(name), Release.load(tmp_path / "release")):
        verdict = verify_release(release)
        assert verdict.ok, verdict.reason
        assert verdict.plan is True
        assert "those of the plan" in verdict.reason
    assert ("taken as stated" in verdict.reason) == (name == "objective, paid")
    if name not in SAMPLED:
        check_older_versions(release)
        check_extra_charges(release)


def check_older_versions(release: Release) -> None:
    """Releases of older versions verify as far as they go."""
    kept = {key: value for key, value in release.configuration.items() if key != PLAN}
    name = str(kept["method"] if kept["method"] in METHODS else release.configuration[PLAN]["of"]["method"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(METHODS[name], "plan_version", METHODS[name].plan_version + 1)
        verdicts = [verify_release(older) for older in (replace(release, configuration=kept), release)]
    for verdict in verdicts:
        assert (verdict.ok, verdict.plan) == (True, None)
        assert "not rebuilt, because an older version" in verdict.reason


def check_extra_charges(release: Release) -> None:
    """Being charged more than by the plan is no contradiction."""
    first: Any = release.guarantee.events[0]
    first = replace(first, noise_multiplier=10.0)
    assert "noise_multiplier=10" in verify_release(Forged(release).with_events(*release.guarantee.events, first)).reason
    cheapest = max(release.guarantee.events, key=lambda event: getattr(event, "noise_multiplier", 0.0))
    again = Forged(release).with_events(*release.guarantee.events, cheapest)
    more = Forged(release).with_one(coordinates=lambda one: one.coordinates + 5)
    for charged in (again, more) if len(release.guarantee.events) > 1 else (more,):
        verdict = verify_release(charged)
        assert verdict.ok, verdict.reason


@pytest.mark.parametrize("name", [name for name in MADE if name != "parties, sgld"])
def test_a_release_that_contradicts_itself_is_refused(name: str) -> None:
    tried = 0
    for forgery, forge in FORGERIES.items():
        if name in SAMPLED and forgery not in QUICK:
            continue
        forged = forge(Forged(made(name)))
        if forged is None:
            continue  # there is no such thing in it
        verdict, tried = verify_release(forged), tried + 1
        assert not verdict.ok, forgery
        assert verdict.reason
        assert "\n" not in verdict.reason
    assert tried == len(QUICK) if name in SAMPLED else tried >= len(FORGERIES) - 9


def test_another_kind_of_event_is_refused() -> None:
    verdict = verify_release(Forged(made("gaussian")).with_events(*map(_sampled, made("gaussian").guarantee.events)))
    assert not verdict.ok
    assert "the kind gaussian-noise-on-poisson-sample" in verdict.reason
    rarer = Forged(made("sgld")).with_one(sampling_rate=lambda event: event.sampling_rate / 2)
    assert "sampling_rate=0.25" in verify_release(rarer).reason


def test_a_chosen_number_of_factors_and_head_follow_from_the_number_of_users() -> None:
    """A number that the mechanism might have given, but one for which the run would have chosen otherwise."""
    for name in ("als, chosen", "als implicit, chosen", "ease, chosen"):
        release = made(name)
        ((what, number),) = release.configuration[PLAN]["released"].items()
        step = 2.0**-28 * next(one.noise_multiplier for one in release.guarantee.events if one.what == what)  # type: ignore[union-attr]
        other = round(-(10**6) / step) * step if "ease" in name else round(10**7 / step) * step
        verdict = verify_release(Forged(release).with_record(released={what: other}))
        assert not verdict.ok
        assert "its method releases" in verdict.reason
        assert not verify_release(Forged(release).with_record(released={})).ok
        assert number != round(number)


def test_a_run_that_was_stopped_and_resumed_verifies(tmp_path: Path, watch: Watch) -> None:
    for name, method in (("als", ALS(n_factors=2, n_epochs=2, budget=LARGE)), ("joint", Joint(head=9, budget=LARGE))):
        watch.kill_at = len(watch.drawn) + 5
        with pytest.raises(Killed):
            method.fit(RATINGS, checkpoint=Checkpoint(tmp_path / name, resume=True))
        watch.kill_at = None
        release = method.fit(RATINGS, checkpoint=Checkpoint(tmp_path / name, resume=True)).release
        assert verify_release(release).plan is True
        assert len(release.configuration[PLAN]["released"]) == 1


def test_a_run_that_an_older_version_began_verifies_as_far_as_it_goes(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, save = ALS(n_factors=2, n_epochs=2, budget=LARGE), Snapshots.save
    older = lambda self, epoch, state, facts: save(self, epoch, state, {**facts, "released": None})  # noqa: E731
    monkeypatch.setattr(Snapshots, "save", older)
    watch.kill_at = 5
    with pytest.raises(Killed):
        method.fit(RATINGS, checkpoint=Checkpoint(tmp_path / "run", resume=True))
    watch.kill_at = None
    release = method.fit(RATINGS, checkpoint=Checkpoint(tmp_path / "run", resume=True)).release
    verdict = verify_release(release)
    assert (verdict.ok, verdict.plan, PLAN in release.configuration) == (True, None, False)


def test_what_is_recorded_is_the_number_that_the_mechanism_gave(watch: Watch) -> None:
    release = EASE(head=5, budget=LARGE).fit(RATINGS).release
    (number,) = release.configuration[PLAN]["released"].values()
    assert number in [float(one.seen[0]) for one in watch.records if one.what == "number of users"]


# Plans of a version: whoever changes what is released, or with how much noise, raises `plan_version` of the method, and
# records the new plan here.
PLANS = json.loads(Path(__file__).with_name("plans.json").read_text())


def plan_of(name: str) -> dict[str, Any]:
    """Return the events of a case, rounded, and the version of its method's plans."""
    events = [event.to_json() for event in made(name).guarantee.events]
    for event in events:
        event["noise_multiplier"] = float(f"{event['noise_multiplier']:.3g}")
    method = next(case.method for case in CERTIFIED if case.label == name)
    return {"version": METHODS[method].plan_version, "digest": digest_of({"events": events})[:16]}


@pytest.mark.parametrize("case", CERTIFIED, ids=lambda case: case.label)
def test_a_plan_changes_with_its_version_only(case: Any) -> None:
    assert plan_of(case.label) == PLANS[case.label], "the plan changed: raise plan_version, and record it in plans.json"
