"""Verification of a release: do its events cost what is stated, and are events and tensors what its method releases?

The plan of a certified run follows from public facts, all of which a release holds. So it is made again, by the code
that makes it in a run, and compared with the events; then the sizes of all tensors are compared with what these events
release. It shows that a release does not contradict itself. What it cannot show is that somebody drew the noise.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import compress, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DpmfError, InvalidArgument
from dpmf.methods import METHODS
from dpmf.methods.als.continued import CONTINUES
from dpmf.methods.als.descriptions import DESCRIBED
from dpmf.methods.als.popularity import orders_by_ratings
from dpmf.methods.als.traits import N_LEANINGS, liking_of
from dpmf.methods.certified.planned import PLAN, Expected, PlanRecord, Shape, promises_of
from dpmf.methods.certified.questions import Headcount
from dpmf.methods.certified.script import Crowd
from dpmf.methods.units import unit_of
from dpmf.model import Release
from dpmf.model.learnt import LEARNT
from dpmf.privacy import GaussianEvent
from dpmf.privacy.events import Event
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import Verdict, deviation, verify
from dpmf.ratings import Items
from dpmf.ratings.features import (
    MOST_FURTHER_TRAITS,
    features_of,
    further_of,
    further_traits_of,
    traits_of,
)

_REBUILT = "they are those of the plan of its method, and account for everything in the release"
_OLDER = (
    "the plan of its method was not rebuilt, because an older version of dpmf wrote the release, or somebody removed "
    "the record of it: without a signature, the release is as trustworthy as whoever gave it to you"
)
_TRAIT_ROUNDING = 1e-5  # of the largest, which float32 may lose
_OFF_GRID, _ROUNDING = 1e-4, 2.0**-50  # of a step; what dividing by the steps may lose
_HEADCOUNT = "number of users"
_FOUND = ("n_factors", "head")  # what a run may make other numbers of: compared with the tensors


def verify_release(release: Release) -> Verdict:
    """Recompute epsilon from the events of a release, and compare these, and its tensors, with its method's plan."""
    verdict = verify(release.guarantee)
    if not verdict.ok or release.guarantee.mode != "certified":
        return verdict
    try:
        contradiction, plan = _compared(release)
    except (DpmfError, ArithmeticError, AttributeError, KeyError, MemoryError, TypeError, ValueError) as error:
        said = str(error) if isinstance(error, DpmfError) else f"its configuration is damaged ({type(error).__name__})"
        return replace(verdict, ok=False, plan=False, reason=f"the plan of its method cannot be rebuilt: {said}")
    if contradiction is not None:
        return replace(verdict, ok=False, plan=False, reason=contradiction)
    found = _OLDER if plan is None else "; ".join(filter(None, (_REBUILT, plan.as_stated, _not_compared(release))))
    return replace(verdict, reason=f"{verdict.reason}; {found}", plan=None if plan is None else True)


def with_descriptions(release: Release, items: Path | None, features: Path | None) -> Release:
    """Return a release with what the files that it was made with say about its items, to compare its traits with.

    Args:
        release: as it was read.
        items: the list of items with further columns; None if it had none.
        features: the file of item features; None if there was none.
    """
    catalogue = release.items
    if items is not None:
        listed = Items.read(items, further=True)
        if listed.ids != catalogue.ids:
            raise InvalidArgument(f"{items} does not list the items of the release, in the same order")
        catalogue = catalogue.described(*listed.descriptions)
    if features is not None:
        catalogue = catalogue.with_features(features)
    return replace(release, items=catalogue)


def _not_compared(release: Release) -> str | None:
    """Return which traits could not be made again, because a release does not hold what they were made of."""
    if DESCRIBED not in release.configuration or release.items.descriptions or not release.learnt.traits:
        return None
    return "traits that come from item features were not compared with these, which it does not hold: name their file"


def _compared(release: Release) -> tuple[str | None, Expected | None]:
    """Return in what a release contradicts itself, and its plan, if that could be rebuilt."""
    stated: dict[str, Any] = dict(release.configuration)
    if PLAN not in stated:
        return _too_few_numbers(release, stated.get("method")), None
    record = PlanRecord.from_json(stated.pop(PLAN))
    continues = CONTINUES in stated
    for told in (LEARNT, CONTINUES, DESCRIBED):  # what it says of itself, an earlier release and features: no event
        stated.pop(told, None)
    configuration = dict(stated if record.of is None else record.of)
    name = str(configuration.get("method"))
    if name not in METHODS:
        raise InvalidArgument(f"method {name!r} is not known to this version of dpmf")
    method = METHODS[name]
    if record.version > method.plan_version:
        raise InvalidArgument("a newer version of dpmf wrote the release: update dpmf")
    if record.version < method.plan_version:
        return _too_few_numbers(release, name), None
    for setting in record.given:
        if setting not in _FOUND:
            raise InvalidArgument(f"{setting!r} should stand in the configuration, and not in the record of its plan")
    unlike = _unlike_promises(release, record) or _unlike_configuration(release, stated, configuration)
    if unlike is not None:
        return unlike, None
    settings = {name: value for name, value in {**configuration, **record.given}.items() if name != "method"}
    expected = method.expected(settings, release, record)
    differences = (
        _other_traits(release),
        _other_leanings(release, expected.shape),
        _unlike_crowd(stated, record.crowd),
        deviation(_own_events(release, continues=continues), expected.events),
        _other_start(release) if continues else None,
        _other_tensors(release, expected.shape, keeps_ranking=continues),
        _too_much_learnt(release),
        _other_headcount(release, record),
    )
    return next(filter(None, differences), None), expected


