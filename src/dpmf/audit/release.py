"""What a saved release says about the run that made it: the method to audit, and whether its events are consistent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dpmf.audit.findings import Finding
from dpmf.errors import InvalidArgument
from dpmf.methods import METHODS, configure
from dpmf.methods.base import Method
from dpmf.methods.verification import verify_release
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.events import ClaimEvent, Event
from dpmf.privacy.guarantee import rounded_up

_OF_ALS = ("n_factors", "n_epochs", "regularization", "items_public", "seed")
_CHOSEN = {"n_factors": "item factors", "head": "item pairs"}  # by a run, and what it released for the choice
_NOT_SETTINGS = ("method", "budget", "noise_seed", "mode")


def method_of(release: Release) -> Method:
    """Return the method that a release says it was made with, with the budget of its guarantee."""
    guarantee, facts = release.guarantee, _facts(release.configuration)
    if guarantee.mode == "none" or guarantee.epsilon is None:
        raise InvalidArgument(
            "this release guarantees nothing, so there is nothing to audit: its epsilon is not stated"
        )
    name = facts["method"]
    if name not in METHODS:
        raise InvalidArgument(
            f"this release was made by {name!r}, which no audit here knows: audit a method by its name"
        )
    known = {field.name for field in fields(METHODS[name])}
    settings = {
        key: value for key, value in facts.items() if key in known and key not in _NOT_SETTINGS and value is not None
    }
    for setting, what in _CHOSEN.items():  # a run that found nothing says 0, although it was to look for something
        if settings.get(setting) == 0 and any(one.what == what for one in guarantee.events):
            del settings[setting]
    if guarantee.mode == "paper":
        claimed = METHODS[name].private_fields("paper", guarantee.epsilon)
        return configure(name, {**settings, **claimed})
    epsilon, unit = guarantee.epsilon, str(guarantee.unit)
    if name == "objective":  # what its profiles cost is in the guarantee, too
        epsilon = rounded_up(epsilon_of(guarantee.events[-1:], guarantee.delta or 0.0, neighbours="replace"))
        settings.pop("n_factors", None)
    budget = Budget.recorded(epsilon, guarantee.delta or 0.0, unit, str(guarantee.neighbours))
    return configure(name, {**settings, "budget": budget})


def _facts(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the method itself, where a protocol ran it."""
    if configuration.get("method") != "federated" or configuration.get("mode") != "certified":
        return configuration
    if "of" in configuration:
        of: Mapping[str, Any] = configuration["of"]
        return of
    moments = "per-item" if configuration.get("per_item") else "shared"
    return {"method": "als", "moments": moments, **{name: configuration.get(name) for name in _OF_ALS}}


def examine(release: Release, planned: Mapping[str, Event]) -> Finding:
    """Return whether a release is verified, as `dpmf verify` does it, and which of its events its method plans.

    Args:
        release: as it was loaded.
        planned: what the method would release, by name.
    """
    verdict, events = verify_release(release), release.guarantee.events
    rows = [(one.what, _in_words(one), "yes" if one.what in planned else "no") for one in events]
    odd = [one.what for one in events if one.what not in planned and not isinstance(one, ClaimEvent)]
    notes = tuple(
        f"{what!r} is not what this configuration plans today: an older version, or other data." for what in odd
    )
    figures = {
        "epsilon": release.guarantee.epsilon,
        "recomputed_epsilon": verdict.recomputed_epsilon,
        "events": [one.to_json() for one in events],
        "not_planned": odd,
    }
    columns = ("event", "noise", "planned by the configuration")
    return Finding("release", "The release", verdict.ok, verdict.reason, columns, rows, figures, notes)


def _in_words(event: Event) -> str:
    if isinstance(event, ClaimEvent):
        return "a claim"
    return f"{event.noise_multiplier:.4g} times the sensitivity, {event.count} times"