def _own_events(release: Release, *, continues: bool) -> Sequence[Event]:
    """Return the events of the run itself: those of a release that it started from are charged, and of another plan."""
    guarantee = release.guarantee
    if continues and len(guarantee.own_events()) == len(guarantee.events):
        raise InvalidArgument("it starts from an earlier release, and states no event of that")
    return guarantee.own_events() if continues else guarantee.events


def _other_start(release: Release) -> str | None:
    """Return in what the record of an earlier release differs from the events that are stated of it."""
    record, guarantee = release.configuration[CONTINUES], release.guarantee
    if set(record) != {"digest", "epsilon", "delta"}:
        return "the record of the release that it starts from is damaged"
    epsilon, delta = float(record["epsilon"]), float(record["delta"])
    verdict = verify(replace(guarantee, epsilon=epsilon, delta=delta, events=guarantee.earlier_events()))
    return None if verdict.ok else f"of the release that it starts from, {verdict.reason}"


def _other_tensors(release: Release, shape: Shape, *, keeps_ranking: bool) -> str | None:
    """Return which tensor no event accounts for; a ranking may be kept of a release that was started from."""
    n_factors = release.n_measured_factors
    if n_factors not in shape.n_factors:
        return f"items have {n_factors} factors, and its method releases {_shown(shape.n_factors)}"
    lo, hi = release.scale.lo, release.scale.hi
    if release.mean not in (release.scale.middle, min(max(0.0, lo), hi)):
        return f"predictions start from {release.mean!r}, and no method releases what they start from"
    if not shape.biases and release.item_biases.any():
        return "items have biases, and its method releases none"
    if keeps_ranking and release.ranking is not None and len(release.ranking.items):
        released = any(event.what.endswith("item pairs") for event in release.guarantee.events)
        return None if released else "it has a ranking, and no event released pairs of items"
    ranks = shape.n_ranked is not None
    if shape.if_alike:  # releases of older versions have none even then
        alike = not orders_by_ratings(release.learnt, release.item_biases)
        ranks = ranks and release.ranking is not None and alike
    if release.ranks != ranks:
        return "it has a ranking, and its method releases none" if release.ranks else "its ranking is missing"
    if release.ranking is not None and shape.n_ranked is not None and len(release.ranking.items) not in shape.n_ranked:
        return f"the head has {len(release.ranking.items)} items, and its method releases {_shown(shape.n_ranked)}"
    return None


def _other_traits(release: Release) -> str | None:
    """Return whether factors that are said to be public traits of the items are not what is said about the items."""
    told, given = release.configuration.get(DESCRIBED, []), release.items.descriptions
    rests = " ".join(release.guarantee.assumptions)
    if not all(f"{one['what']} (SHA-256 {one['sha256']})" in rests for one in told):
        return "its guarantee does not rest on the features that it is said to be made with"
    if given and [one.digest for one in given] != [one["sha256"] for one in told]:
        return "the features given are not those that it was made with"
    if not release.learnt.traits:
        return None
    found = release.item_factors[:, -release.learnt.traits :].astype(np.float64)
    listed = traits_of(features_of(release.items))
    groups = [listed, *map(further_traits_of, further_of(release.items))]
    for used in product((True, False), repeat=len(groups)):
        if _are_traits(found, list(compress(groups, used))):
            return None
    if told and not given:  # those of the list can be made again, and of the others there are only so many
        first = found[:, : listed.shape[1]]
        rest = found.shape[1] - (listed.shape[1] if _are_traits(first, [listed]) else 0)
        if rest <= MOST_FURTHER_TRAITS * len(told):
            return None
    return "factors that should be public traits of the items are not those of its list of items"


def _are_traits(found: NDArray[np.float64], groups: Sequence[NDArray[np.float32]]) -> bool:
    """Tell whether numbers are those of groups of traits, each times one number."""
    ends = np.cumsum([group.shape[1] for group in groups])
    if not len(ends) or found.shape[1] != ends[-1]:
        return False
    return all(
        _is_multiple(part, group) for part, group in zip(np.split(found, ends[:-1], axis=1), groups, strict=True)
    )


def _is_multiple(part: NDArray[np.float64], group: NDArray[np.floating[Any]]) -> bool:
    exact = group.astype(np.float64)
    size = float((part * exact).sum() / max(float((exact * exact).sum()), 1e-300))
    return bool(np.abs(part - size * exact).max(initial=0) <= _TRAIT_ROUNDING * np.abs(part).max(initial=0))


def _other_leanings(release: Release, shape: Shape) -> str | None:
    """Return whether a method releases no leanings, or factors that are said to be liking differ from the biases."""
    if not release.learnt.leanings:
        return None
    if not shape.leanings:
        return "factors are said to be how popular and how well liked items are, and its method releases none"
    liked = release.item_factors[:, release.n_measured_factors + N_LEANINGS - 1 :][:, :1].astype(np.float64)
    expected = liking_of(release.item_biases, unit_of(release.scale))[:, None]
    if release.learnt.leanings == N_LEANINGS and _is_multiple(liked, expected):
        return None
    return "factors that should be how popular and how well liked items are have other numbers"


def _too_much_learnt(release: Release) -> str | None:
    """Return of what more is said to be known than there is: no event could confirm that it is known."""
    learnt, n_items = release.learnt, len(release.items)
    for what, number, most in (
        ("factors", learnt.factors, release.n_measured_factors),
        ("ratings of items", learnt.rated or 0, n_items),
        ("popularities of items", learnt.popular or 0, n_items),
    ):
        if number > most:
            return f"it is said to know {number} {what}, and has {most}"
    return None


def _other_headcount(release: Release, record: PlanRecord) -> str | None:
    """Return which number of users is missing, or none that the mechanism gives: those are whole steps of its grid."""
    if not record.released and any(event.what == _HEADCOUNT for event in release.guarantee.events):
        return f"an event released the {_HEADCOUNT}, and the record of its plan does not state it"
    for what, number in record.released.items():
        event = next((one for one in release.guarantee.events if one.what == what), None)
        if not isinstance(event, GaussianEvent) or event.coordinates != event.count:
            return f"a number is stated for {what!r}, and no event releases one"
        assert release.guarantee.neighbours is not None
        bound = Headcount(what).sensitivity(release.guarantee.neighbours)
        steps = number * Mechanism((event,), Noise()).steps(what, bound)
        if abs(steps - round(steps)) > _OFF_GRID + abs(steps) * _ROUNDING:
            return f"{number!r} is stated for {what!r}, which its event cannot have released"
    return None


def _unlike_promises(release: Release, record: PlanRecord) -> str | None:
    """Return in what the guarantee differs from the budget that noise was made for: its size does not show it."""
    if more := record.promised.keys() - promises_of(release.guarantee).keys():
        return f"{min(more)!r} in the record of its plan is unknown"
    for name, value in promises_of(release.guarantee).items():
        if record.promised.get(name) != value:
            return f"{name}={value!r} is guaranteed, and noise was made for {record.promised.get(name)!r}"
    return None


def _unlike_crowd(stated: dict[str, Any], crowd: Crowd | None) -> str | None:
    """Return whether people were to make less noise than those need who, by the configuration, may not add theirs."""
    if (crowd is None) != (stated.get("method") in METHODS):
        return "its configuration does not say whether people answered for themselves"
    if crowd is not None:
        lost = [math.ceil(float(stated[name]) * crowd.n_users) for name in ("dropouts", "colluders")]
        if not min(lost) >= 0 or crowd.n_shares > crowd.n_users - sum(lost):
            return f"{crowd.n_shares} shares of noise are counted on, and {sum(lost)} of {crowd.n_users} may be missing"
    return None


def _unlike_configuration(release: Release, stated: dict[str, Any], own: dict[str, Any]) -> str | None:
    """Return which size, or setting of the method, is not that of the configuration."""
    n_factors = release.n_measured_factors
    found = n_factors if release.item_factors.any() else 0  # a column of zeros says nothing
    if stated.get("n_factors", found) not in (n_factors, found):
        return f"items have {n_factors} factors, and {stated['n_factors']!r} by its configuration"
    if release.ranking is not None and stated.get("head", len(release.ranking.items)) != len(release.ranking.items):
        return f"the head has {len(release.ranking.items)} items, and {stated['head']!r} by its configuration"
    protocol = {} if stated.get("method") in METHODS else {"method": own["method"]}
    if own.get("feedback", release.feedback) != release.feedback:
        return f"feedback is {release.feedback}, and {own['feedback']!r} by its configuration"
    for place in ({**stated, **protocol}, stated.get("of", {})):
        for name, value in own.items():
            if name not in _FOUND and place.get(name, value) != value:
                return f"{name} is {place[name]!r} by its configuration, and {value!r} by the record of its plan"
    return None


def _too_few_numbers(release: Release, name: object) -> str | None:
    """Return whether fewer numbers were released than there are items, which hardly any method could do with."""
    if isinstance(name, str) and name in METHODS and not METHODS[name].one_each:
        return None
    numbers = sum(getattr(event, "coordinates", 0) for event in release.guarantee.events)
    if numbers < len(release.items):
        return f"it has {len(release.items)} items, and its events released {numbers} numbers"
    return None


def _shown(numbers: Collection[int]) -> str:
    if isinstance(numbers, range):
        return f"{numbers[0]} to {numbers[-1]}"
    return " or ".join(dict.fromkeys(map(str, numbers)))
